"""Padding by widths that are known only at run time; negative ones take away."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.emission import Emission
from unity.ir.dims import Dim, as_dim, dim_min, equal
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr
from unity.ir.types import Shape

from .vectors import Ints, bound, ints_of, vector_of

MODES = ("constant", "reflect", "edge", "wrap")


def padded(
    node: Emission, x: Expr, before: Ints, after: Ints, mode: str, fill: Expr | None
) -> Expr:
    """A tensor with elements before and behind it.

    Args:
        node: What this is emitted for.
        x: The tensor.
        before: How many come before, for each axis.
        after: How many come behind.
        mode: One of `MODES`.
        fill: A scalar of the tensor's dtype, for the mode constant; 0 by default.
    """
    if mode not in MODES:
        raise UnityError(f"the mode must be one of {', '.join(MODES)}, got {mode!r}")
    cut = bound(node, (-before).most(0), "cut"), bound(node, (-after).most(0), "cut_end")
    x = without_ends(node, x, *cut)
    first, last = bound(node, before.most(0), "pad"), bound(node, after.most(0), "pad_end")
    if mode == "constant":
        widths = tuple(w for pair in zip(first, last, strict=True) for w in pair)
        return filled(node, x, widths, fill)
    for axis in range(len(node.shape_of(x))):
        x = _gathered(node, x, axis, first[axis], last[axis], mode)
    return x


def without_ends(node: Emission, x: Expr, before: Shape, after: Shape) -> Expr:
    """A tensor without so many elements at both ends of each axis, checked to be there."""
    shape = node.shape_of(x)
    over = [a for a in range(len(shape)) if not (equal(before[a], 0) and equal(after[a], 0))]
    if not over:
        return x
    left, whole = list(shape), list(shape)
    for a in over:
        rest = as_dim(shape[a] - before[a] - after[a])
        left[a] = rest if isinstance(rest, int) else node.sized(rest, f"{node.label}_left")
        whole[a] = as_dim(left[a] + before[a] + after[a])
    if tuple(whole) != shape:
        x = node.assert_shape(x, tuple(whole))
    begin = tuple(before[a] for a in over)
    end = tuple(as_dim(before[a] + left[a]) for a in over)
    part = node.op("strided_slice", x, axes=tuple(over), begin=begin, end=end, strides=None)
    return node.assert_shape(part, tuple(left)) if node.shape_of(part) != tuple(left) else part


def filled(node: Emission, x: Expr, widths: Shape, fill: Expr | None) -> Expr:
    """A tensor padded with one value, which may be known only at run time.

    Args:
        node: What this is emitted for.
        x: The tensor.
        widths: For each axis how many elements come before and how many behind.
        fill: A scalar; 0 by default.
    """
    if fill is None or isinstance(fill, Constant):
        number = 0 if fill is None else fill.data.reshape(()).item()
        value = float(number) if node.dtype_of(x).is_float else int(number)
        return node.op("nn.pad", x, widths, pad_mode="constant", pad_value=value)
    inside: Expr | None = None
    shape = node.shape_of(x)
    for axis, extent in enumerate(shape):
        before, after = widths[2 * axis : 2 * axis + 2]
        if equal(before, 0) and equal(after, 0):
            continue
        whole = as_dim(before + extent + after)
        at = ints_of(node, node.op("arange", 0, whole, 1, dtype=INT64))
        first, end = vector_of(node, (before,)), vector_of(node, (as_dim(before + extent),))
        here = (at > first - 1) & (at < end)
        line = tuple(whole if a == axis else 1 for a in range(len(shape)))
        placed = node.op("reshape", here.value, line)
        inside = placed if inside is None else node.op("logical_and", inside, placed)
    found = node.op("nn.pad", x, widths)
    return found if inside is None else node.op("where", inside, found, fill)


def _gathered(node: Emission, x: Expr, axis: int, before: Dim, after: Dim, mode: str) -> Expr:
    """An axis with what a mode puts before and behind it, as far as it goes."""
    extent = node.shape_of(x)[axis]
    something = as_dim(dim_min(as_dim(before + after), 1) * (1 - dim_min(extent, 1)))
    node.require(
        something,
        0,
        f"pads_the_empty_axis_{axis}",
        f"axis {axis} is empty: there is nothing to pad it with",
    )
    whole = as_dim(before + extent + after)
    at = ints_of(node, node.op("arange", 0, whole, 1, dtype=INT64)) - vector_of(node, (before,))
    last = vector_of(node, (as_dim(extent - 1),))
    match mode:
        case "edge":
            at = at.most(0).least(last)
        case "wrap":
            at = at.op("floor_mod", (last + 1).most(1))
        case _:
            period = (last * 2).most(1)
            around = at.op("floor_mod", period)
            at = around.least(period - around).least(last.most(0))
    return node.op("take", x, at.value, axis=axis)
