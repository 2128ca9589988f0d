"""Reshape and Expand to shapes that are known only at run time.

What -1, 0 and 1 stand for is worked out then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.frontend.emission import Emission
from unity.frontend.reshaping import reshaped
from unity.ir.dims import Dim, product
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

from .vectors import Ints, bound, length_of, matched, vector_of


def reshaped_to(
    node: Emission, x: Expr, target: Ints, known: Sequence[Dim | None], *, zero_is_zero: bool
) -> Expr:
    """A tensor of another shape.

    Args:
        node: What this is emitted for.
        x: The tensor.
        target: The shape, of known length; it may hold one -1.
        known: What is known of its elements: sizes above 0.
        zero_is_zero: Whether a 0 is an empty dim; else it copies the dim at its place.
    """
    old = node.shape_of(x)
    count = length_of(node, target.value, "a shape")
    if count == 0:
        return reshaped(node, x, (), copies=False)
    if not zero_is_zero and old:
        copied = vector_of(node, (*old, *(0,) * (count - len(old)))[:count])
        target = target.equals(0).choose(copied, target)
    open_end = target.equals(-1)
    one = Ints(node, node.op("sum", node.op("astype", open_end.value, dtype=INT64), axis=None))
    others = open_end.choose(1, target).count()
    rest = vector_of(node, (product(old),)) // others.most(1)
    free = (open_end & one.equals(1)).choose(rest, target)
    symbols = bound(node, free, "dim")
    shape = tuple(s if k is None else k for s, k in zip(symbols, known, strict=True))
    return reshaped(node, x, shape, copies=False)


def expanded(node: Emission, x: Expr, wanted: Ints) -> Expr:
    """A tensor broadcast to a shape, which is itself broadcast: a 1 keeps the dim at its place.

    Dims that don't broadcast are an error at run time.
    """
    old = node.shape_of(x)
    count = length_of(node, wanted.value, "a shape")
    rank = max(count, len(old))
    if rank == 0:
        return x
    if count < rank:
        ones = Constant(np.ones(rank - count, np.int64))
        wanted = Ints(node, node.op("concat", (ones, wanted.value), axis=0))
    if len(old) < rank:
        x = node.op("reshape", x, (*(1,) * (rank - len(old)), *old))
    own = vector_of(node, node.shape_of(x))
    target = wanted.equals(1).choose(own, wanted)
    fits = own.equals(1).op("logical_or", own.equals(target))
    rule = "a dim and that of the shape it is expanded to must be equal where they are not 1"
    matched(node, fits.choose(0, 1).value, (0,) * rank, "dims_do_not_broadcast", rule)
    symbols = bound(node, target, "dim")
    shape = tuple(
        d if isinstance(d, int) and d > 1 else s
        for d, s in zip(node.shape_of(x), symbols, strict=True)
    )
    return node.op("stretch", x, shape)
