"""What annotations are made of: ``f32[Tensor, n, 128]`` and its parts.

Python evaluates them to types (`unity.ir.types`) and parameter specifications. A type checker sees
``typing.Annotated``, so that ``f32[Tensor, n]`` is to it a `Tensor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from unity.arguments import public
from unity.errors import UnityError, trim_frames
from unity.ir import dims as _dims
from unity.ir.dims import Dim, SymDim, as_dim
from unity.ir.dtype import BOOL, SHORT_NAMES, Array, DType, dtype
from unity.ir.types import PrimType, TensorType

if TYPE_CHECKING:
    from typing import Annotated as bf16
    from typing import Annotated as boolean
    from typing import Annotated as f4e2m1
    from typing import Annotated as f8e4m3
    from typing import Annotated as f8e4m3fnuz
    from typing import Annotated as f8e5m2
    from typing import Annotated as f8e5m2fnuz
    from typing import Annotated as f16
    from typing import Annotated as f32
    from typing import Annotated as f64
    from typing import Annotated as i2
    from typing import Annotated as i4
    from typing import Annotated as i8
    from typing import Annotated as i16
    from typing import Annotated as i32
    from typing import Annotated as i64
    from typing import Annotated as u2
    from typing import Annotated as u4
    from typing import Annotated as u8
    from typing import Annotated as u16
    from typing import Annotated as u32
    from typing import Annotated as u64

    import numpy as np

    Number: TypeAlias = "Scalar | SymDim | int | float | bool"
    Index: TypeAlias = "Scalar | SymDim | int"
    Part: TypeAlias = "SymDim | int | Tensor | slice[object, object, object] | EllipsisType | None"
    Operand: TypeAlias = "Tensor | Array | np.generic | int | float | bool"
    Summand: TypeAlias = "Operand | SymDim"

    class Size(SymDim):
        """A symbolic size; a program may loop to it and calculate with it as with a number."""

        def __add__(self, other: float | SymDim) -> Size: ...
        def __radd__(self, other: float) -> Size: ...
        def __sub__(self, other: float | SymDim) -> Size: ...
        def __rsub__(self, other: float) -> Size: ...
        def __mul__(self, other: float | SymDim) -> Size: ...
        def __rmul__(self, other: float) -> Size: ...
        def __truediv__(self, other: float | SymDim) -> Size: ...
        def __rtruediv__(self, other: float) -> Size: ...
        def __floordiv__(self, other: int | SymDim) -> Size: ...
        def __rfloordiv__(self, other: int) -> Size: ...
        def __mod__(self, other: int | SymDim) -> Size: ...
        def __rmod__(self, other: int) -> Size: ...
        def __pow__(self, other: int) -> Size: ...
        def __neg__(self) -> Size: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...
        def __eq__(self, other: object) -> bool: ...
        def __ne__(self, other: object) -> bool: ...
        def __hash__(self) -> int: ...
        def __lt__(self, other: Index) -> bool: ...
        def __le__(self, other: Index) -> bool: ...
        def __gt__(self, other: Index) -> bool: ...
        def __ge__(self, other: Index) -> bool: ...

    class Scalar:
        """A scalar inside a prim func: a loop variable, an element of a buffer, a sum of them."""

        def __add__(self, other: Number) -> Scalar: ...
        def __radd__(self, other: Number) -> Scalar: ...
        def __sub__(self, other: Number) -> Scalar: ...
        def __rsub__(self, other: Number) -> Scalar: ...
        def __mul__(self, other: Number) -> Scalar: ...
        def __rmul__(self, other: Number) -> Scalar: ...
        def __truediv__(self, other: Number) -> Scalar: ...
        def __rtruediv__(self, other: Number) -> Scalar: ...
        def __floordiv__(self, other: Number) -> Scalar: ...
        def __rfloordiv__(self, other: Number) -> Scalar: ...
        def __mod__(self, other: Number) -> Scalar: ...
        def __rmod__(self, other: Number) -> Scalar: ...
        def __neg__(self) -> Scalar: ...
        def __abs__(self) -> Scalar: ...
        def __and__(self, other: Number) -> Scalar: ...
        def __or__(self, other: Number) -> Scalar: ...
        def __xor__(self, other: Number) -> Scalar: ...
        def __lshift__(self, other: Number) -> Scalar: ...
        def __rshift__(self, other: Number) -> Scalar: ...
        def __lt__(self, other: Number) -> bool: ...
        def __le__(self, other: Number) -> bool: ...
        def __gt__(self, other: Number) -> bool: ...
        def __ge__(self, other: Number) -> bool: ...

    class Buffer:
        """A piece of memory that a prim func reads and writes by index."""

        def __getitem__(self, index: Index | slice | tuple[Index | slice, ...]) -> Scalar: ...
        def __setitem__(self, index: Index | tuple[Index, ...], value: Number) -> None: ...

    class Tensor:
        """A value of a graph function: a tensor or a tuple of tensors."""

        shape: tuple[Size, ...]
        ndim: int
        dtype: str

        def __add__(self, other: Summand) -> Tensor: ...
        def __radd__(self, other: Summand) -> Tensor: ...
        def __sub__(self, other: Summand) -> Tensor: ...
        def __rsub__(self, other: Summand) -> Tensor: ...
        def __mul__(self, other: Summand) -> Tensor: ...
        def __rmul__(self, other: Summand) -> Tensor: ...
        def __truediv__(self, other: Summand) -> Tensor: ...
        def __rtruediv__(self, other: Summand) -> Tensor: ...
        def __floordiv__(self, other: Summand) -> Tensor: ...
        def __rfloordiv__(self, other: Summand) -> Tensor: ...
        def __mod__(self, other: Summand) -> Tensor: ...
        def __rmod__(self, other: Summand) -> Tensor: ...
        def __pow__(self, other: Summand) -> Tensor: ...
        def __rpow__(self, other: Summand) -> Tensor: ...
        def __matmul__(self, other: Tensor) -> Tensor: ...
        def __and__(self, other: Tensor | Array | int) -> Tensor: ...
        def __rand__(self, other: int) -> Tensor: ...
        def __or__(self, other: Tensor | Array | int) -> Tensor: ...
        def __ror__(self, other: int) -> Tensor: ...
        def __xor__(self, other: Tensor | Array | int) -> Tensor: ...
        def __rxor__(self, other: int) -> Tensor: ...
        def __lshift__(self, other: Tensor | Array | int) -> Tensor: ...
        def __rshift__(self, other: Tensor | Array | int) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __eq__(self, other: object) -> Any: ...  # a Tensor, which object's can't be
        def __ne__(self, other: object) -> Any: ...
        def __hash__(self) -> int: ...
        def __index__(self) -> int: ...  # of a scalar: range(k)
        def __lt__(self, other: Summand) -> Tensor: ...
        def __le__(self, other: Summand) -> Tensor: ...
        def __gt__(self, other: Summand) -> Tensor: ...
        def __ge__(self, other: Summand) -> Tensor: ...
        def __getitem__(self, index: Part | tuple[Part, ...]) -> Tensor: ...
        def __iter__(self) -> Iterator[Tensor]: ...

else:
    Size = SymDim

    class Scalar:
        """A scalar inside a prim func: a loop variable, an element of a buffer, a sum of them."""

    class Buffer:
        """A piece of memory that a prim func reads and writes by index."""

        def __init__(self, *_args: object, **_named: object) -> None:
            raise _of_tvm(Buffer)

    class Tensor:
        """A value of a graph function: a tensor or a tuple of tensors."""

        def __init__(self, *_args: object, **_named: object) -> None:
            raise _of_tvm(Tensor)


def tvms_spelling(kind: type) -> tuple[str, str]:
    """Why ``R.Tensor((n, 4), "float32")`` is refused, and what to write: message and hint."""
    theirs = f"R.{kind.__name__}" if kind is Tensor else f"T.{kind.__name__}"
    return (
        f"{theirs}(...) is TVM's spelling of a type",
        f"write f32[{kind.__name__}, n, 4]; or read TVM's by "
        "from unity.script.tvmscript import I, R, T",
    )


def _of_tvm(kind: type) -> UnityError:
    message, hint = tvms_spelling(kind)
    return UnityError(message, hint=hint)


@dataclass(frozen=True, slots=True)
class Rank:
    """``R.rank(2)`` in place of a shape: only the number of dims is known."""

    ndim: int


@dataclass(frozen=True, slots=True)
class Strides:
    """``T.strides(s0, s1)``: a buffer's strides, in elements."""

    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """``T.scope("shared")``: which memory a buffer is in."""

    name: str


@dataclass(frozen=True, slots=True)
class Align:
    """``T.align(16)``: a buffer's alignment in bytes."""

    bytes: int


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """A prim func's buffer parameter, as its annotation says it."""

    shape: tuple[object, ...]
    dtype: DType
    strides: tuple[object, ...] | None = None
    scope: str = "global"
    align: int = 64


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A prim func's scalar parameter: ``T.scalar("float32")``."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class SizeSpec:
    """A prim func's size parameter: ``T.size``."""


@dataclass(frozen=True, slots=True)
class Element:
    """A dtype that is subscripted: ``f32[Tensor, n]`` is a type, ``f32[Buffer, n]`` a parameter.

    >>> Element(dtype("float32"))[Tensor, 2, 3]
    TensorType(shape=(2, 3), dtype=DType(name='float32', lanes=1), device=None)
    """

    dtype: DType | None

    @public
    def __getitem__(self, items: object) -> TensorType | PrimType | BufferSpec | ScalarSpec:
        """The annotation's meaning.

        Raises:
            UnityError: It has none.
        """
        try:
            return self._meaning(items)
        except UnityError as error:
            trim_frames(error, Element.__getitem__.__code__)
            raise

    def _meaning(self, items: object) -> TensorType | PrimType | BufferSpec | ScalarSpec:
        parts: tuple[object, ...] = items if isinstance(items, tuple) else (items,)
        kind, rest = parts[0], parts[1:]
        if kind is Tensor:
            return TensorType(_tensor_shape(rest), self.dtype)
        if self.dtype is None:
            raise UnityError("only a Tensor may have an unknown dtype")
        if kind is Buffer:
            return _buffer_spec(rest, self.dtype)
        if kind is Scalar:
            return ScalarSpec(self.dtype)
        if kind in (int, float, bool):
            return _scalar_type(kind, rest, self.dtype)
        raise UnityError(
            f"the first thing in the brackets must be Tensor, Buffer or T.Scalar, got {kind!r}",
            hint="write f32[Tensor, n, 128] in a function, f32[Buffer, n, 128] in a prim_func",
        )


@public
def Prim(name: str, value: object = None) -> PrimType:  # noqa: N802
    """The type of a scalar: ``R.Prim("int64")``, or with its value, ``R.Prim("int64", n)``.

    For type checkers, which take no calls in annotations, ``i64[int, R.Prim]`` is the same, and
    ``i64[int, R.Prim, n]``; a scalar is a number of Python to them.
    """
    return PrimType(dtype(name), None if value is None else as_dim(value))


def _scalar_type(kind: object, rest: Sequence[object], of: DType) -> PrimType:
    """What ``i64[int, R.Prim]`` means."""
    wanted = bool if of == BOOL else float if of.is_float else int
    match rest:
        case (word, *value) if word is Prim and len(value) < 2 and kind is wanted:
            return Prim(of.name, *value)
        case _:
            raise UnityError(
                f"to type checkers, a scalar of {of} is of the class {wanted.__name__}",
                hint=f"write [{wanted.__name__}, R.Prim], or with its value "
                f"[{wanted.__name__}, R.Prim, n]",
            )


def _tensor_shape(rest: Sequence[object]) -> tuple[Dim, ...] | int | None:
    match rest:
        case () | (EllipsisType(),):
            return None
        case (Rank(ndim),):
            return ndim
        case ((),):
            return ()
        case _:
            return tuple(extent(value) for value in rest)


def extent(value: object) -> Dim:
    """A value in an annotation as a dim.

    Raises:
        UnityError: It is none.
    """
    found = as_dim(value)
    if isinstance(found, int) and found < 0:
        raise UnityError(f"a dim can't be negative, got {found}")
    return found


def _buffer_spec(rest: Sequence[object], element: DType) -> BufferSpec:
    spec, said = BufferSpec((), element), set[type]()
    for k, part in enumerate(rest):
        if isinstance(part, Strides | Scope | Align):
            if type(part) in said:
                raise UnityError(f"T.{type(part).__name__.lower()} is said twice")
            said.add(type(part))
        match part:
            case Strides(values):
                spec = replace(spec, strides=values)
            case Scope(name):
                spec = replace(spec, scope=name)
            case Align(count):
                spec = replace(spec, align=count)
            case () if k == 0 and not any(isinstance(p, int | SymDim) for p in rest):
                pass
            case _:
                if said:
                    raise UnityError("dims come before T.strides, T.scope and T.align")
                spec = replace(spec, shape=(*spec.shape, extent(part)))
    return spec


@public
def dim(
    name: str,
    *,
    min: int = 0,
    max: int | None = None,
    multiple_of: int = 1,
    typical: int | None = None,
) -> Size:
    """The symbol of this name: an unknown size, to be used in shapes.

    Args:
        name: A Python identifier.
        min: Least value it may take.
        max: Greatest value it may take, None for no limit.
        multiple_of: A number it is always divisible by.
        typical: What it usually is: what costs are estimated at. Any other value works as well.

    Raises:
        UnityError: The name is no identifier, or the facts contradict each other.
    """
    symbol: object = _dims.dim(name, min=min, max=max, multiple_of=multiple_of, typical=typical)
    return cast("Size", symbol)


if not TYPE_CHECKING:
    bf16, boolean, f4e2m1, f8e4m3, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f16, f32, f64 = (
        Element(dtype(SHORT_NAMES[short]))
        for short in (
            "bf16",
            "boolean",
            "f4e2m1",
            "f8e4m3",
            "f8e4m3fnuz",
            "f8e5m2",
            "f8e5m2fnuz",
            "f16",
            "f32",
            "f64",
        )
    )
    i2, i4, i8, i16, i32, i64 = (Element(dtype(f"int{bits}")) for bits in (2, 4, 8, 16, 32, 64))
    u2, u4, u8, u16, u32, u64 = (Element(dtype(f"uint{bits}")) for bits in (2, 4, 8, 16, 32, 64))

__all__ = [
    "Align",
    "Buffer",
    "BufferSpec",
    "Element",
    "Prim",
    "Rank",
    "Scalar",
    "ScalarSpec",
    "Scope",
    "SizeSpec",
    "Strides",
    "Tensor",
    "bf16",
    "boolean",
    "dim",
    "f4e2m1",
    "f8e4m3",
    "f8e4m3fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "f16",
    "f32",
    "f64",
    "i2",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "u2",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
]
