"""Matrix products whose inner dims may be unknown: that they are equal is checked at run time."""

from __future__ import annotations

from unity.ir.dims import Dim, equal
from unity.ir.dtype import DType
from unity.ir.graph import Expr

from .broadcasting import broadcast
from .emission import Emission
from .sizes import is_symbolic


def matmul(node: Emission, a: Expr, b: Expr, out: DType | None = None) -> Expr:
    """The product; symbolic dims that must be equal are asserted to be.

    Its sums are of the dtype `out`, by default that of the operands.
    """
    a, b = broadcast(node, (a, b), inner=2)
    return node.op("matmul", a, _inner_aligned(node, a, b), out_dtype=out)


def _inner_aligned(node: Emission, a: Expr, b: Expr) -> Expr:
    """`b` with its inner dim asserted to be that of `a`, where they are symbols."""
    left, right = node.shape_of(a), node.shape_of(b)
    wanted = list(right)
    inner = -2 if len(right) > 1 else -1
    if left and right and _may_differ(left[-1], right[inner]):
        wanted[inner] = left[-1]
    return b if tuple(wanted) == right else node.assert_shape(b, tuple(wanted))


def _may_differ(a: Dim, b: Dim) -> bool:
    return not equal(a, b) and (is_symbolic(a) or is_symbolic(b))
