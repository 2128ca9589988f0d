"""Integer tensors whose elements are known as dims: what `Shape` and arithmetic on it give.

Such a `Sizes` lives only during the import. Reshape, Expand, Slice read their dims from it; where a
tensor is needed after all, the op ``dims`` makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity import te
from unity.ir.dims import (
    Dim,
    SymDim,
    always_ge,
    as_dim,
    bounds,
    dim_max,
    dim_min,
    equal,
    floordiv,
    floormod,
)
from unity.ir.dtype import BOOL, INT64, Array, DType, dtype

Dims: TypeAlias = npt.NDArray[np.object_]
SizeRule: TypeAlias = Callable[[Dim, Dim], "Dim | None"]
MOST = 4096
"""No larger constant is looked into: it is data, not sizes."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """A tensor of dims; bools are 0 and 1, and a float one holds whole numbers."""

    dims: Dims
    dtype: DType = INT64

    @property
    def flat(self) -> tuple[Dim, ...]:
        """The elements in row-major order."""
        return tuple(as_dim(d) for d in self.dims.ravel())

    def constant(self) -> Array | None:
        """The array, if every element is a number."""
        flat = self.flat
        if any(not isinstance(d, int) for d in flat):
            return None
        return np.asarray(flat, dtype=np.int64).reshape(self.dims.shape).astype(self.dtype.numpy)


def sizes_of(dims: tuple[Dim, ...] | Dim, of: DType = INT64) -> Sizes:
    """A vector of dims, or a scalar of one."""
    if isinstance(dims, tuple):
        array = np.empty(len(dims), dtype=object)
        array[:] = dims
        return Sizes(array, of)
    scalar = np.empty((), dtype=object)
    scalar[()] = dims
    return Sizes(scalar, of)


def sizes_of_array(array: Array) -> Sizes | None:
    """A small constant of whole numbers as sizes."""
    kind = dtype(array.dtype)
    if array.size > MOST:
        return None
    if kind.is_float:
        values = array.astype(np.float64)
        if not np.all(np.isfinite(values)) or not np.array_equal(values, np.rint(values)):
            return None
    elif not (kind.is_int or kind == BOOL):
        return None
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = number = int(array[index])
        if not _holds(kind, number):
            return None
    return Sizes(result, kind)


def combine(a: Sizes, b: Sizes, rule: SizeRule, of: DType | None = None) -> Sizes | None:
    """Two broadcast together, element by element; None if the rule can't tell one."""
    left, right = np.broadcast_arrays(a.dims, b.dims)
    result, kind = np.empty(left.shape, dtype=object), of or a.dtype
    for index in np.ndindex(left.shape):
        value = rule(as_dim(left[index]), as_dim(right[index]))
        if value is None or not _holds(kind, value):
            return None
        result[index] = value
    return Sizes(result, kind)


def _holds(kind: DType, value: Dim) -> bool:
    """Whether a number is one of a dtype's, and of int64's, in which sizes are counted.

    Any other is data: it wraps or is rounded. An unknown size is never so large.
    """
    if not isinstance(value, int):
        return True
    if not -(1 << 63) <= value < 1 << 63:
        return False
    if kind.is_float:
        return float(np.asarray(value, np.int64).astype(kind.numpy)) == value
    return kind == BOOL or te.min_value(kind).value <= value <= te.max_value(kind).value


def _divide(a: Dim, b: Dim) -> Dim | None:
    """Division truncating towards zero, which is rounding down where nothing is negative."""
    if isinstance(a, int) and isinstance(b, int):
        return None if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    if (bounds(b)[0] or 0) <= 0:
        return None
    if always_ge(a, 0):
        return floordiv(a, b)
    positive = floordiv(dim_max(a, 0), b)
    if always_ge(as_dim(a + b), 1):  # what is less than nothing by less than the divisor
        return positive
    return as_dim(positive - floordiv(dim_max(as_dim(-a), 0), b))


def exact_divide(a: Dim, b: Dim) -> Dim | None:
    """Division of whole floats, where the quotient is whole."""
    return _divide(a, b) if b != 0 and equal(floormod(a, b), 0) else None


def _mod(a: Dim, b: Dim) -> Dim | None:
    return None if b == 0 else floormod(a, b)


def _less(a: Dim, b: Dim) -> Dim | None:
    low, high = bounds(as_dim(b - a))
    if low is not None and low > 0:
        return 1
    return 0 if high is not None and high <= 0 else None


def _less_equal(a: Dim, b: Dim) -> Dim | None:
    low, high = bounds(as_dim(b - a))
    if low is not None and low >= 0:
        return 1
    return 0 if high is not None and high < 0 else None


def _equal(a: Dim, b: Dim) -> Dim | None:
    if equal(a, b):
        return 1
    low, high = bounds(as_dim(b - a))
    apart = (low is not None and low > 0) or (high is not None and high < 0)
    return 0 if apart else None


def _both(a: Dim, b: Dim) -> Dim | None:
    return a * b


ARITHMETIC: dict[str, SizeRule] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divide,
    "Mod": _mod,
    "Max": dim_max,
    "Min": dim_min,
}
COMPARISONS: dict[str, SizeRule] = {
    "Equal": _equal,
    "Less": _less,
    "LessOrEqual": _less_equal,
    "Greater": lambda a, b: _less(b, a),
    "GreaterOrEqual": lambda a, b: _less_equal(b, a),
}
LOGIC: dict[str, SizeRule] = {"And": _both}


def choose(condition: Sizes, a: Sizes, b: Sizes) -> Sizes:
    """`a` where the condition is 1, else `b`."""
    which, left, right = np.broadcast_arrays(condition.dims, a.dims, b.dims)
    result = np.empty(which.shape, dtype=object)
    for index in np.ndindex(which.shape):
        result[index] = left[index] if which[index] == 1 else right[index]
    return Sizes(result, a.dtype)


def is_symbolic(d: Dim) -> bool:
    """Whether a dim holds an unknown."""
    return isinstance(d, SymDim)
