"""Boxes that others cover are suppressed, in the order of their scores, by one kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.frontend.emission import Emission
from unity.ir.dtype import INT32
from unity.ir.graph import Constant, Expr


def moved_to_front(c: Emission, flags: Expr, rows: Expr, filler: float = -1) -> tuple[Expr, Expr]:
    """The flagged rows of each batch first, in their order, then rows of a filler; their counts."""
    batch, count = c.shape_of(flags)
    order = c.op("argsort", c.cast(c.op("logical_not", flags), INT32), axis=1)
    found = c.op("sum", c.cast(flags, INT32), axis=(1,))
    held = c.op("less", c.op("arange", count, dtype=INT32), c.op("reshape", found, (batch, 1)))
    moved = picked(c, rows, order)
    wide = c.op("reshape", held, (batch, count, *(1,) * (len(c.shape_of(rows)) - 2)))
    return c.op("where", wide, moved, c.number(filler, rows)), found


def picked(c: Emission, rows: Expr, order: Expr) -> Expr:
    """Rows of each batch in another order."""
    batch, count = c.shape_of(order)
    if len(c.shape_of(rows)) == 2:
        return c.op("gather_elements", rows, order, axis=1)
    return c.op("gather_nd", rows, c.op("reshape", order, (batch, count, 1)), batch_dims=1)


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


def corners_of(c: Emission, boxes: Expr, first: int) -> tuple[Expr, Expr, Expr, Expr]:
    """The corners of boxes, whichever was given first, of columns from one on."""
    a, b, d, e = (column_of(c, boxes, first + i) for i in range(4))
    low, high = ("minimum", "maximum")
    return c.op(low, a, d), c.op(low, b, e), c.op(high, a, d), c.op(high, b, e)


def column_of(c: Emission, rows: Expr, place: int) -> Expr:
    """One column of the rows of each batch."""
    return c.op("take", rows, Constant(np.array(place, np.int64)), axis=2)


def kept_boxes(
    c: Emission,
    boxes: Boxes,
    threshold: Expr,
    most: Expr | None = None,
    *,
    counts_all: bool = False,
    inclusive: bool = True,
) -> Expr:
    """Which boxes are kept, (batch, count): a box that overlaps a kept one is not.

    Args:
        c: The call.
        boxes: The boxes.
        threshold: The overlap, of the union of both, that a suppressed box has or exceeds.
        most: How many boxes of each batch are kept; None for all.
        counts_all: Whether those with scores of 0 and less count.
        inclusive: Whether a box is suppressed that just has the threshold's overlap.
    """
    left, top, right, bottom = boxes.corners
    area = c.op("multiply", c.op("subtract", right, left), c.op("subtract", bottom, top))
    positive = c.op("greater", boxes.scores, c.number(0, boxes.scores))
    shields = positive if boxes.shields is None else boxes.shields
    one = c.op("zeros_like", positive)  # label for all
    labels = one if boxes.labels is None else boxes.labels
    limit = Constant(np.array(-1, np.int32)) if most is None else most
    flags = (positive, boxes.active, shields, labels)
    kept: Expr = c.op(
        "kept_boxes",
        *(*boxes.corners, area, *flags, threshold, limit),
        counts_all=counts_all,
        inclusive=inclusive,
    )
    return kept
