"""Pooling over windows, over a fixed number of parts and over everything."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dims import Dim
from unity.ir.dtype import FLOAT64
from unity.ir.graph import Constant, Expr

from .convolutions import data_layout, paddings, steps
from .layouts import parts_of, transform
from .reductions import mean


def _pool(kind: str, rank: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        return _in_output_layout(c, pooled(c, c.tensor(0), kind, rank), rank)

    return convert


def pooled(c: RelayCall, x: Expr, kind: str, rank: int) -> Expr:
    """The pooling that a call's attributes say, in our layout."""
    x = transform(c, x, c.text("layout"), data_layout(rank))
    kernel, strides = steps(c, "pool_size", rank), steps(c, "strides", rank)
    dilation = steps(c, "dilation", rank)
    padding = paddings(c.integers("padding"), rank)
    if c.flag("ceil_mode"):
        padding = _with_room(c, c.shape_of(x)[2:], kernel, strides, dilation, padding)
    windows = {"pool_size": kernel, "strides": strides, "padding": padding, "dilation": dilation}
    if kind == "max":
        return c.op(f"nn.max_pool{rank}d", x, **windows)
    include = c.flag("count_include_pad")
    if c.dtype_of(x).is_float:
        return c.op(f"nn.avg_pool{rank}d", x, count_include_pad=include, **windows)
    return _integer_mean(c, x, rank, include, windows)


def _with_room(
    c: RelayCall,
    extents: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
) -> tuple[int, ...]:
    """Paddings so that a last window that sticks out is whole, as far as it does."""
    rank = len(kernel)
    ends: list[int] = []
    for i, extent in enumerate(extents):
        reach = (kernel[i] - 1) * dilation[i] + 1
        if not isinstance(extent, int):
            if strides[i] > 1:
                raise c.symbolic_gap(f"ceil_mode over the extent {extent}", extent)
            ends.append(padding[rank + i])
            continue
        room = extent + padding[i] + padding[rank + i] - reach
        missing = -room % strides[i]
        ends.append(padding[rank + i] + missing)
        if missing and extent + padding[i] <= room + missing:
            raise c.gap("ceil_mode with a last window of padding alone")
    return (*padding[:rank], *ends)


def _integer_mean(
    c: RelayCall, x: Expr, rank: int, include: bool, windows: dict[str, tuple[int, ...]]
) -> Expr:
    """Sums divided towards zero by how many elements each window holds.

    The sums come of means in float64, which are exact as far as a rounding can tell.
    """
    kernel, kind = windows["pool_size"], c.dtype_of(x)
    count = prod(kernel)
    means = c.op(f"nn.avg_pool{rank}d", c.cast(x, FLOAT64), count_include_pad=True, **windows)
    total = c.cast(c.op("round", c.op("multiply", means, float(count))), kind)
    if include or not any(windows["padding"]):
        return c.op("divide", total, c.number(count, x))
    extents = c.extents(x, "a mean of integers beside padding")[2:]
    counts = np.ones((), np.int64)
    for i, extent in enumerate(extents):
        counts = np.multiply.outer(counts, _taps(i, extent, rank, windows))
    return c.op("divide", total, Constant(np.maximum(counts, 1).astype(kind.numpy)))


def _taps(
    i: int, extent: int, rank: int, windows: dict[str, tuple[int, ...]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """How many elements, none of them padding, each window along an axis holds."""
    kernel, dilation = windows["pool_size"][i], windows["dilation"][i]
    before, after = windows["padding"][i], windows["padding"][rank + i]
    room = extent + before + after - (kernel - 1) * dilation - 1
    starts = np.arange(0, room + 1, windows["strides"][i]) - before
    places = starts[:, None] + np.arange(kernel) * dilation
    inside = (places >= 0) & (places < extent)
    return np.asarray(inside.sum(axis=1), dtype=np.int64)


def _in_output_layout(c: RelayCall, found: Expr, rank: int) -> Expr:
    return transform(c, found, data_layout(rank), c.text("out_layout") or c.text("layout"))


def _global(kind: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        x, layout = c.tensor(0), c.text("layout")
        axes = tuple(i for i, p in enumerate(parts_of(layout)) if p.letter in "DHW")
        if kind == "max":
            found = c.op("max", x, axis=axes, keepdims=True)
        else:
            found = mean(c, x, axes, keepdims=True)
        return transform(c, found, layout, c.text("out_layout") or layout)

    return convert


def _adaptive(kind: str, rank: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        x = transform(c, c.tensor(0), c.text("layout"), data_layout(rank))
        given = c.integers("output_size")
        extents = c.shape_of(x)[2:]
        sizes = extents if not given else given * rank if len(given) == 1 else given
        if kind == "avg" and c.dtype_of(x).is_float and all(isinstance(s, int) for s in sizes):
            found = c.op(f"nn.adaptive_avg_pool{rank}d", x, output_size=tuple(sizes))
            return _in_output_layout(c, found, rank)
        if kind == "avg" and not c.dtype_of(x).is_float:
            raise c.gap(f"elements of {c.dtype_of(x)}")
        for i, size in enumerate(sizes):
            x = _in_parts(c, kind, x, 2 + i, size)
        return _in_output_layout(c, x, rank)

    return convert


def _in_parts(c: RelayCall, kind: str, x: Expr, axis: int, size: Dim) -> Expr:
    """The extremes of an axis in parts, which overlap where their number does not divide it."""
    extent = c.shape_of(x)[axis]
    if extent == size:
        return x
    if size == 1:
        return c.op(kind, x, axis=(axis,), keepdims=True)
    if not isinstance(extent, int) or not isinstance(size, int):
        raise c.symbolic_gap(f"{size} parts of the extent {extent}", extent, size)
    parts = [
        c.op("strided_slice", x, axes=(axis,), begin=(first,), end=(last,))
        for first, last in ((i * extent // size, -(-(i + 1) * extent // size)) for i in range(size))
    ]
    return c.op("concat", [c.op(kind, p, axis=(axis,), keepdims=True) for p in parts], axis=axis)


CONVERTERS: dict[str, Converter] = {
    "nn.max_pool1d": _pool("max", 1),
    "nn.max_pool2d": _pool("max", 2),
    "nn.max_pool3d": _pool("max", 3),
    "nn.avg_pool1d": _pool("avg", 1),
    "nn.avg_pool2d": _pool("avg", 2),
    "nn.avg_pool3d": _pool("avg", 3),
    "nn.global_max_pool2d": _global("max"),
    "nn.global_avg_pool2d": _global("mean"),
    "nn.adaptive_avg_pool1d": _adaptive("avg", 1),
    "nn.adaptive_avg_pool2d": _adaptive("avg", 2),
    "nn.adaptive_avg_pool3d": _adaptive("avg", 3),
    "nn.adaptive_max_pool1d": _adaptive("max", 1),
    "nn.adaptive_max_pool2d": _adaptive("max", 2),
    "nn.adaptive_max_pool3d": _adaptive("max", 3),
}
