"""Whether two ways of computing a program agree: what is fast and wrong is no way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.ir.graph import Function
from unity.ir.types import TensorType, TupleType, Type

TOLERANCE, NARROW_TOLERANCE = 1e-3, 5e-2
"""How far results may be apart, relative to the largest; where numbers of 8 or 16 bits pass."""


def tolerance_of(function: Function) -> float:
    """How far apart results of a function may be."""
    made = [b.var.type for block in function.body.blocks for b in block.bindings]
    types = [*(p.type for p in function.params), *made]
    return NARROW_TOLERANCE if any(map(_is_narrow, types)) else TOLERANCE


def _is_narrow(t: Type) -> bool:
    if isinstance(t, TupleType):
        return any(map(_is_narrow, t.fields))
    if not isinstance(t, TensorType) or t.dtype is None:
        return False
    kind = t.dtype.numpy
    return kind != np.dtype(bool) and np.dtype(kind).itemsize < 4


def copied(result: object) -> object:
    """Results that stay as they are: a cache is written in place by the next run."""
    if isinstance(result, np.ndarray):
        return result.copy()
    return tuple(map(copied, result)) if isinstance(result, tuple | list) else result


def disagreement(got: object, want: object, tolerance: float) -> str | None:
    """How results differ from those expected; None if they don't.

    Args:
        got: An array, or a sequence of results.
        want: What is expected.
        tolerance: Of differences, relative to the largest finite number expected.

    >>> import numpy as np
    >>> nan = np.array([1.0, np.nan])
    >>> disagreement((nan, nan), (nan, nan + 1e-6), 1e-3)
    >>> disagreement(2 * nan, nan, 1e-3)
    'its result differs from ours by 1 of the largest number'
    >>> disagreement(np.ones(2), nan, 1e-3)
    'its result is finite, infinite or no number elsewhere than ours'
    """
    if isinstance(want, Sequence):
        if not isinstance(got, Sequence) or len(got) != len(want):
            return "it has another number of results than ours"
        found = (disagreement(g, w, tolerance) for g, w in zip(got, want, strict=True))
        return next((why for why in found if why is not None), None)
    try:
        ours, other = np.asarray(want, np.float64), np.asarray(got, np.float64)
    except (TypeError, ValueError):
        return None  # no numbers
    if ours.shape != other.shape:
        return f"its result has the shape {other.shape}, ours {ours.shape}"
    finite = np.isfinite(ours)
    if not np.array_equal(
        np.where(finite, 0.0, ours), np.where(np.isfinite(other), 0.0, other), equal_nan=True
    ):
        return "its result is finite, infinite or no number elsewhere than ours"
    if not finite.any():
        return None
    largest = float(np.abs(ours[finite]).max())
    error = float(np.abs(other[finite] - ours[finite]).max()) / (largest or 1.0)
    return (
        f"its result differs from ours by {error:.2g} of the largest number"
        if (error > tolerance)
        else None
    )
