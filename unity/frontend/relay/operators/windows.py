"""Windows that no convolution says: greatest sums with a filter, products of two maps' windows."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.graph import Constant, Expr

from .convolutions import data_layout, paddings, steps
from .layouts import transform


def _dilation2d(c: RelayCall) -> Expr:
    """Grey dilation: the greatest sum of a pixel and the filter's element above it."""
    layout, kind = c.text("data_layout"), c.dtype_or("out_dtype", c.dtype_of(c.tensor(0)))
    x = transform(c, c.tensor(0), layout, data_layout(2))
    weight = transform(c, c.tensor(1), c.text("kernel_layout"), "IHW")
    top, left, bottom, right = paddings(c.integers("padding"), 2)
    strides, dilations = steps(c, "strides", 2), steps(c, "dilations", 2)
    channels, height, width = c.extents(weight, "a filter")
    if not c.dtype_of(x).is_float:
        raise c.gap(f"elements of {c.dtype_of(x)}")
    widths = (0, 0, 0, 0, top, bottom, left, right)
    x = c.op("nn.pad", x, pad_width=widths, pad_value=-np.inf)
    extents = c.extents(x, "a map")[2:]
    size = [
        (e - d * (k - 1) - 1) // s + 1
        for e, d, k, s in zip(extents, dilations, (height, width), strides, strict=True)
    ]
    found: Expr | None = None
    for i, j in np.ndindex(height, width):
        begin = (i * dilations[0], j * dilations[1])
        end = tuple(b + s * (n - 1) + 1 for b, s, n in zip(begin, strides, size, strict=True))
        part = c.op("strided_slice", x, axes=(2, 3), begin=begin, end=end, strides=strides)
        tap = c.op("strided_slice", weight, axes=(1, 2), begin=(i, j), end=(i + 1, j + 1))
        sums = c.op("add", part, c.op("reshape", tap, (channels, 1, 1)))
        found = sums if found is None else c.op("maximum", found, sums)
    if found is None:
        raise UnityError("the filter holds nothing")
    return transform(c, c.cast(found, kind), data_layout(2), layout)


def _correlation(c: RelayCall) -> Expr:
    """FlowNet's: windows of one map with those of another around them, a channel a displacement."""
    c.only("layout", "NCHW")
    kernel, reach = c.integer("kernel_size"), c.integer("max_displacement")
    first, second = c.integer("stride1"), c.integer("stride2")
    multiplies = c.flag("is_multiply")
    top, left, bottom, right = paddings(c.integers("padding"), 2)
    widths = (0, 0, 0, 0, top, bottom, left, right)
    one, two = (c.op("nn.pad", c.tensor(i), pad_width=widths, pad_value=0.0) for i in (0, 1))
    _, channels, *extents = c.extents(one, "a map")
    border = reach + (kernel - 1) // 2
    height, width = (-(-(e - 2 * border) // first) for e in extents)
    radius = reach // second
    if height < 1 or width < 1 or kernel % 2 == 0:
        raise UnityError(f"windows of {kernel} and displacements to {reach} in {extents}")
    spans = [(n - 1) * first + kernel for n in (height, width)]
    here = _cut(c, one, (reach, reach), spans)
    maps: list[Expr] = []
    for down in range(-radius, radius + 1):
        for aside in range(-radius, radius + 1):
            at = (reach + down * second, reach + aside * second)
            there = _cut(c, two, at, spans)
            both = c.op("multiply" if multiplies else "subtract", here, there)
            each = both if multiplies else c.op("abs", both)
            maps.append(c.op("sum", each, axis=(1,), keepdims=True))
    sums = maps[0] if len(maps) == 1 else c.op("concat", maps, axis=1)
    ones = np.full((len(maps), 1, kernel, kernel), 1 / (kernel * kernel * channels))
    weight = Constant(ones.astype(c.dtype_of(one).numpy))
    stride = (first, first)
    return c.op("nn.conv2d", sums, weight, strides=stride, groups=len(maps))


def _cut(c: RelayCall, x: Expr, begin: tuple[int, int], spans: list[int]) -> Expr:
    end = tuple(b + s for b, s in zip(begin, spans, strict=True))
    return c.op("strided_slice", x, axes=(2, 3), begin=begin, end=end)


CONVERTERS: dict[str, Converter] = {
    "image.dilation2d": _dilation2d,
    "nn.correlation": _correlation,
}
