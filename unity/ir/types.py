"""Types of graph values (what TVM calls struct info).

The relations between types (subtype, join, unify, erase) are in `unity.ir.lattice`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from unity.ir.dims import Dim, dim_text
from unity.ir.dtype import DType

Shape: TypeAlias = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: its shape is known (a tuple of dims), only its rank (an int), or nothing (None)."""

    shape: Shape | int | None
    dtype: DType | None
    device: str | None = None

    @property
    def ndim(self) -> int | None:
        """The rank, if known."""
        return len(self.shape) if isinstance(self.shape, tuple) else self.shape

    def __str__(self) -> str:
        """As messages show it: ``float32(n, 4)``."""
        of = self.dtype or "any dtype"
        if not isinstance(self.shape, tuple):
            return f"{of}({'unknown' if self.shape is None else f'rank {self.shape}'})"
        return f"{of}({', '.join(map(dim_text, self.shape))}{',' * (len(self.shape) == 1)})"


@dataclass(frozen=True, slots=True)
class ShapeType:
    """A shape value: its dims are known, or only their number (an int), or nothing (None)."""

    dims: Shape | int | None

    @property
    def ndim(self) -> int | None:
        """The number of dims, if known."""
        return len(self.dims) if isinstance(self.dims, tuple) else self.dims

    def __str__(self) -> str:
        """As messages show it: ``shape(n, 4)``."""
        if not isinstance(self.dims, tuple):
            return f"shape({'unknown' if self.dims is None else f'rank {self.dims}'})"
        return f"shape({', '.join(map(dim_text, self.dims))})"


@dataclass(frozen=True, slots=True)
class PrimType:
    """A scalar in a register; an integer one may be known as a dim."""

    dtype: DType
    value: Dim | None = None

    def __str__(self) -> str:
        """As messages show it: ``int64 scalar``."""
        return f"{self.dtype} scalar"


@dataclass(frozen=True, slots=True)
class TupleType:
    """A tuple of values."""

    fields: tuple[Type, ...]

    def __str__(self) -> str:
        """As messages show it."""
        return f"({', '.join(map(str, self.fields))})"


@dataclass(frozen=True, slots=True)
class FuncType:
    """A graph function; symbols in the parameters are bound at each call."""

    params: tuple[Type, ...]
    result: Type
    pure: bool = True

    def __str__(self) -> str:
        """As messages show it: ``(float32(n,)) -> float32(n,)``."""
        return f"({', '.join(map(str, self.params))}) -> {self.result}"


@dataclass(frozen=True, slots=True)
class ObjectType:
    """Any value: the top of the lattice."""

    def __str__(self) -> str:
        """As messages show it."""
        return "object"


Type: TypeAlias = TensorType | ShapeType | PrimType | TupleType | FuncType | ObjectType
