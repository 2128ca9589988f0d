"""Axes known only at run time: which they are, as a mask over all axes of a tensor.

A tensor is reshaped such that each axis is parted in two, one of which is 1: ``(kept, reduced)``.
Over the second ones any operator reduces as it does over axes that are known. The same mask tells
what shape is left without the axes, or with new ones.
"""

from __future__ import annotations

from unity.frontend.emission import Emission
from unity.frontend.reshaping import reshaped
from unity.ir.dims import as_dim
from unity.ir.dtype import INT64
from unity.ir.graph import Expr
from unity.ir.types import Shape

from .vectors import Ints, bound, length_of, matched, places, vector_of


def mask_of(node: Emission, axes: Ints, rank: int) -> Ints:
    """Which of `rank` axes are listed, as a bool for each; negative ones count from the end.

    That they are in range is checked at run time.
    """
    from_front = checked(node, axes, rank)
    listed = from_front.row(0).equals(places(node, rank).row(1))
    return listed.op("any", axis=1)


def checked(node: Emission, axes: Ints, rank: int) -> Ints:
    """Axes counted from the front, checked at run time to be below the rank.

    So many of them as are known; of others the largest and the least are checked.
    """
    from_front = (axes < 0).choose(axes + rank, axes)
    shape = node.shape_of(from_front.value)
    if shape and not isinstance(shape[0], int):
        inside = (from_front < 0).op("logical_or", from_front > rank - 1)
        wrong = Ints(node, node.op("astype", inside.value, dtype=INT64))
        matched(node, node.op("reshape", wrong.total().value, (1,)), (0,), "axes_out_of_range")
    else:
        bound(node, from_front, "axis", most=rank - 1)
    return from_front


def parted(node: Emission, x: Expr, chosen: Ints) -> tuple[Expr, Shape]:
    """A tensor whose chosen axes are set apart.

    Args:
        node: What this is emitted for.
        x: A tensor of shape ``(d0, d1, ...)``.
        chosen: A mask of its axes.

    Returns:
        The tensor of shape ``(k0, c0, k1, c1, ...)``, where of a chosen axis `k` is 1 and `c` its
        extent, of another the other way round; and ``(k0, k1, ...)``.
    """
    extents = vector_of(node, node.shape_of(x))
    kept = bound(node, chosen.choose(1, extents), "kept")
    over = bound(node, chosen.choose(extents, 1), "over")
    whole = node.assert_shape(x, tuple(as_dim(k * c) for k, c in zip(kept, over, strict=True)))
    pairs = [d for pair in zip(kept, over, strict=True) for d in pair]
    return node.op("reshape", whole, tuple(pairs)), kept


def dropped(node: Emission, x: Expr, extents: Ints, chosen: Ints, count: int) -> Expr:
    """A tensor without its chosen axes, each of extent 1.

    Args:
        node: What this is emitted for.
        x: The tensor; its chosen axes have extent 1.
        extents: The extents of all its axes; those of chosen ones are not looked at.
        chosen: A mask of its axes.
        count: How many different ones are chosen, which is checked.
    """
    rank = len(node.shape_of(x))
    left = _where(node, chosen.negated(), rank - count)
    shape = bound(node, extents.op("take", left, axis=0), "left")
    return reshaped(node, x, shape, copies=False)


def squeezed(node: Emission, x: Expr, axes: Ints) -> Expr:
    """A tensor without some axes, which are checked to be different ones of extent 1."""
    rank = len(node.shape_of(x))
    extents = vector_of(node, node.shape_of(x))
    chosen = mask_of(node, axes, rank)
    matched(node, chosen.choose(extents, 1).value, (1,) * rank, "squeezed")
    return dropped(node, x, extents, chosen, length_of(node, axes.value, "axes"))


def unsqueezed(node: Emission, x: Expr, axes: Ints) -> Expr:
    """A tensor with new axes of extent 1 at places of the result, which are to be different."""
    old = node.shape_of(x)
    rank = len(old) + length_of(node, axes.value, "axes")
    chosen = mask_of(node, axes, rank)
    own = chosen.negated()
    _where(node, own, len(old))
    before = Ints(node, node.op("cumsum", node.op("astype", own.value, dtype=INT64), axis=0))
    if not old:
        return node.op("reshape", x, (1,) * rank)
    at = (before - 1).most(0)
    shape = bound(node, chosen.choose(1, vector_of(node, old).op("take", at, axis=0)), "dim")
    return reshaped(node, x, shape, copies=False)


def between(node: Emission, x: Expr, axis: Ints) -> Expr:
    """A tensor as ``(before, n, after)``: an axis, and what lies before and behind it as one."""
    shape = node.shape_of(x)
    at, every = checked(node, axis, len(shape)), places(node, len(shape))
    extents = vector_of(node, shape)
    outer = (every < at).choose(extents, 1).count()
    own = every.equals(at).choose(extents, 1).count()
    inner = (every > at).choose(extents, 1).count()
    names = (("before", outer), ("extent", own), ("after", inner))
    dims = tuple(d for name, value in names for d in bound(node, value, name))
    return reshaped(node, x, dims, copies=False)


def _where(node: Emission, mask: Ints, count: int) -> Ints:
    """The places where a mask is true, checked to be so many."""
    found = node.op("reshape", node.op("nonzero", mask.value), (-1,))
    return Ints(node, node.assert_shape(found, (count,)))
