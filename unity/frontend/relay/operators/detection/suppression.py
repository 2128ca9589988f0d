"""Boxes that others cover are suppressed, as Relay's operators say what they take and give."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.detection.suppression import (
    Boxes,
    column_of,
    corners_of,
    kept_boxes,
    moved_to_front,
    picked,
)
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import FLOAT32, INT32, INT64
from unity.ir.graph import Constant, Expr, Tuple


def _get_valid_counts(c: RelayCall) -> Expr:
    """The boxes with scores above a threshold first; how many, and where they were."""
    x, at, which = c.tensor(0), c.integer("score_index"), c.integer("id_index")
    given = c.attribute("score_threshold")
    score = column_of(c, x, at)
    threshold = c.tensor(1) if len(c.operands) > 1 else c.number(c.real("score_threshold"), score)
    if len(c.operands) > 1 and given is not None:
        raise UnityError("the threshold is given twice")
    valid = c.op("greater", score, c.op("reshape", c.cast(threshold, c.dtype_of(score)), ()))
    if which >= 0:
        label = column_of(c, x, which)
        named = c.op("greater_equal", label, c.number(0, label))
        valid = c.op("logical_and", valid, named)
    batch, count, _ = c.extents(x, "boxes")
    rows, found = moved_to_front(c, valid, x)
    places = c.op("broadcast_to", c.op("arange", count, dtype=INT32), (batch, count))
    return Tuple((found, rows, moved_to_front(c, valid, places)[0]))


def _non_max_suppression(c: RelayCall) -> Expr:
    """Boxes, or their places, with those that better ones cover taken away."""
    x, valid = c.tensor(0), c.tensor(1)
    batch, count, _ = c.extents(x, "boxes")
    at, which, first = c.integer("score_index"), c.integer("id_index"), c.integer("coord_start")
    forced, top = c.flag("force_suppress"), c.integer("top_k")
    threshold = _known_number(c, 4, "iou_threshold")
    most = _limit(c)
    numbers = c.op("arange", count, dtype=INT32)
    active = c.op("less", numbers, c.op("reshape", valid, (batch, 1)))
    places = c.op("broadcast_to", numbers, (batch, count))
    if threshold <= 0:
        return _suppressed(c, x, places, active)
    lowest = c.number(-np.inf, x)
    ranked = c.op("where", active, column_of(c, x, at), lowest)
    order = c.op("argsort", ranked, axis=1, descending=True)
    rows = picked(c, x, order)
    if 0 < top < count:
        active = c.op("logical_and", active, c.op("less", numbers, top))
    labels = None if which < 0 else column_of(c, rows, which)
    shields = None
    if labels is not None:
        shields = c.op("greater_equal", labels, c.number(0, labels))
    boxes = Boxes(
        corners_of(c, rows, first),
        column_of(c, rows, at),
        None if forced else labels,
        active,
        shields,
    )
    kept = kept_boxes(c, boxes, c.number(threshold, x), most)
    return _suppressed(c, rows, c.cast(order, INT32), kept)


def _suppressed(c: RelayCall, rows: Expr, places: Expr, kept: Expr) -> Expr:
    """What a call asks for, of boxes in their order, where they were, and which are kept."""
    batch, _ = c.extents(kept, "boxes")
    to_bottom = c.flag("invalid_to_bottom")
    if c.flag("return_indices"):
        original = picked(c, c.cast(c.tensor(2), INT32), c.cast(places, INT64))
        moved, found = moved_to_front(c, kept, original)
        return Tuple((moved, c.op("reshape", found, (batch, 1))))
    wide = c.op("reshape", kept, (*c.shape_of(kept), 1))
    found = c.op("where", wide, rows, c.number(-1, rows))
    if not to_bottom:
        return found
    lead = column_of(c, found, 0)
    return moved_to_front(c, c.op("greater_equal", lead, c.number(0, lead)), found)[0]


def _known_number(c: RelayCall, index: int, name: str) -> float:
    if len(c.operands) > index:
        c.drop(name)
        return float(c.scalar(index, name))
    return c.real(name)


def _limit(c: RelayCall) -> Expr | None:
    """How many boxes may be kept; None for all."""
    if len(c.operands) <= 3:
        most = c.integer("max_output_size")
        return None if most < 0 else Constant(np.array(most, np.int32))
    c.drop("max_output_size")
    known = c.constant(3)
    if known is not None and int(known.reshape(())) < 0:
        return None
    return c.op("reshape", c.cast(c.tensor(3), INT32), ())


def _all_class(c: RelayCall) -> Expr:
    """Each class on its own: what is kept, in order of classes and scores, then zeros."""
    boxes, scores, form = c.tensor(0), c.tensor(1), c.text("output_format")
    if form not in ("onnx", "tensorflow"):
        raise UnityError(f"output_format must be 'onnx' or 'tensorflow', got {form!r}")
    batch, classes, count = c.extents(scores, "scores")
    pairs = batch * classes
    most, least = int(c.scalar(2, "max_output_boxes_per_class")), c.scalar(4, "a threshold")
    flat = c.op("reshape", scores, (pairs, count))
    order = c.op("argsort", flat, axis=1, descending=True)
    ranked = picked(c, flat, order)
    wide = c.op("reshape", boxes, (batch, 1, count, 4))
    wide = c.op("broadcast_to", wide, (batch, classes, count, 4))
    rows = picked(c, c.op("reshape", wide, (pairs, count, 4)), order)
    limits = (c.scalar(3, "iou_threshold"), max(float(least), -1.0))
    # TVM gives no box of a score of -1 or less, and none at all for a threshold of 0.
    active = c.op("greater", ranked, c.number(limits[1], ranked))
    if limits[0] <= 0:
        active = c.op("zeros_like", active)
    found = Boxes(corners_of(c, rows, 0), ranked, None, active)
    limit = Constant(np.array(most, np.int32)) if most > 0 else None
    threshold = c.number(limits[0], boxes)
    kept = kept_boxes(c, found, threshold, limit, counts_all=True)
    label = np.broadcast_to(np.arange(classes)[None, :, None], (batch, classes, count))
    image = np.broadcast_to(np.arange(batch)[:, None, None], (batch, classes, count))
    leading = (image, label) if form == "onnx" else (label,)
    groups = (1, pairs * count) if form == "onnx" else (batch, classes * count)
    columns = [Constant(np.array(v, np.int64).reshape(*groups, 1)) for v in leading]
    triples = c.op("concat", [*columns, c.op("reshape", order, (*groups, 1))], axis=2)
    flags = c.op("reshape", kept, groups)
    selected, total = moved_to_front(c, flags, triples, 0)
    if form == "onnx":
        whole = c.op("reshape", selected, (pairs * count, 3))
        return Tuple((whole, c.cast(total, INT64)))
    values, _ = moved_to_front(c, flags, c.op("reshape", ranked, groups), 0)
    return Tuple((selected, c.cast(values, FLOAT32), c.cast(total, INT64)))


CONVERTERS: dict[str, Converter] = {
    "vision.get_valid_counts": _get_valid_counts,
    "vision.non_max_suppression": _non_max_suppression,
    "vision.all_class_non_max_suppression": _all_class,
}
