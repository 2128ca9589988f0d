"""How many lanes of a vector register an axis is given."""

from __future__ import annotations

from unity.ir.prim_expr import PrimExpr

from ..blocks.extents import number


def lanes_for(bits: int, vector_bits: int, extent: PrimExpr) -> int:
    """How many lanes to give an axis: a vector register's, or a power of two that holds it all."""
    lanes = max(2, min(64, vector_bits // max(bits, 8)))
    known = number(extent)
    if known is not None and known < lanes:
        return max(2, 1 << (known - 1).bit_length())
    return lanes
