"""Detection: NonMaxSuppression, RoiAlign, MaxRoiPool, DeformConv."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.detection.adaptive import adaptive_regions
from unity.frontend.detection.regions import (
    DeformedWindow,
    Regions,
    aligned_regions,
    deformable_conv2d,
    pooled_regions,
)
from unity.frontend.onnx.layers import per_axis
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.run_time.slicing import scalar
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr
from unity.ir.types import Shape
from unity.op.vision.boxes import (
    column_of,
)


def _non_max_suppression(node: Node) -> Value:
    """The batch, class and box of each box that is kept, by their scores within a class."""
    boxes, scores = node.tensor(0), node.tensor(1)
    batch, _, count = _of_rank(node, scores, 3, "scores")
    if len(node.shape_of(boxes)) != 3:
        raise UnityError(f"boxes of rank {len(node.shape_of(boxes))}; expected 3")
    boxes = node.assert_shape(boxes, (batch, count, 4))
    if node.int_of("center_point_box", 0):
        x, y, width, height = (column_of(node, boxes, k) for k in range(4))
        half = node.number(0.5, boxes)
        across, down = node.op("multiply", width, half), node.op("multiply", height, half)
        ends = [
            node.op(name, middle, size)
            for name in ("subtract", "add")
            for middle, size in ((y, down), (x, across))
        ]
        boxes = node.op("stack", ends, axis=2)
    # Without a number, none is kept: that is ONNX's default.
    most = scalar(node, node.tensor(2)) if node.has(2) else Constant(np.array(0, np.int64))
    threshold = scalar(node, node.tensor(3)) if node.has(3) else node.number(0, boxes)
    least = (scalar(node, node.tensor(4)),) if node.has(4) else ()
    found = node.op("vision.all_class_non_max_suppression", boxes, scores, most, threshold, *least)
    return node.field(found, 0)


def _of_rank(node: Node, value: Expr, rank: int, what: str) -> Shape:
    shape = node.shape_of(value)
    if len(shape) != rank:
        raise UnityError(f"{what} of rank {len(shape)}; expected {rank}")
    return shape


def _roi_align(node: Node) -> Value:
    """Means or maxima of samples in the parts of regions, of the layout NCHW."""
    x, rois, image = (node.tensor(k) for k in range(3))
    mode, samples = node.text_of("mode", "avg"), node.int_of("sampling_ratio", 0)
    half = "half_pixel" if node.version >= 16 else "output_half_pixel"
    half = node.text_of("coordinate_transformation_mode", half)
    size = node.int_of("output_height", 1), node.int_of("output_width", 1)
    if mode not in ("avg", "max"):
        raise UnityError(f"mode {mode!r}; expected avg or max")
    if half not in ("half_pixel", "output_half_pixel"):
        raise UnityError(
            f"coordinate_transformation_mode {half!r}; expected half_pixel or output_half_pixel"
        )
    if samples <= 0 and mode == "max":
        raise node.gap("mode max with as many samples as each region is large (sampling_ratio 0)")
    (count, _), _ = _of_rank(node, rois, 2, "regions"), _of_rank(node, x, 4, "maps")
    scale = node.number(node.float_of("spatial_scale", 1.0), rois)
    at = [_scaled(node, rois, k, scale, 0.5 if half == "half_pixel" else 0.0) for k in range(4)]
    image = node.assert_shape(node.cast(image, INT64), (count,))
    # Ends are x, y, x, y; a region is no shorter than a pixel where halves are left alone.
    ends = [(at[1], at[3]), (at[0], at[2])]
    regions = Regions(image, ends, None if half == "half_pixel" else 1.0)
    if samples <= 0:
        found = adaptive_regions(node, x, regions, size, "mean")
        return node.op("permute_dims", found, axes=(0, 3, 1, 2))
    # A maximum is that of the weighted pixels, as the models that first had it were trained.
    how = ("mean", "add") if mode == "avg" else ("max", "maximum")
    found = aligned_regions(node, x, regions, size, samples, *how)
    return node.op("permute_dims", found, axes=(0, 3, 1, 2))


def _max_roi_pool(node: Node) -> Value:
    """The largest pixel in each part of regions, of the layout NCHW."""
    x, rois = node.tensor(0), node.tensor(1)
    (count, _), _ = _of_rank(node, rois, 2, "regions"), _of_rank(node, x, 4, "maps")
    shape = node.ints_of("pooled_shape") or ()
    if len(shape) != 2:
        raise UnityError(f"pooled_shape {shape}; expected two numbers")
    rois = node.assert_shape(rois, (count, 5))
    scale = node.float_of("spatial_scale", 1.0)
    return pooled_regions(node, x, rois, (shape[0], shape[1]), scale)


def _scaled(node: Node, rois: Expr, place: int, scale: Expr, shift: float) -> Expr:
    """One coordinate of each region in pixels of the map, (count, 1)."""
    column = node.op("strided_slice", rois, axes=(1,), begin=(place,), end=(place + 1,))
    return node.op("subtract", node.op("multiply", column, scale), node.number(shift, rois))


def _deform_conv(node: Node) -> Value:
    """A convolution whose taps are moved by offsets and weighted by a mask."""
    x, weight, offset = (node.tensor(k) for k in range(3))
    _of_rank(node, x, 4, "maps")
    _of_rank(node, weight, 4, "a weight")
    if node.ints_of("kernel_shape") not in (None, node.shape_of(weight)[2:]):
        raise UnityError(f"kernel_shape does not fit the weight {node.shape_of(weight)}")
    pads = node.ints_of("pads") or (0, 0, 0, 0)
    window = DeformedWindow(
        per_axis(node, "strides", 2),
        pads[:2],
        pads[2:],
        per_axis(node, "dilations", 2),
        node.int_of("group", 1),
        node.int_of("offset_group", 1),
        "zeros",
    )
    mask = node.optional(4)
    kind = node.dtype_of(x)
    found = deformable_conv2d(node, x, offset, weight, window, mask=mask, kind=kind)
    if not node.has(3):
        return found
    return node.op("add", found, node.op("reshape", node.tensor(3), (1, -1, 1, 1)))


CONVERTERS: dict[str, Converter] = {
    "NonMaxSuppression": _non_max_suppression,
    "RoiAlign": _roi_align,
    "MaxRoiPool": _max_roi_pool,
    "DeformConv": _deform_conv,
}
