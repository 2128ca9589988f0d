"""The largest or least element of a whole tensor, found axis by axis from the last.

The extremes of rows are then kernels of vectors, and there are few left of them; the result is the
same in any order.
"""

from __future__ import annotations

from unity.ir.graph import Expr

from .emission import Emission


def extreme_of_all(node: Emission, name: str, x: Expr, *, keepdims: bool = False) -> Expr:
    """The extreme of all elements: ``max`` or ``min``."""
    rank = len(node.shape_of(x))
    for axis in range(rank - 1, 0, -1):
        x = node.op(name, x, axis=(axis,), keepdims=keepdims)
    return node.op(name, x, axis=None, keepdims=keepdims)
