"""Boxes that others cover are suppressed: one scan over the boxes in the order of their scores.

Each step compares one box with those kept so far, so that no matrix of all pairs is held.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.frontend.emission import Emission
from unity.ir.dtype import BOOL, INT32
from unity.ir.graph import Constant, Expr, Scan, Tuple
from unity.ir.types import TensorType


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
    batch, count = c.shape_of(boxes.scores)
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
    reaches = "greater_equal" if inclusive else "greater"
    covers = inner.op("logical_and", inner.op(reaches, overlap, threshold), shielding)
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
