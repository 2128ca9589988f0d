"""Boxes that others cover are suppressed, in the order of their scores, by one kernel.

What operators and importers emit for it, then what references and samples share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.dtype import INT32, Array
from unity.ir.graph import Constant, Expr
from unity.op.accumulate import Real, real
from unity.op.sampling import Sampler

if TYPE_CHECKING:
    from unity.op.emitter import Emitter


def moved_to_front(e: Emitter, flags: Expr, rows: Expr, filler: float = -1) -> tuple[Expr, Expr]:
    """The flagged rows of each batch first, in their order, then rows of a filler; their counts."""
    batch, count = e.shape_of(flags)
    order = e.op("argsort", e.cast(e.op("logical_not", flags), INT32), axis=1)
    found = e.op("sum", e.cast(flags, INT32), axis=(1,))
    held = e.op("less", e.op("arange", count, dtype=INT32), e.op("reshape", found, (batch, 1)))
    moved = picked(e, rows, order)
    wide = e.op("reshape", held, (batch, count, *(1,) * (len(e.shape_of(rows)) - 2)))
    return e.op("where", wide, moved, e.number(filler, rows)), found


def picked(e: Emitter, rows: Expr, order: Expr) -> Expr:
    """Rows of each batch in another order."""
    batch, count = e.shape_of(order)
    if len(e.shape_of(rows)) == 2:
        return e.op("gather_elements", rows, order, axis=1)
    return e.op("gather_nd", rows, e.op("reshape", order, (batch, count, 1)), batch_dims=1)


@dataclass(frozen=True, slots=True)
class Boxes:
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


def corners_of(e: Emitter, boxes: Expr, first: int) -> tuple[Expr, Expr, Expr, Expr]:
    """The corners of boxes, whichever was given first, of columns from one on."""
    a, b, c, d = (column_of(e, boxes, first + i) for i in range(4))
    low, high = ("minimum", "maximum")
    return e.op(low, a, c), e.op(low, b, d), e.op(high, a, c), e.op(high, b, d)


def column_of(e: Emitter, rows: Expr, place: int) -> Expr:
    """One column of the rows of each batch."""
    return e.op("take", rows, Constant(np.array(place, np.int64)), axis=2)


def kept_boxes(
    e: Emitter,
    boxes: Boxes,
    threshold: Expr,
    most: Expr | None = None,
    *,
    counts_all: bool = False,
    inclusive: bool = True,
) -> Expr:
    """Which boxes are kept, (batch, count): a box that overlaps a kept one is not.

    Args:
        e: Emits what finds them.
        boxes: The boxes.
        threshold: The overlap, of the union of both, that a suppressed box has or exceeds.
        most: How many boxes of each batch are kept; None for all.
        counts_all: Whether those with scores of 0 and less count.
        inclusive: Whether a box is suppressed that just has the threshold's overlap.
    """
    left, top, right, bottom = boxes.corners
    area = e.op("multiply", e.op("subtract", right, left), e.op("subtract", bottom, top))
    positive = e.op("greater", boxes.scores, e.number(0, boxes.scores))
    shields = positive if boxes.shields is None else boxes.shields
    one = e.op("zeros_like", positive)  # label for all
    labels = one if boxes.labels is None else boxes.labels
    limit = Constant(np.array(-1, np.int32)) if most is None else most
    flags = (positive, boxes.active, shields, labels)
    kept: Expr = e.op(
        "kept_boxes",
        *(*boxes.corners, area, *flags, threshold, limit),
        counts_all=counts_all,
        inclusive=inclusive,
    )
    return kept


def overlap(a: Real, b: Real) -> float:
    """The part of two boxes' union that they share; corners ascend."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = float(np.prod(np.maximum(sides, 0)))
    union = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - common
    return common / union if union > 0 else 0.0


def ascending_corners(rows: Array) -> Real:
    """Corners in ascending order, whichever was given first."""
    a, b = real(rows[:, :2]), real(rows[:, 2:])
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], axis=1)


def random_detections(s: Sampler, batch: int, count: int, kind: str = "float32") -> Array:
    """Rows of a label, a score and two corners; no two scores are the same."""
    labels = s.array((batch, count, 1), "int32", -1, 2).astype(kind)
    order = [s.rng.permutation(count) for _ in range(batch)]
    scores = (np.asarray(order).reshape(batch, count, 1) / max(count, 1) - 0.1).astype(kind)
    low = s.array((batch, count, 2), kind, 0, 4)
    high = np.add(low, s.array((batch, count, 2), kind, 1, 3))
    return np.concatenate([labels, scores, low, high], axis=2)
