"""Regions of interest with as many samples as each part of a region is large.

How many those are only running tells. Samples between pixels are linear along each axis, so that a
part's mean is a product of its weights of rows, the map, and its weights of columns; the weights
are added up by a loop over samples. Those that lie beyond the map weigh nothing and are passed
over: the loop is no longer than the map is, whatever a region says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unity.frontend.emission import Emission
from unity.ir.dims import Dim
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr, Scan, Tuple, Var, While
from unity.ir.types import TensorType

from .regions import Regions


@dataclass(frozen=True, slots=True)
class _Samples:
    """The samples of each part of each region along one axis of a map.

    Attributes:
        begin: Where each part begins, (count, parts).
        step: How far its samples lie from each other, (count, 1).
        grid: How many it has, whole numbers, (count, 1); none where a region has no length.
        first: The first of them that may lie on the map, (count, parts).
        end: The one behind the last such, (count, parts).
        most: How many such samples a part has at most, a scalar of int64.
        extent: How long the axis is.
    """

    begin: Expr
    step: Expr
    grid: Expr
    first: Expr
    end: Expr
    most: Expr
    extent: int

    def weights(self, c: Emission, nth: Expr) -> tuple[Expr, Expr]:
        """How much of each pixel the nth such sample is, (count, parts, extent); whether it is."""
        place = c.op("add", self.first, c.cast(nth, c.dtype_of(self.first)))
        at = c.op("add", self.begin, c.op("multiply", c.op("add", place, 0.5), self.step))
        there = c.op("less", place, self.grid)
        above = c.op("greater_equal", at, -1.0)
        below = c.op("less_equal", at, float(self.extent))
        inside = c.op("logical_and", there, c.op("logical_and", above, below))
        held = c.op("clip", at, min=0.0, max=float(self.extent - 1))
        pixels = Constant(np.arange(self.extent).astype(c.dtype_of(at).numpy))
        shape = c.shape_of(at)
        wide = c.op("reshape", held, (*shape, 1))
        near = c.op("subtract", 1.0, c.op("abs", c.op("subtract", wide, pixels)))
        hat = c.op("maximum", near, 0.0)
        inside = c.op("reshape", inside, (*shape, 1))
        return c.op("where", inside, hat, c.number(0, hat)), there


def adaptive_regions(
    c: Emission, x: Expr, regions: Regions, size: tuple[int, int], mode: str
) -> Expr:
    """Means ("mean") or maxima ("max") of the samples in the parts of regions.

    Args:
        c: The node.
        x: The maps, of the layout NCHW; their extents are known.
        regions: The regions.
        size: How many parts a region has along each axis.
        mode: What becomes of a part's samples.

    Returns:
        Of the layout NHWC: (regions, rows, columns, channels).
    """
    _, _, *extents = c.extents(x, "a map with regions")
    rows, columns = (
        _samples(c, first, last, regions.least or 0.0, parts, extent)
        for (first, last), parts, extent in zip(regions.ends, size, extents, strict=True)
    )
    if mode == "mean":
        found = _products(c, x, regions.image, _summed(c, rows), _summed(c, columns))
    else:
        found = _greatest(c, x, regions.image, rows, columns)
    return c.op("permute_dims", found, axes=(0, 2, 3, 1))


def _samples(
    c: Emission, first: Expr, last: Expr, least: float, parts: int, extent: int
) -> _Samples:
    length = c.op("maximum", c.op("subtract", last, first), c.number(least, first))
    part = c.op("divide", length, c.number(parts, length))
    grid = c.op("ceil", part)
    one = c.op("maximum", grid, 1.0)
    step = c.op("divide", part, one)
    numbers = Constant(np.arange(parts).astype(c.dtype_of(first).numpy))
    begin = c.op("add", first, c.op("multiply", part, numbers))
    apart = c.op("where", c.op("greater", step, 0.0), step, c.number(1, step))
    # The nth sample lies at begin + (n + 1/2) * step; one more on each side for what is rounded.
    low = c.op("divide", c.op("subtract", -1.0, begin), apart)
    high = c.op("divide", c.op("subtract", float(extent), begin), apart)
    low, high = c.op("subtract", c.op("floor", low), 1.0), c.op("add", c.op("ceil", high), 1.0)
    first_of, end = (c.op("minimum", c.op("maximum", v, 0.0), grid) for v in (low, high))
    count = c.cast(c.op("max", c.op("subtract", end, first_of), axis=None), INT64)
    most = c.op("clip", count, min=0, max=2 * extent + 8)
    return _Samples(begin, step, grid, first_of, end, most, extent)


def _looped(
    c: Emission, most: Expr, start: Expr, following: Callable[[Emission, Expr, Expr], Expr]
) -> Expr:
    """A value after so many steps: `following` gives it from the step's number and the last."""
    inner = Emission(c.builder.child(), c.broadcasts.inner(), c.label, c.span)
    nth = inner.builder.new_var("nth", TensorType((), INT64))
    state = inner.builder.new_var("so_far", c.type_of(start))
    after = following(inner, nth, state)
    body = inner.builder.body(Tuple((inner.op("add", nth, 1), after)))
    asked = Emission(c.builder.child(), c.broadcasts.inner(), c.label, c.span)
    condition = asked.builder.body(asked.op("less", nth, most))
    loop = While((nth, state), (Constant(np.array(0, np.int64)), start), condition, body)
    return c.field(c.builder.emit(loop, c.label, c.span), 1)


def _summed(c: Emission, axis: _Samples) -> Expr:
    """How much of each pixel the mean of each part's samples is, (count, parts, extent)."""
    count, parts = c.shape_of(axis.begin)
    kind = c.dtype_of(axis.begin)
    start = c.op("zeros", (count, parts, axis.extent), dtype=kind)
    total = _looped(
        c, axis.most, start, lambda e, nth, so_far: e.op("add", so_far, axis.weights(e, nth)[0])
    )
    divisor = c.op("maximum", axis.grid, 1.0)
    return c.op("divide", total, c.op("reshape", divisor, (count, 1, 1)))


def _products(c: Emission, x: Expr, image: Expr, rows: Expr, columns: Expr) -> Expr:
    """Weights of rows times maps times weights of columns, (count, channels, rows, columns).

    One region at a time, so that no map is held for each of them.
    """
    _, channels, height, width = c.shape_of(x)
    kind = c.dtype_of(x)
    turned = c.op("permute_dims", columns, axes=(0, 2, 1))
    inputs = [image, c.cast(rows, kind), c.cast(turned, kind)]
    inner = Emission(c.builder.child(), c.broadcasts.inner(), c.label, c.span)
    elements: list[Var] = []
    for name, value in zip(("image", "rows", "columns"), inputs, strict=True):
        shape: tuple[Dim, ...] = c.shape_of(value)[1:]
        elements.append(inner.builder.new_var(name, TensorType(shape, c.dtype_of(value))))
    which, down, across = elements
    own = inner.op("reshape", inner.op("take", x, which, axis=0), (channels, height, width))
    found = inner.op("matmul", inner.op("matmul", down, own), across)
    scan = Scan((), (), tuple(elements), tuple(inputs), inner.builder.body(Tuple((found,))))
    return c.field(c.builder.emit(scan, c.label, c.span), 0)


def _greatest(c: Emission, x: Expr, image: Expr, rows: _Samples, columns: _Samples) -> Expr:
    """The greatest sample of each part, 0 for those beyond the map: (count, channels, ...)."""
    count, height = c.shape_of(rows.begin)
    width = c.shape_of(columns.begin)[1]
    channels, kind = c.shape_of(x)[1], c.dtype_of(x)
    maps = c.op("take", x, image, axis=0)
    lowest = c.number(-np.inf, x)
    start = c.op("full", (count, channels, height, width), lowest)
    across = c.op("maximum", columns.most, 1)

    def following(e: Emission, nth: Expr, so_far: Expr) -> Expr:
        down, own = rows.weights(e, e.op("floor_divide", nth, across))
        aside, other = columns.weights(e, e.op("floor_mod", nth, across))
        down, aside = (e.op("expand_dims", e.cast(v, kind), axis=1) for v in (down, aside))
        half = e.op("matmul", down, maps)
        value = e.op("matmul", half, e.op("permute_dims", aside, axes=(0, 1, 3, 2)))
        both = _crossed(e, "logical_and", own, other)
        return e.op("maximum", so_far, e.op("where", both, value, lowest))

    found = _looped(c, c.op("multiply", rows.most, columns.most), start, following)
    passed = _crossed(c, "logical_or", *(_passed(c, axis) for axis in (rows, columns)))
    beyond = c.op("maximum", found, c.number(0, found))
    return c.op("where", passed, beyond, found)


def _passed(c: Emission, axis: _Samples) -> Expr:
    """Whether some of a part's samples were passed over, (count, parts)."""
    before = c.op("greater", axis.first, 0.0)
    return c.op("logical_or", before, c.op("less", axis.end, axis.grid))


def _crossed(c: Emission, name: str, rows: Expr, columns: Expr) -> Expr:
    """What holds of rows and of columns, (count, 1, rows, columns)."""
    count, height = c.shape_of(rows)
    width = c.shape_of(columns)[1]
    left = c.op("reshape", rows, (count, 1, height, 1))
    return c.op(name, left, c.op("reshape", columns, (count, 1, 1, width)))
