"""Multiplying integers by reals as gemmlowp does: by an integer of 31 bits, then a shift.

The product is taken in int64 and shifted to the right with a rounding; it is exact to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp

import numpy as np

from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import INT32, INT64
from unity.ir.graph import Constant, Expr

BITS = 31


def multiplier_and_shift(value: float) -> tuple[int, int]:
    """A real as ``multiplier * 2 ** (shift - 31)``, the multiplier at least 2 ** 30.

    >>> multiplier_and_shift(0.75)
    (1610612736, 0)
    """
    if value == 0:
        return 0, 0
    significand, shift = frexp(value)
    multiplier = int(np.floor(significand * (1 << BITS) + 0.5))
    if multiplier == 1 << BITS:
        return multiplier // 2, shift + 1
    return multiplier, shift


def multiplied(
    c: RelayCall, x: Expr, values: Sequence[float], axis: int, *, upward: bool = True
) -> Expr:
    """Integers times a real, or one for each place along an axis, rounded to int32.

    Args:
        c: The call.
        x: The integers.
        values: One real, or as many as the axis is long.
        axis: Which axis that is.
        upward: Whether halves are rounded up, else away from zero.
    """
    found = [multiplier_and_shift(v) for v in values]
    return shifted(c, x, [m for m, _ in found], [s for _, s in found], axis, upward=upward)


def shifted(
    c: RelayCall,
    x: Expr,
    multipliers: Sequence[int],
    shifts: Sequence[int],
    axis: int,
    *,
    upward: bool = True,
) -> Expr:
    """Integers times ``multiplier * 2 ** (shift - 31)``: see `multiplied`."""
    rank = len(c.shape_of(x))
    left = _vector([max(s, 0) for s in shifts], axis, rank)
    right = [BITS + max(-s, 0) for s in shifts]
    wide = c.cast(x, INT64)
    if any(s > 0 for s in shifts):
        wide = c.op("left_shift", wide, left)
    wide = c.op("multiply", wide, _vector(multipliers, axis, rank))
    half = _vector([1 << (r - 1) for r in right], axis, rank)
    if not upward:
        below = _vector([(1 << (r - 1)) - 1 for r in right], axis, rank)
        half_of = c.op("where", c.op("less", wide, 0), below, half)
        wide = c.op("add", wide, half_of)
    else:
        wide = c.op("add", wide, half)
    return c.cast(c.op("right_shift", wide, _vector(right, axis, rank)), INT32)


def _vector(values: Sequence[int], axis: int, rank: int) -> Constant:
    array = np.asarray(values, np.int64)
    if len(array) == 1:
        return Constant(array.reshape(()))
    return Constant(array.reshape(-1, *(1,) * (rank - axis - 1)))


def _fixed_point_multiply(c: RelayCall) -> Expr:
    return shifted(c, c.tensor(0), [c.integer("multiplier")], [c.integer("shift")], 0)


def _per_axis(c: RelayCall) -> Expr:
    """Each place's own multiplier and shifts, which are operands, known ones."""
    x = c.tensor(0)
    axes = tuple(c.axis(a, c.rank()) for a in c.integers("axes"))
    if len(axes) != 1:
        raise c.gap(f"axes={axes}")
    known = [c.known(i, "multipliers and shifts") for i in range(1, 4)]
    multipliers, left, right = ([int(v) for v in k.reshape(-1)] for k in known)
    uses = c.flag("is_lshift_required"), c.flag("is_rshift_required")
    shifts = [
        (a if uses[0] else 0) - (b if uses[1] else 0) for a, b in zip(left, right, strict=True)
    ]
    if any(a and b for a, b in zip(left, right, strict=True)) and all(uses):
        raise c.gap("shifts to the left and to the right at once")
    return shifted(c, x, multipliers, shifts, axes[0])


CONVERTERS: dict[str, Converter] = {
    "fixed_point_multiply": _fixed_point_multiply,
    "fixed_point_multiply_per_axis": _per_axis,
}
