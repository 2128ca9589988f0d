"""Detections: those that score enough, and those that no better one covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import INT32, INT64, Array
from unity.ir.graph import Constant, Expr, Tuple
from unity.ir.types import TensorType, TupleType, Type
from unity.op.accumulate import real
from unity.op.argument import (
    float_tensor,
    int_tensor,
    ranked,
    require_equal,
)
from unity.op.attribute import FLAG, INT, NUMBER
from unity.op.registry import (
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    array_arg,
    attr,
    flag_attr,
    int_attr,
)
from unity.op.sampling import Sampler, sample

from .boxes import (
    Boxes,
    ascending_corners,
    column_of,
    corners_of,
    kept_boxes,
    moved_to_front,
    overlap,
    picked,
    random_detections,
)

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_VALID = (
    Param("data"),
    attr("score_threshold", NUMBER, 0.0),
    attr("id_index", INT, 0),
    attr("score_index", INT, 1),
)
_SUPPRESSION = (
    Param("data"),
    Param("valid_count"),
    Param("indices"),
    attr("max_output_size", INT, -1),
    attr("iou_threshold", NUMBER, 0.5),
    attr("force_suppress", FLAG, False),
    attr("top_k", INT, -1),
    attr("coord_start", INT, 2),
    attr("score_index", INT, 1),
    attr("id_index", INT, 0),
    attr("return_indices", FLAG, True),
    attr("invalid_to_bottom", FLAG, False),
)


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


def _number(attrs: Attrs, name: str) -> float:
    value = attrs[name]
    assert isinstance(value, int | float), (name, value)
    return float(value)


def _column(call: OpCall, name: str, row: Dim, *, needed: int = 1, optional: bool = False) -> None:
    """Check that a column, or the first of several, is one of a row's; -1 where it is `optional`.

    Raises:
        UnityError: It is none.
    """
    at = call.integer(name)
    least = -1 if optional else 0
    if at < least or (isinstance(row, int) and at + needed > row):
        raise call.error(f"{name!r} is {at}, but rows have {row} columns")


# get_valid_counts


def _valid_infer(call: OpCall) -> Type:
    x = ranked(call, 0, 3)
    float_tensor(call, 0)
    if not isinstance(x.shape, tuple):
        return TupleType((TensorType(1, INT32), TensorType(3, x.dtype), TensorType(2, INT32)))
    batch, count, row = x.shape
    _column(call, "score_index", row)
    _column(call, "id_index", row, optional=True)
    return TupleType((TensorType((batch,), INT32), x, TensorType((batch, count), INT32)))


def valid_counts(
    e: Emitter, x: Expr, threshold: Expr, score_index: int, id_index: int
) -> tuple[Expr, Expr, Expr]:
    """What `vision.get_valid_counts` gives; the threshold is a scalar of the boxes' dtype."""
    valid = e.op("greater", column_of(e, x, score_index), threshold)
    if id_index >= 0:
        label = column_of(e, x, id_index)
        valid = e.op("logical_and", valid, e.op("greater_equal", label, e.number(0, label)))
    batch, count, _ = e.shape_of(x)
    rows, found = moved_to_front(e, valid, x)
    places = e.op("broadcast_to", e.op("arange", count, dtype=INT32), (batch, count))
    return found, rows, moved_to_front(e, valid, places)[0]


def _valid_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (x,) = args
    threshold = e.number(_number(attrs, "score_threshold"), x)
    columns = int_attr(attrs, "score_index"), int_attr(attrs, "id_index")
    return Tuple(valid_counts(e, x, threshold, *columns))


def _valid_reference(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    x = array_arg(args)
    least = np.asarray(_number(attrs, "score_threshold")).astype(x.dtype)
    counts = np.zeros(len(x), np.int32)
    rows, places = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    for n, boxes in enumerate(x):
        good = boxes[:, int_attr(attrs, "score_index")] > least
        if int_attr(attrs, "id_index") >= 0:
            good &= boxes[:, int_attr(attrs, "id_index")] >= 0
        (at,) = np.nonzero(good)
        counts[n] = len(at)
        rows[n, : len(at)], places[n, : len(at)] = boxes[at], at
    return counts, rows, places


def _valid_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [
        sample(_VALID, (random_detections(s, 2, 7),)),
        sample(_VALID, (random_detections(s, 3, 5, "float64"),), score_threshold=0.3, id_index=-1),
        sample(_VALID, (random_detections(s, 1, 6)[:, :, 1:],), score_index=0, id_index=-1),
        sample(_VALID, (random_detections(s, 2, 0),)),
    ]


# non_max_suppression


def _suppression_infer(call: OpCall) -> Type:
    x, valid, indices = ranked(call, 0, 3), ranked(call, 1, 1), ranked(call, 2, 2)
    float_tensor(call, 0)
    int_tensor(call, 1)
    int_tensor(call, 2)
    call.number("iou_threshold")
    places = TupleType((TensorType(2, INT32), TensorType(2, INT32)))
    if isinstance(x.shape, tuple):
        batch, count, row = x.shape
        _column(call, "coord_start", row, needed=4)
        _column(call, "score_index", row)
        _column(call, "id_index", row, optional=True)
        if isinstance(valid.shape, tuple):
            require_equal(call, valid.shape[0], batch, "the number of 'valid_count'")
        if isinstance(indices.shape, tuple):
            require_equal(call, indices.shape[0], batch, "the batch of 'indices'")
            require_equal(call, indices.shape[1], count, "the number of 'indices'")
        places = TupleType((TensorType((batch, count), INT32), TensorType((batch, 1), INT32)))
    return places if call.flag("return_indices") else x


@dataclass(frozen=True, slots=True)
class Suppression:
    """How `vision.non_max_suppression` reads rows, and what it gives.

    Attributes:
        forced: Whether boxes of other labels are suppressed, too.
        top: How many of the best boxes are looked at; none is below 1.
        first: The first of the four columns of corners.
        score: The column of scores.
        label: That of labels; below 0 there is none.
        places: Whether the places of boxes are given, else the boxes.
        to_bottom: Whether suppressed boxes are put behind the others.
        relay: Whether, as Relay has it, boxes of scores of 0 and less stay, and those of negative
            labels cover none.
    """

    forced: bool
    top: int
    first: int
    score: int
    label: int
    places: bool
    to_bottom: bool
    relay: bool = False


def suppressed_boxes(
    e: Emitter,
    x: Expr,
    valid: Expr,
    indices: Expr | None,
    how: Suppression,
    threshold: float | None,
    most: Expr | None,
) -> Expr:
    """What `vision.non_max_suppression` gives.

    Args:
        e: Emits what computes it.
        x: The boxes, (batch, count, columns).
        valid: How many of them are looked at, (batch,), int32.
        indices: What is told as the places of boxes, (batch, count), int32, where it is asked for.
        how: How they are read.
        threshold: The overlap from which on a box is suppressed; None leaves all as they are.
        most: How many boxes of a batch are kept, an int32; None for all.
    """
    batch, count, _ = e.shape_of(x)
    numbers = e.op("arange", count, dtype=INT32)
    active = e.op("less", numbers, e.op("reshape", valid, (batch, 1)))
    order = e.op("broadcast_to", numbers, (batch, count))
    rows, kept = x, active
    if threshold is not None:
        lowest = e.number(-np.inf, x)
        ranked_by = e.op("where", active, column_of(e, x, how.score), lowest)
        order = e.op("argsort", ranked_by, axis=1, descending=True)
        rows = picked(e, x, order)
        if how.top > 0:
            top = Constant(np.array(how.top, np.int32))
            active = e.op("logical_and", active, e.op("less", numbers, top))
        labels = None if how.label < 0 else column_of(e, rows, how.label)
        corners, score = corners_of(e, rows, how.first), column_of(e, rows, how.score)
        shields = None
        if not how.relay:
            active = e.op("logical_and", active, e.op("greater", score, e.number(0, score)))
        elif labels is not None:
            shields = e.op("greater_equal", labels, e.number(0, labels))
        boxes = Boxes(corners, score, None if how.forced else labels, active, shields)
        kept = kept_boxes(e, boxes, e.number(threshold, x), most)
    if indices is not None:
        own = picked(e, indices, e.cast(order, INT64))
        moved, found = moved_to_front(e, kept, own)
        return Tuple((moved, e.op("reshape", found, (batch, 1))))
    wide = e.op("reshape", kept, (batch, count, 1))
    found = e.op("where", wide, rows, e.number(-1, rows))
    return moved_to_front(e, kept, rows)[0] if how.to_bottom else found


def _suppression_of(attrs: Attrs) -> Suppression:
    return Suppression(
        flag_attr(attrs, "force_suppress"),
        int_attr(attrs, "top_k"),
        int_attr(attrs, "coord_start"),
        int_attr(attrs, "score_index"),
        int_attr(attrs, "id_index"),
        flag_attr(attrs, "return_indices"),
        flag_attr(attrs, "invalid_to_bottom"),
    )


def _suppression_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    x, valid, indices = args
    how, limit = _suppression_of(attrs), int_attr(attrs, "max_output_size")
    return suppressed_boxes(
        e,
        x,
        e.cast(valid, INT32),
        e.cast(indices, INT32) if how.places else None,
        how,
        _number(attrs, "iou_threshold"),
        None if limit < 1 else Constant(np.array(limit, np.int32)),
    )


def _suppression_reference(args: Sequence[RefArg], attrs: Attrs) -> RefArg:
    x, valid, indices = _arrays(args)
    how, threshold = _suppression_of(attrs), _number(attrs, "iou_threshold")
    limit = int_attr(attrs, "max_output_size")
    places, counts = np.full(x.shape[:2], -1, np.int32), np.zeros((len(x), 1), np.int32)
    boxes = np.full_like(x, -1)
    for n, rows in enumerate(x):
        looked = np.arange(min(max(int(valid[n]), 0), len(rows)))
        looked = looked[np.argsort(-real(rows)[looked, how.score], kind="stable")]
        slots = _greedy(rows, looked, how, threshold, limit)
        own = looked[slots]
        places[n, : len(own)], counts[n] = indices[n, own], len(own)
        boxes[n, np.arange(len(own)) if how.to_bottom else slots] = rows[own]
    return (places, counts) if how.places else boxes


def _greedy(
    rows: Array, looked: Array, how: Suppression, threshold: float, limit: int
) -> list[int]:
    """The ranks of boxes that are kept."""
    corners, kept = ascending_corners(rows[:, how.first :][:, :4]), list[int]()
    for rank, at in enumerate(looked.tolist()):
        if (how.top > 0 and rank >= how.top) or 0 < limit == len(kept):
            break
        alike = [
            b for b in looked[kept]
            if how.forced or how.label < 0 or rows[b, how.label] == rows[at, how.label]
        ]  # fmt: skip
        covered = any(overlap(corners[at], corners[b]) >= threshold for b in alike)
        if rows[at, how.score] > 0 and not covered:
            kept.append(rank)
    return kept


def _suppression_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)

    def call(batch: int, count: int, kind: str = "float32", **attrs: object) -> Sample:
        valid = s.array((batch,), "int32", 0, count)
        indices = s.array((batch, count), "int32", 0, 99)
        return sample(
            _SUPPRESSION, (random_detections(s, batch, count, kind), valid, indices), **attrs
        )

    return [
        call(2, 9),
        call(1, 12, iou_threshold=0.2, force_suppress=True, top_k=8, max_output_size=3),
        call(2, 8, "float64", return_indices=False, iou_threshold=0.31),
        call(2, 8, return_indices=False, invalid_to_bottom=True, id_index=-1, iou_threshold=0.1),
        call(1, 5, iou_threshold=0.0),
        call(2, 0),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "vision.get_valid_counts",
        _VALID,
        _valid_infer,
        _valid_reference,
        """Boxes whose scores are above `score_threshold` first: their number, they, their places.

        Rows of `data` ``(b, n, k)``, of floats, have the score in column `score_index` and a label
        in `id_index`, which must be 0 or more; -1 if there is none. Gives int32 ``(b,)``, the rows
        in their order and -1 behind them ``(b, n, k)``, and int32 ``(b, n)``, with -1 behind
        (R.vision.get_valid_counts).
        """,
        expand=_valid_expand,
        samples=_valid_samples,
    ),
    OpDef(
        "vision.non_max_suppression",
        _SUPPRESSION,
        _suppression_infer,
        _suppression_reference,
        """Boxes without those that a better one of their label covers, by `iou_threshold` or more.

        Of rows ``(b, n, k)``, read as in `vision.get_valid_counts`, with two corners from column
        `coord_start` on, the first `valid_count` ``(b,)`` are looked at, of those the `top_k` with
        the best scores, and at most `max_output_size` are kept; below 1 all are. `force_suppress`:
        boxes cover those of other labels as well. None with a score of 0 or less is kept.

        Gives `indices` ``(b, n)`` of those kept, best first, with -1 behind, int32, and their
        number ``(b, 1)``, int32; without `return_indices` the rows in the order of their scores,
        of -1 where suppressed, which `invalid_to_bottom` puts last (R.vision.non_max_suppression,
        without soft suppression).
        """,
        expand=_suppression_expand,
        samples=_suppression_samples,
    ),
)
