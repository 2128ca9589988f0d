"""Maps read between their pixels: grids, regions of interest, crops, deformed windows."""

from __future__ import annotations

import numpy as np

from unity.frontend.detection.adaptive import adaptive_regions
from unity.frontend.detection.regions import (
    DeformedWindow,
    Regions,
    aligned_regions,
    deformable_conv2d,
    pooled_regions,
)
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.sampling import Reading, axes_last, grid_sample, half_away, read_between
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

from ..convolutions import data_layout, paddings, steps
from ..layouts import transform


def _grid_sample(c: RelayCall) -> Expr:
    """A map read at the places of a grid, whose corners are -1 and 1."""
    x, grid, layout = c.tensor(0), c.tensor(1), c.text("layout")
    if layout not in ("NCHW", "NCDHW"):
        raise c.gap(f"layout={layout!r}")
    how = Reading(c.text("method"), c.text("padding_mode"), c.flag("align_corners"))
    return grid_sample(c, x, grid, how)


def _crop_and_resize(c: RelayCall) -> Expr:
    """Boxes of images, their corners as parts of an image's, brought to one size."""
    boxes, layout, method = c.tensor(1), c.text("layout"), c.text("method")
    height, width = c.integers("crop_size")
    outside = c.real("extrapolation_value")
    kind = c.dtype_or("out_dtype", c.dtype_of(c.tensor(0)))
    x = transform(c, c.tensor(0), layout, data_layout(2))
    _, _, *extents = c.extents(x, "an image to be cropped")
    count = c.extents(boxes, "boxes")[0]
    if min(height, width) < 2:
        raise c.gap(f"crop_size=({height}, {width}), of one pixel")
    at: list[Expr] = []
    for axis, (size, extent) in enumerate(zip((height, width), extents, strict=True)):
        first, last = (_coordinate(c, boxes, axis + k) for k in (0, 2))
        step = c.op("divide", c.op("multiply", c.op("subtract", last, first), float(extent - 1)),
                    float(size - 1))  # fmt: skip
        shift = c.op("multiply", first, float(extent - 1))
        numbers = Constant(np.arange(size, dtype=c.dtype_of(boxes).numpy).reshape(1, size))
        along = c.op("add", c.op("multiply", numbers, step), shift)
        shape = (count, size, 1) if axis == 0 else (count, 1, size)
        at.append(c.op("broadcast_to", c.op("reshape", along, shape), (count, height, width)))
    image = c.op("reshape", c.tensor(2), (count, 1, 1))
    if method in ("nearest_neighbor", "nearest"):
        how, places = Reading("nearest", "border"), [half_away(c, v) for v in at]
    elif method == "bilinear":
        how, places = Reading("bilinear", "border"), at
    else:
        raise c.gap(f"method={method!r}")
    found = c.cast(read_between(c, axes_last(c, x), image, places, extents, how), kind)
    for v, extent in zip(at, extents, strict=True):
        beyond = c.op("logical_or", c.op("less", v, 0.0), c.op("greater", v, float(extent - 1)))
        beyond = c.op("reshape", beyond, (count, height, width, 1))
        found = c.op("where", beyond, c.number(outside, found), found)
    return transform(c, found, "NHWC", layout)


def _coordinate(c: RelayCall, rows: Expr, place: int) -> Expr:
    """One column of a matrix, as a column."""
    return c.op("strided_slice", rows, axes=(1,), begin=(place,), end=(place + 1,))


def _roi_align(c: RelayCall) -> Expr:
    """Means (or maxima) of samples in the parts of regions."""
    rois, layout, mode = c.tensor(1), c.text("layout"), c.text("mode")
    height, width = c.integers("pooled_size")
    scale, samples = c.real("spatial_scale"), c.integer("sample_ratio")
    if mode not in ("avg", "max"):
        raise c.gap(f"mode={mode!r}")
    x = transform(c, c.tensor(0), layout, data_layout(2))
    ends = [
        tuple(c.op("multiply", _coordinate(c, rois, place - axis), scale) for place in (2, 4))
        for axis in (0, 1)
    ]
    image = c.op("reshape", c.cast(_coordinate(c, rois, 0), INT64), (c.shape_of(rois)[0],))
    regions = Regions(image, [(first, last) for first, last in ends], 1.0)
    how = "mean" if mode == "avg" else "max"
    if samples > 0:
        pooled = aligned_regions(c, x, regions, (height, width), samples, how)
    else:
        pooled = adaptive_regions(c, x, regions, (height, width), how)
    return transform(c, pooled, "NHWC", layout)


def _roi_pool(c: RelayCall) -> Expr:
    """Maxima of the pixels in the parts of regions; 0 where a part has none."""
    layout, (height, width) = c.text("layout"), c.integers("pooled_size")
    x = transform(c, c.tensor(0), layout, data_layout(2))
    found = pooled_regions(c, x, c.tensor(1), (height, width), c.real("spatial_scale"))
    return transform(c, found, data_layout(2), layout)


def _deformable_conv2d(c: RelayCall) -> Expr:
    """A convolution whose taps each pixel moves: what they read, times the weights."""
    layout, kernel = c.text("data_layout"), c.text("kernel_layout")
    result = c.text("out_layout") or layout
    c.drop("channels", "kernel_size")  # the weight has them
    x, moved = (transform(c, c.tensor(i), layout, data_layout(2)) for i in (0, 1))
    weight = transform(c, c.tensor(2), kernel, "OIHW")
    kind = c.dtype_or("out_dtype", c.dtype_of(x))
    top, left, bottom, right = paddings(c.integers("padding"), 2)
    strides, dilation = steps(c, "strides", 2), steps(c, "dilation", 2)
    groups, shared = c.integer("groups"), c.integer("deformable_groups")
    window = DeformedWindow(
        strides, (top, left), (bottom, right), dilation, groups, shared, "border"
    )
    found = deformable_conv2d(c, x, moved, weight, window, kind=kind)
    return transform(c, found, data_layout(2), result)


CONVERTERS: dict[str, Converter] = {
    "image.grid_sample": _grid_sample,
    "image.crop_and_resize": _crop_and_resize,
    "vision.roi_align": _roi_align,
    "vision.roi_pool": _roi_pool,
    "nn.deformable_conv2d": _deformable_conv2d,
}
