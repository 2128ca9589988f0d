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
    a, b = inner_aligned(node, *broadcast(node, (a, b), inner=2))
    return node.op("matmul", a, b, out_dtype=out)


def inner_aligned(node: Emission, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both with inner dims asserted to be equal where one is a symbol: it is the other, if known.

    So a matrix of known extents, which a constant is, stays one.
    """
    left, right = node.shape_of(a), node.shape_of(b)
    if not left or not right:
        return a, b
    own = right[-2 if len(right) > 1 else -1]
    if isinstance(own, int):
        return node.agreed(a, (*(None for _ in left[1:]), own)), b
    wanted: list[Dim | None] = [None] * len(right)
    wanted[-2 if len(right) > 1 else -1] = left[-1]
    return a, node.agreed(b, wanted)
