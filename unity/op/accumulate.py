"""In which dtype an op works: kernels in float32 at least, references in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unity import te
from unity.ir.dtype import FLOAT32, FLOAT64, Array, DType, dtype
from unity.ir.prim_expr import PrimExpr

Real: TypeAlias = npt.NDArray[np.float64]
Summand: TypeAlias = npt.NDArray[Any]
"""Of float64, or of int64."""


def working_dtype(of: DType) -> DType:
    """The dtype a kernel works in: float32 for narrower floats, else the same."""
    return FLOAT32 if of.is_float and of.bits < 32 else of


def mean_dtype(of: DType) -> DType:
    """The dtype of a mean: of integers float64, as numpy has it, else the same."""
    return FLOAT64 if of.is_int else of


def widened(value: PrimExpr) -> PrimExpr:
    """A value in its working dtype."""
    return te.cast(value, working_dtype(value.dtype))


def narrowed(total: te.Tensor, out: DType) -> te.Tensor:
    """What was summed up in its working dtype, in the dtype of the result."""
    if total.dtype == out:
        return total
    return te.compute(total.shape, lambda *i: te.cast(total[i], out), "cast")


def exact(array: Array) -> Array:
    """An array as a reference works on it: float64 for any float."""
    return array.astype(np.float64) if dtype(array.dtype).is_float else array


def real(array: Array) -> Real:
    """An array of numbers in float64."""
    return array.astype(np.float64)


def summand(array: Array) -> Summand:
    """An array as references add products of it: float64, of integers int64, which wraps alike.

    >>> total = summand(np.array([2**31 - 1], np.int32)) ** 2 * 9
    >>> int(total.astype(np.int32)[0])
    9
    """
    return real(array) if dtype(array.dtype).is_float else array.astype(np.int64)


def rounded(array: Array, like: Array) -> Array:
    """A result in the dtype of an argument."""
    return np.asarray(array).astype(like.dtype)


def unary(function: Callable[[Array], Array], array: Array) -> Array:
    """An elementwise function applied in float64, rounded to the argument's dtype."""
    with np.errstate(all="ignore"):
        return rounded(function(exact(array)), array)
