"""Parameters: arrays that a model learned, or will be given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.dtype import Array, DType
from unity.ir.dtype import dtype as dtype_of
from unity.ir.graph import Expr
from unity.ir.types import TensorType

from .value import Operand, exporting


@public_class
class Parameter(Operand):
    """An array of a model, by shape and dtype; its numbers may come later.

    Args:
        shape: Its sizes.
        dtype: Its elements.
        data: Its numbers.

    Raises:
        UnityError: The numbers have another shape or dtype.
    """

    def __init__(
        self, shape: Sequence[int], dtype: str = "float32", data: Array | None = None
    ) -> None:
        self.shape = tuple(shape)
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

    def set(self, data: Array) -> None:
        """Give it its numbers.

        Raises:
            UnityError: They have another shape or dtype.
        """
        found = np.asarray(data)
        if found.shape != self.shape or found.dtype != self.dtype.numpy:
            raise UnityError(
                f"expected {self.type}, got {found.dtype} of shape {found.shape}",
                hint="reshape or convert the array before",
            )
        self.data = np.ascontiguousarray(found)

    def __repr__(self) -> str:
        return f"Parameter({self.type})"
