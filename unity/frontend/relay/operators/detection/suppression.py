"""Boxes that others cover are suppressed, as Relay's operators say what they take and give."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import FLOAT32, INT32, INT64
from unity.ir.graph import Constant, Expr, Tuple
from unity.op.vision.boxes import (
    Boxes,
    column_of,
    corners_of,
    kept_boxes,
    moved_to_front,
    picked,
)
from unity.op.vision.detections import Suppression, suppressed_boxes, valid_counts


def _get_valid_counts(c: RelayCall) -> Expr:
    """The boxes with scores above a threshold first; how many, and where they were."""
    x, at, which = c.tensor(0), c.integer("score_index"), c.integer("id_index")
    given = c.attribute("score_threshold")
    threshold = c.tensor(1) if len(c.operands) > 1 else c.number(c.real("score_threshold"), x)
    if len(c.operands) > 1 and given is not None:
        raise UnityError("the threshold is given twice")
    threshold = c.op("reshape", c.cast(threshold, c.dtype_of(x)), ())
    return Tuple(valid_counts(c, x, threshold, at, which))


def _non_max_suppression(c: RelayCall) -> Expr:
    """Boxes, or their places, with those that better ones cover taken away."""
    places = c.flag("return_indices")
    how = Suppression(
        c.flag("force_suppress"),
        c.integer("top_k"),
        c.integer("coord_start"),
        c.integer("score_index"),
        c.integer("id_index"),
        places,
        to_bottom=False,
        relay=True,
    )
    to_bottom = c.flag("invalid_to_bottom")
    number = _known_number(c, 4, "iou_threshold")
    threshold = number if number > 0 else None  # at 0 and below Relay suppresses none
    indices = c.cast(c.tensor(2), INT32) if places else None
    x, valid = c.tensor(0), c.cast(c.tensor(1), INT32)
    found = suppressed_boxes(c, x, valid, indices, how, threshold, _limit(c))
    if places or not to_bottom:
        return found
    lead = column_of(c, found, 0)  # Relay tells boxes by it
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
