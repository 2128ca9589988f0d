"""Parameters: arrays that a model learned, or will be given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.arguments import public_class, shown
from unity.errors import UnityError
from unity.ir.dtype import Array, DType
from unity.ir.dtype import dtype as dtype_of
from unity.ir.graph import Expr
from unity.ir.types import TensorType, Type
from unity.runtime.arrays.accept import accept

from .value import Operand, exporting


@public_class
class Parameter(Operand):
    """An array of a model, by shape and dtype; its numbers may come later.

    Args:
        shape: Its sizes.
        dtype: Its elements.
        data: Its numbers, as `set` takes them.

    Raises:
        UnityError: A size is negative, or the numbers have another shape or dtype.
    """

    def __init__(self, shape: Sequence[int], dtype: str = "float32", data: object = None) -> None:
        self.shape = tuple(shape)
        if any(size < 0 for size in self.shape):
            raise UnityError(f"a parameter of shape {self.shape}", hint="no size is negative")
        self.dtype: DType = dtype_of(dtype)
        self.data: Array | None = None
        if data is not None:
            self.set(data)

    @property
    def type(self) -> TensorType:
        """Its type."""
        return TensorType(self.shape, self.dtype)

    def expr(self) -> Expr:
        """What it is in the graph that is built now: a constant, or an input."""
        return exporting().of(self)

    def set(self, data: object) -> None:
        """Give it its numbers.

        Args:
            data: An array of numpy, torch, or what has DLPack or ``__array__``; it is copied.

        Raises:
            UnityError: It is none, or has another shape or dtype.
        """
        self.data = numbers_for(self.type, data)

    def __repr__(self) -> str:
        return f"Parameter({self.type})"


def numbers_for(kind: Type, given: object, name: str = "") -> Array:
    """An array of a type: its own copy of what was given, which may change later.

    Args:
        kind: What is expected: a tensor of known sizes.
        given: A parameter with numbers, or what has DLPack or ``__array__``.
        name: How messages name it.

    Raises:
        UnityError: It is something else, or of another shape or dtype.
    """
    where = f"{name}: " if name else ""
    if not isinstance(kind, TensorType) or kind.dtype is None:
        raise UnityError(f"{where}it is no tensor, its type is {kind}", hint="no array is that")
    found = array_of(given, name, kind)
    if found.shape != kind.shape or found.dtype != kind.dtype.numpy:
        raise UnityError(
            f"{where}expected {kind}, got {found.dtype} of shape {found.shape}",
            hint="reshape or convert the array before",
        )
    return found


def array_of(given: object, name: str = "", kind: TensorType | None = None) -> Array:
    """A copy of an array of any kind.

    Args:
        given: A parameter with numbers, or what has DLPack or ``__array__``.
        name: How messages name it.
        kind: What is expected, for messages; shape and dtype are not compared with it.

    Raises:
        UnityError: It is something else.
    """
    where = f"{name}: " if name else ""
    if isinstance(given, Parameter):
        if given.data is None:
            raise UnityError(f"{where}{given!r} has no numbers", hint="set(...) gives it some")
        given = given.data
    if not (hasattr(given, "__dlpack__") or hasattr(given, "__array__")):
        raise UnityError(
            f"{where}expected {kind or 'an array'}, got {shown(given)} ({type(given).__name__})",
            hint="an array: numpy's, torch's, or another with __dlpack__ or __array__",
        )
    exchanged = given if hasattr(given, "__dlpack__") else np.asarray(given)
    found, _ = accept(exchanged, str(kind.dtype) if kind else None, name or "the numbers")
    return np.array(found, copy=True, order="C")
