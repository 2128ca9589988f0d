"""Boxes ranked over all classes, and regions that a network proposes: TVM's, to their last rule."""

from __future__ import annotations

from math import floor, sqrt

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import BOOL, FLOAT32, INT32, INT64
from unity.ir.graph import Constant, Expr, Tuple
from unity.op.vision.boxes import (
    Boxes,
    column_of,
    kept_boxes,
    moved_to_front,
    picked,
)

from .boxes import reals


def _regular(c: RelayCall) -> Expr:
    """TFLite's: each class on its own, then the best of all; boxes, classes, scores, counts."""
    boxes, scores = c.tensor(0), c.tensor(1)
    batch, count, labels = c.extents(scores, "scores")
    classes, per_class = c.integer("num_classes"), c.integer("max_detections_per_class")
    most = c.integer("max_detections")
    least, threshold = c.real("score_threshold"), c.real("iou_threshold")
    background = labels - classes
    if classes < 1 or background < 0:
        raise UnityError(f"num_classes is {classes}, but the scores have {labels}")
    named = c.op("strided_slice", scores, axes=(2,), begin=(background,), end=(labels,))
    pairs = batch * classes
    flat = c.op("reshape", c.op("permute_dims", named, axes=(0, 2, 1)), (pairs, count))
    order = c.op("argsort", flat, axis=1, descending=True)
    ranked = picked(c, flat, order)
    wide = c.op("reshape", boxes, (batch, 1, count, 4))
    wide = c.op("broadcast_to", wide, (batch, classes, count, 4))
    rows = picked(c, c.op("reshape", wide, (pairs, count, 4)), order)
    top, left, bottom, right = (column_of(c, rows, i) for i in range(4))
    active = c.op("greater_equal", ranked, c.number(least, ranked))
    found = Boxes((left, top, right, bottom), c.op("ones_like", ranked), None, active)
    limit = Constant(np.array(per_class, np.int32))
    kept = kept_boxes(c, found, c.number(threshold, boxes), limit, inclusive=False)
    # Those of earlier classes come first where scores are the same.
    whole = classes * count
    flags = c.op("reshape", kept, (batch, whole))
    values = c.op("where", kept, ranked, c.number(-np.inf, ranked))
    best = c.op("argsort", c.op("reshape", values, (batch, whole)), axis=1, descending=True)
    own = np.broadcast_to(np.arange(classes)[:, None], (batch, classes, count))
    label = np.ascontiguousarray(own).reshape(batch, whole, 1)
    columns = [
        c.op("reshape", rows, (batch, whole, 4)),
        Constant(label.astype(c.dtype_of(rows).numpy)),
        c.cast(c.op("reshape", ranked, (batch, whole, 1)), c.dtype_of(rows)),
    ]
    table = picked(c, c.op("concat", columns, axis=2), best)
    table = c.op("where", c.op("reshape", picked(c, flags, best), (batch, whole, 1)), table,
                 c.number(0, table))  # fmt: skip
    table = _of_length(c, table, most)
    total = c.op("minimum", c.op("sum", c.cast(flags, INT32), axis=(1,)), most)
    parts = [
        c.op("strided_slice", table, axes=(2,), begin=(0,), end=(4,)),
        c.cast(column_of(c, table, 4), FLOAT32),
        c.cast(column_of(c, table, 5), c.dtype_of(scores)),
    ]
    return Tuple((*parts, total))


def _of_length(c: RelayCall, table: Expr, length: int) -> Expr:
    """The first rows of each batch, zeros where there are not so many."""
    count = c.extents(table, "detections")[1]
    if count < length:
        return c.op("nn.pad", table, pad_width=(0, 0, 0, length - count, 0, 0), pad_value=0.0)
    return c.op("strided_slice", table, axes=(1,), begin=(0,), end=(length,))


def _anchor(ratio: float, scale: float, size: int) -> list[float]:
    """The corners of an anchor around a cell of a map: its sides are whole numbers of cells."""
    middle = 0.5 * (size - 1)
    width = floor(sqrt(floor(size * size / ratio)) + 0.5)
    height = floor(width * ratio + 0.5)
    half = 0.5 * (width * scale - 1), 0.5 * (height * scale - 1)
    return [middle - half[0], middle - half[1], middle + half[0], middle + half[1]]


def _proposal(c: RelayCall) -> Expr:
    """Regions of an image that hold objects: (batch * kept, 5), which image, then corners.

    Where suppression leaves fewer than are asked for, they are repeated from the first on.
    """
    scores, moved, image = (c.tensor(i) for i in range(3))
    scales, ratios, stride = reals(c, "scales"), reals(c, "ratios"), c.integer("feature_stride")
    before, after = c.integer("rpn_pre_nms_top_n"), c.integer("rpn_post_nms_top_n")
    batch, doubled, height, width = c.extents(scores, "a map with proposals")
    for what, numbers in (("scales", scales), ("ratios", ratios), ("feature_stride", [stride])):
        if not all(0 < v < np.inf for v in numbers):
            raise UnityError(f"{what} must be above 0, got {', '.join(map(str, numbers))}")
    anchors = len(scales) * len(ratios)
    if doubled != 2 * anchors:
        raise UnityError(f"{anchors} anchors need {2 * anchors} scores, got {doubled}")
    count = height * width * anchors
    kind = c.dtype_of(moved)
    corners = np.array([_anchor(r, s, stride) for r in ratios for s in scales], np.float64)
    places = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1)[:, :, None]
    at = corners + stride * np.concatenate([places, places], -1)  # (height, width, anchors, 4)
    fixed = Constant(np.ascontiguousarray(at.reshape(1, count, 4).astype(kind.numpy)))
    deltas = c.op("reshape", moved, (batch, anchors, 4, height, width))
    deltas = c.op("permute_dims", deltas, axes=(0, 3, 4, 1, 2))
    deltas = c.op("reshape", deltas, (batch, count, 4))
    boxes = c.op("add", fixed, deltas) if c.flag("iou_loss") else _moved(c, fixed, deltas)
    info = [c.op("strided_slice", image, axes=(1,), begin=(k,), end=(k + 1,)) for k in range(3)]
    high, wide, zoom = (c.op("reshape", c.cast(v, kind), (batch, 1, 1)) for v in info)
    ends = c.op("subtract", c.op("concat", [wide, high, wide, high], axis=2), 1.0)
    boxes = c.op("maximum", c.op("minimum", boxes, ends), c.number(0, boxes))
    smallest = c.op("multiply", zoom, float(c.integer("rpn_min_size")))
    low, top = (_columns(c, boxes, k) for k in (0, 2))
    sides = c.op("add", c.op("subtract", top, low), 1.0)
    small = c.op("any", c.op("less", sides, smallest), axis=(2,), keepdims=True)
    half = c.op("multiply", smallest, 0.5)
    grown = c.op("concat", [c.op("subtract", low, half), c.op("add", top, half)], axis=2)
    boxes = c.op("where", small, grown, boxes)
    objects = c.op("strided_slice", scores, axes=(1,), begin=(anchors,), end=(doubled,))
    objects = c.op("reshape", c.op("permute_dims", objects, axes=(0, 2, 3, 1)), (batch, count))
    row, column = (np.broadcast_to(v[..., None], (height, width, anchors)).reshape(1, count)
                   for v in np.indices((height, width)))  # fmt: skip
    beyond = _behind(c, high, row, stride), _behind(c, wide, column, stride)
    none = c.op("logical_or", c.op("reshape", small, (batch, count)), c.op("logical_or", *beyond))
    objects = c.op("where", none, c.number(-1, objects), objects)
    return _best(c, boxes, objects, min(before, count) if before > 0 else count, after)


def _columns(c: RelayCall, boxes: Expr, first: int) -> Expr:
    return c.op("strided_slice", boxes, axes=(2,), begin=(first,), end=(first + 2,))


def _moved(c: RelayCall, fixed: Expr, deltas: Expr) -> Expr:
    """Boxes, their ends included, whose middles and sides are moved in parts of their sides."""
    low, high = _columns(c, fixed, 0), _columns(c, fixed, 2)
    size = c.op("add", c.op("subtract", high, low), 1.0)
    middle = c.op("add", low, c.op("multiply", c.op("subtract", size, 1.0), 0.5))
    at = c.op("add", c.op("multiply", _columns(c, deltas, 0), size), middle)
    made = c.op("multiply", c.op("exp", _columns(c, deltas, 2)), size)
    half = c.op("multiply", c.op("subtract", made, 1.0), 0.5)
    return c.op("concat", [c.op("subtract", at, half), c.op("add", at, half)], axis=2)


def _behind(c: RelayCall, size: Expr, place: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
            stride: int) -> Expr:  # fmt: skip
    """Which cells lie behind the end of an image, of which a map may hold more than it has."""
    cells = c.cast(c.op("divide", size, float(stride)), INT32)
    batch = c.shape_of(size)[0]
    return c.op(
        "greater_equal", Constant(place.astype(np.int32)), c.op("reshape", cells, (batch, 1))
    )


def _best(c: RelayCall, boxes: Expr, scores: Expr, before: int, after: int) -> Expr:
    batch, _ = c.extents(scores, "scores")
    order = c.op("argsort", scores, axis=1, descending=True)
    order = c.op("strided_slice", order, axes=(1,), begin=(0,), end=(before,))
    rows = picked(c, boxes, order)
    left, top, right, bottom = (column_of(c, rows, i) for i in range(4))
    # Ends are included, so that a side is one longer than the corners are apart.
    corners = left, top, c.op("add", right, 1.0), c.op("add", bottom, 1.0)
    ones = c.op("ones_like", left)
    found = Boxes(corners, ones, None, c.op("ones_like", left, dtype=BOOL))
    kept = kept_boxes(c, found, c.number(c.real("threshold"), boxes), inclusive=False)
    front, total = moved_to_front(c, kept, rows)
    places = c.op("floor_mod", Constant(np.arange(after, dtype=np.int32)[None]),
                  c.op("reshape", total, (batch, 1)))  # fmt: skip
    chosen = picked(c, front, c.cast(places, INT64))
    own = np.broadcast_to(np.arange(batch)[:, None, None], (batch, after, 1))
    which = Constant(np.ascontiguousarray(own).astype(c.dtype_of(boxes).numpy))
    return c.op("reshape", c.op("concat", [which, chosen], axis=2), (batch * after, 5))


CONVERTERS: dict[str, Converter] = {
    "vision.regular_non_max_suppression": _regular,
    "vision.proposal": _proposal,
}
