"""Matrix products whose inner dims may be unknown: that they are equal is checked at run time."""

from __future__ import annotations

from unity.ir.dims import Dim
from unity.ir.dtype import DType
from unity.ir.graph import Expr

from .broadcasting import broadcast
from .emission import Emission


def matmul(node: Emission, a: Expr, b: Expr, out: DType | None = None) -> Expr:
    """The product; symbolic dims that must be equal are asserted to be.

    Its sums are of the dtype `out`, by default that of the operands.
    """
    a, b = broadcast(node, (a, b), inner=2)
    return node.op("matmul", a, _inner_aligned(node, a, b), out_dtype=out)


def _inner_aligned(node: Emission, a: Expr, b: Expr) -> Expr:
    """`b` with its inner dim asserted to be that of `a`, where they are symbols."""
    left, rank = node.shape_of(a), len(node.shape_of(b))
    if not left or not rank:
        return b
    wanted: list[Dim | None] = [None] * rank
    wanted[-2 if rank > 1 else -1] = left[-1]
    return node.agreed(b, wanted)
