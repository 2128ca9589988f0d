"""Surrounding with a border, and moving between space and channels or batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.relay.syntax import AttrValue
from unity.frontend.run_time.padding import filled
from unity.ir.dims import Dim
from unity.ir.graph import Constant, Expr

from .layouts import transform


def pairs(c: RelayCall, name: str) -> tuple[tuple[int, int], ...]:
    """An attribute of pairs of ints."""
    found = c.attribute(name)
    items = found if isinstance(found, tuple) else ()
    known = [p for p in (_pair(i) for i in items) if p is not None]
    if len(known) != len(items) or not isinstance(found, tuple):
        raise UnityError(f"the attribute {name!r} must be pairs of ints, got {found!r}")
    return tuple(known)


def _pair(value: AttrValue) -> tuple[int, int] | None:
    match value:
        case (int() as first, int() as second):
            return first, second
        case _:
            return None


def _pad(c: RelayCall) -> Expr:
    x, given = c.tensor(0), c.attribute("pad_value")
    value = c.tensor(1) if len(c.operands) > 1 else None
    if value is None and given is not None:
        value = c.number(c.real("pad_value"), x)
    return padded(c, x, pairs(c, "pad_width"), c.text("pad_mode"), value)


def padded(
    c: RelayCall, x: Expr, widths: Sequence[tuple[int, int]], mode: str, value: Expr | None
) -> Expr:
    """A tensor with so many elements before and behind it along each axis."""
    if mode not in ("constant", "edge", "reflect"):
        raise c.gap(f"pad_mode={mode!r}")
    flat = tuple(w for pair in widths for w in pair)
    if min(flat, default=0) < 0:
        raise UnityError(f"pads by less than nothing: {widths}")
    if value is not None and not isinstance(value, Constant):
        if mode != "constant":
            return c.op("nn.pad", x, flat, pad_mode=mode)
        return filled(c, x, flat, c.cast(c.op("reshape", value, ()), c.dtype_of(x)))
    fill = 0.0 if value is None else float(value.data.reshape(()))
    own: float = fill if c.dtype_of(x).is_float else int(fill)
    return c.op("nn.pad", x, flat, pad_mode=mode, pad_value=own)


def _mirror_pad(c: RelayCall) -> Expr:
    x, widths, mode = c.tensor(0), pairs(c, "pad_width"), c.text("mode")
    if mode == "REFLECT":
        return c.op("nn.pad", x, tuple(w for p in widths for w in p), pad_mode="reflect")
    if mode != "SYMMETRIC":
        raise UnityError(f"mode must be 'SYMMETRIC' or 'REFLECT', got {mode!r}")
    for axis, (before, after) in enumerate(widths):
        parts = [x]
        if before:
            parts.insert(0, _mirrored(c, x, axis, 0, before))
        if after:
            extent = c.shape_of(x)[axis]
            parts.append(_mirrored(c, x, axis, extent - after, extent))
        x = parts[0] if len(parts) == 1 else c.op("concat", parts, axis=axis)
    return x


def _mirrored(c: RelayCall, x: Expr, axis: int, first: Dim, last: Dim) -> Expr:
    part = c.op("strided_slice", x, axes=(axis,), begin=(first,), end=(last,))
    return c.op("flip", part, axis=axis)


def _depth_to_space(c: RelayCall) -> Expr:
    layout = c.text("layout")
    x = transform(c, c.tensor(0), layout, "NCHW")
    found = c.op("depth_to_space", x, block_size=c.integer("block_size"), mode=c.text("mode"))
    return transform(c, found, "NCHW", layout)


def _space_to_depth(c: RelayCall) -> Expr:
    layout = c.text("layout")
    c.drop("mode")  # of the other direction
    x = transform(c, c.tensor(0), layout, "NCHW")
    return transform(
        c, c.op("space_to_depth", x, block_size=c.integer("block_size")), "NCHW", layout
    )


def _space_to_batch(c: RelayCall) -> Expr:
    x, block, widths = c.tensor(0), c.integers("block_shape"), pairs(c, "paddings")
    count, fill = len(block), c.real("pad_value")
    around = ((0, 0), *widths, *((0, 0),) * (c.rank() - 1 - count))
    x = padded(c, x, around, "constant", c.number(fill, x))
    batch, *shape = c.shape_of(x)
    split = [d for n, b in zip(shape, block, strict=False) for d in (n // b, b)]
    rest = shape[count:]
    x = c.op("reshape", x, (batch, *split, *rest))
    blocks, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    x = c.transposed(x, (*blocks, 0, *outer, *range(2 * count + 1, 2 * count + 1 + len(rest))))
    return c.op("reshape", x, (batch * prod(block), *split[::2], *rest))


def _batch_to_space(c: RelayCall) -> Expr:
    x, block, crops = c.tensor(0), c.integers("block_shape"), pairs(c, "crops")
    count = len(block)
    batch, *shape = c.shape_of(x)
    rest = shape[count:]
    x = c.op("reshape", x, (*block, batch // prod(block), *shape))
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    x = c.transposed(x, (*order, *range(2 * count + 1, 2 * count + 1 + len(rest))))
    whole = tuple(n * b for n, b in zip(shape, block, strict=False))
    x = c.op("reshape", x, (batch // prod(block), *whole, *rest))
    begin = tuple(first for first, _ in crops)
    end = tuple(n - last for n, (_, last) in zip(whole, crops, strict=True))
    axes = tuple(range(1, 1 + count))
    return c.op("strided_slice", x, axes=axes, begin=begin, end=end)


def _dilate(c: RelayCall) -> Expr:
    """Elements with ``stride - 1`` of a value between them along each axis."""
    x, strides, value = c.tensor(0), c.integers("strides"), c.real("dilation_value")
    for axis, stride in enumerate(strides):
        if stride == 1:
            continue
        shape = c.shape_of(x)
        x = c.op("reshape", x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        widths = [(0, 0)] * (len(shape) + 1)
        widths[axis + 1] = (0, stride - 1)
        x = padded(c, x, widths, "constant", c.number(value, x))
        wide = (*shape[:axis], shape[axis] * stride, *shape[axis + 1 :])
        x = c.op("reshape", x, wide)
        x = c.op("strided_slice", x, axes=(axis,), begin=(0,), end=(wide[axis] - stride + 1,))
    return x


def _sliding_window(c: RelayCall) -> Expr:
    """Windows over the axes from one on: an axis for where each is, then one for what it holds."""
    x, first = c.tensor(0), c.axis(c.integer("axis"), c.rank())
    windows, strides = c.integers("window_shape"), c.integers("strides")
    count = len(windows)
    for i, (window, stride) in enumerate(zip(windows, strides, strict=True)):
        axis = first + i
        shape = c.shape_of(x)
        steps = (shape[axis] - window) // stride + 1
        starts = c.op("multiply", c.op("arange", steps), stride)
        places = c.op("add", c.op("reshape", starts, (steps, 1)), c.op("arange", window))
        x = c.op("take", x, places, axis=axis)  # (..., steps, window, ...)
        rank = len(shape) + 1
        order = [a for a in range(rank) if a != axis + 1]
        order.insert(first + count + i, axis + 1)
        x = c.transposed(x, order)
    return x


CONVERTERS: dict[str, Converter] = {
    "nn.pad": _pad,
    "nn.mirror_pad": _mirror_pad,
    "nn.depth_to_space": _depth_to_space,
    "nn.space_to_depth": _space_to_depth,
    "nn.space_to_batch_nd": _space_to_batch,
    "nn.batch_to_space_nd": _batch_to_space,
    "nn.dilate": _dilate,
    "sliding_window": _sliding_window,
}
