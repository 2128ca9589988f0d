"""Boxes that others cover are suppressed: one scan over the boxes in the order of their scores.

Each step compares one box with those kept so far, so that no matrix of all pairs is held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.frontend.emission import Emission
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import BOOL, FLOAT32, INT32, INT64
from unity.ir.graph import Constant, Expr, Scan, Tuple
from unity.ir.types import TensorType


def moved_to_front(c: RelayCall, flags: Expr, rows: Expr, filler: float = -1) -> tuple[Expr, Expr]:
    """The flagged rows of each batch first, in their order, then rows of a filler; their counts."""
    batch, count = c.extents(flags, "rows to be moved")
    order = c.op("argsort", c.cast(c.op("logical_not", flags), INT32), axis=1)
    found = c.op("sum", c.cast(flags, INT32), axis=(1,))
    held = c.op("less", c.op("arange", count, dtype=INT32), c.op("reshape", found, (batch, 1)))
    moved = picked(c, rows, order)
    wide = c.op("reshape", held, (batch, count, *(1,) * (len(c.shape_of(rows)) - 2)))
    return c.op("where", wide, moved, c.number(filler, rows)), found


def picked(c: RelayCall, rows: Expr, order: Expr) -> Expr:
    """Rows of each batch in another order."""
    batch, count = c.extents(order, "rows in an order")
    if len(c.shape_of(rows)) == 2:
        return c.op("gather_elements", rows, order, axis=1)
    return c.op("gather_nd", rows, c.op("reshape", order, (batch, count, 1)), batch_dims=1)


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Boxes in the order of their scores, each part of shape (batch, count).

    Attributes:
        corners: The lesser and the greater of both coordinates: two, then two.
        scores: Boxes of 0 and less are left as they are.
        labels: Boxes suppress those of their own label; None for all of them.
        active: Whether a box is one.
        shields: Whether a box suppresses others, if it is kept.
    """

    corners: tuple[Expr, Expr, Expr, Expr]
    scores: Expr
    labels: Expr | None
    active: Expr
    shields: Expr | None = None


def _corners(c: RelayCall, boxes: Expr, first: int) -> tuple[Expr, Expr, Expr, Expr]:
    """The corners of boxes, whichever was given first, of columns from one on."""
    a, b, d, e = (_column(c, boxes, first + i) for i in range(4))
    low, high = ("minimum", "maximum")
    return c.op(low, a, d), c.op(low, b, e), c.op(high, a, d), c.op(high, b, e)


def _column(c: RelayCall, rows: Expr, place: int) -> Expr:
    return c.op("take", rows, Constant(np.array(place, np.int64)), axis=2)


def _kept(
    c: RelayCall, boxes: _Boxes, threshold: Expr, most: Expr | None, *, counts_all: bool = False
) -> Expr:
    """Which boxes are kept, (batch, count): a box that overlaps a kept one is not.

    Args:
        c: The call.
        boxes: The boxes.
        threshold: The overlap, of the union of both, from which on a box is suppressed.
        most: How many boxes of each batch are kept; None for all.
        counts_all: Whether those with scores of 0 and less count.
    """
    batch, count = c.extents(boxes.scores, "boxes")
    left, top, right, bottom = boxes.corners
    area = c.op("multiply", c.op("subtract", right, left), c.op("subtract", bottom, top))
    inner = Emission(c.builder.child(), c.broadcasts.inner(), c.label, c.span)
    named: dict[str, Expr] = dict(
        zip(("left", "top", "right", "bottom"), boxes.corners, strict=True),
        area=area,
        score=boxes.scores,
        active=boxes.active,
    )
    named |= {} if boxes.labels is None else {"class_id": boxes.labels}
    named |= {} if boxes.shields is None else {"shields": boxes.shields}
    new = inner.builder.new_var
    shielding = new("kept", TensorType((batch, count), BOOL))
    number = new("found", TensorType((batch,), INT32))
    elements = {k: new(k, TensorType((batch,), c.dtype_of(v))) for k, v in named.items()}
    nth = new("nth", TensorType((), INT32))

    def column(name: str) -> Expr:
        return inner.op("reshape", elements[name], (batch, 1))

    def side(low: str, high: str, lows: Expr, highs: Expr) -> Expr:
        length = inner.op(
            "subtract",
            inner.op("minimum", column(high), highs),
            inner.op("maximum", column(low), lows),
        )
        return inner.op("maximum", length, inner.number(0, length))

    common = inner.op(
        "multiply", side("left", "right", left, right), side("top", "bottom", top, bottom)
    )
    union = inner.op("subtract", inner.op("add", column("area"), area), common)
    nothing = inner.op("less_equal", union, inner.number(0, union))
    overlap = inner.op("where", nothing, inner.number(0, union), inner.op("divide", common, union))
    covers = inner.op("logical_and", inner.op("greater_equal", overlap, threshold), shielding)
    if boxes.labels is not None:
        same = inner.op("equal", column("class_id"), boxes.labels)
        covers = inner.op("logical_and", covers, same)
    hit = inner.op("any", covers, axis=(1,))
    score = elements["score"]
    positive = inner.op("greater", score, inner.number(0, score))
    open_: Expr = elements["active"]
    if most is not None:
        open_ = inner.op("logical_and", open_, inner.op("not_equal", number, most))
    stays = inner.op("logical_not", inner.op("logical_and", positive, hit))
    keep = inner.op("logical_and", open_, stays)
    counted = keep if counts_all else inner.op("logical_and", keep, positive)
    shield = inner.op("logical_and", keep, positive)
    if boxes.shields is not None:
        shield = inner.op("logical_and", shield, elements["shields"])
    here = inner.op("equal", inner.op("arange", count, dtype=INT32), nth)
    marked = inner.op("logical_and", here, inner.op("reshape", shield, (batch, 1)))
    after = inner.op("logical_or", shielding, marked)
    found = inner.op("add", number, inner.cast(counted, INT32))
    body = inner.builder.body(Tuple((after, found, keep)))
    init = c.op("zeros", (batch, count), dtype=BOOL), c.op("zeros", (batch,), dtype=INT32)
    inputs = [c.op("permute_dims", v, axes=(1, 0)) for v in named.values()]
    numbers = c.op("arange", count, dtype=INT32)
    scan = Scan((shielding, number), init, (*elements.values(), nth), (*inputs, numbers), body)
    return c.op("permute_dims", c.field(c.builder.emit(scan, c.label, c.span), 2), axes=(1, 0))


def _get_valid_counts(c: RelayCall) -> Expr:
    """The boxes with scores above a threshold first; how many, and where they were."""
    x, at, which = c.tensor(0), c.integer("score_index"), c.integer("id_index")
    given = c.attribute("score_threshold")
    score = _column(c, x, at)
    threshold = c.tensor(1) if len(c.operands) > 1 else c.number(c.real("score_threshold"), score)
    if len(c.operands) > 1 and given is not None:
        raise UnityError("the threshold is given twice")
    valid = c.op("greater", score, c.op("reshape", c.cast(threshold, c.dtype_of(score)), ()))
    if which >= 0:
        label = _column(c, x, which)
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
    ranked = c.op("where", active, _column(c, x, at), lowest)
    order = c.op("argsort", ranked, axis=1, descending=True)
    rows = picked(c, x, order)
    if 0 < top < count:
        active = c.op("logical_and", active, c.op("less", numbers, top))
    labels = None if which < 0 else _column(c, rows, which)
    shields = None
    if labels is not None:
        shields = c.op("greater_equal", labels, c.number(0, labels))
    boxes = _Boxes(
        _corners(c, rows, first),
        _column(c, rows, at),
        None if forced else labels,
        active,
        shields,
    )
    kept = _kept(c, boxes, c.number(threshold, x), most)
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
    lead = _column(c, found, 0)
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
    active = c.op("greater", ranked, c.number(least, ranked))
    found = _Boxes(_corners(c, rows, 0), ranked, None, active)
    limit = Constant(np.array(most, np.int32)) if most > 0 else None
    threshold = c.number(c.scalar(3, "iou_threshold"), boxes)
    kept = _kept(c, found, threshold, limit, counts_all=True)
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
