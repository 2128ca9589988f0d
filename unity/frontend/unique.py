"""The different elements of a tensor, or rows, by sorting: how many there are shows at run time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.dims import Dim
from unity.ir.dtype import BOOL, INT64, UINT8
from unity.ir.graph import Constant, Expr, Scan, Tuple
from unity.ir.types import TensorType

from .emission import Emission
from .sizes import sizes_of


@dataclass(frozen=True, slots=True)
class Unique:
    """What is different among rows.

    Attributes:
        first: Where each different row stands for the first time.
        inverse: For each row, which of the different ones it is.
        counts: How often each is there.
    """

    first: Expr
    inverse: Expr
    counts: Expr


def unique_rows(c: Emission, rows: Expr, *, ascending: bool) -> Unique:
    """The different rows of a matrix, compared element by element.

    Args:
        c: The node.
        rows: The matrix, of shape (rows, columns). NaNs are equal, as are the two zeros.
        ascending: Whether they come in ascending order, else as they stand first.
    """
    count = c.shape_of(rows)[0]
    order = _order(c, _with_one_zero(c, rows))
    ranked = c.op("take", rows, order, axis=0)
    begins = _begins(c, ranked, count)
    group = c.op("subtract", c.op("cumsum", c.cast(begins, INT64), axis=0), _integer(1))
    places = c.op("reshape", c.op("nonzero", begins), (-1,))
    (found,) = c.shape_of(places)
    first = c.op("take", order, places, axis=0)
    whole = c.materialize(sizes_of((count,)))
    ends = c.op("concat", [places, whole], axis=0)
    numbers = c.op("arange", 0, found, 1, dtype=INT64)
    after = c.op("take", ends, c.op("add", numbers, _integer(1)), axis=0)
    counts = c.op("subtract", after, places)
    if not ascending:
        by_place = c.op("argsort", first, axis=0)
        first, counts = (c.op("take", v, by_place, axis=0) for v in (first, counts))
        group = c.op("take", c.op("argsort", by_place, axis=0), group, axis=0)
    nothing = c.op("zeros", (count,), dtype=INT64)
    return Unique(first, c.op("scatter_elements", nothing, order, group, axis=0), counts)


def _integer(value: int) -> Constant:
    return Constant(np.array(value, np.int64))


def _with_one_zero(c: Emission, rows: Expr) -> Expr:
    """Numbers as they are sorted: bools as numbers, and 0 for -0."""
    kind = c.dtype_of(rows)
    if kind == BOOL:
        return c.cast(rows, UINT8)
    if not kind.is_float:
        return rows
    zero = c.number(0, rows)
    return c.op("where", c.op("equal", rows, zero), zero, rows)


def _order(c: Emission, rows: Expr) -> Expr:
    """The order of rows: by their last column, then, stable, by each before it."""
    count, width = c.shape_of(rows)
    if width == 1:
        return c.op("argsort", c.op("reshape", rows, (count,)), axis=0)
    inner = Emission(c.builder.child(), c.broadcasts.inner(), c.label, c.span)
    order = inner.builder.new_var("order", TensorType((count,), INT64))
    column = inner.builder.new_var("column", TensorType((count,), c.dtype_of(rows)))
    moved = inner.op("argsort", inner.op("take", column, order, axis=0), axis=0)
    body = inner.builder.body(Tuple((inner.op("take", order, moved, axis=0),)))
    columns = c.op("flip", c.op("permute_dims", rows, axes=(1, 0)), axis=0)
    start = c.op("arange", 0, count, 1, dtype=INT64)
    scan = Scan((order,), (start,), (column,), (columns,), body)
    return c.field(c.builder.emit(scan, c.label, c.span), 0)


def _begins(c: Emission, ranked: Expr, count: Dim) -> Expr:
    """Which rows, in order, differ from the one before; the first does."""
    place = c.op("arange", 0, count, 1, dtype=INT64)
    before = c.op("maximum", c.op("subtract", place, _integer(1)), _integer(0))
    last = c.op("take", ranked, before, axis=0)
    differs = c.op("not_equal", ranked, last)
    if c.dtype_of(ranked).is_float:
        both = c.op("logical_and", c.op("isnan", ranked), c.op("isnan", last))
        differs = c.op("logical_and", differs, c.op("logical_not", both))
    return c.op("logical_or", c.op("any", differs, axis=(1,)), c.op("equal", place, _integer(0)))
