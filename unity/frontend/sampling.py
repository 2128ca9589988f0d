"""Maps read between their pixels: nearest, linear and cubic, with what is beyond their edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from unity.ir.dims import Dim
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

from .emission import Emission


@dataclass(frozen=True, slots=True)
class Reading:
    """How a map is read at places that are no pixels.

    Attributes:
        method: "nearest", "bilinear" or "bicubic".
        padding: What is beyond its edges: "zeros", "border" or "reflection".
        aligned: Whether what is reflected turns at the middle of a pixel, not at its edge.
        join: What becomes of the weighted pixels around a place: "add", or "maximum" of them.
    """

    method: str
    padding: str
    aligned: bool = True
    join: str = "add"


def axes_last(c: Emission, x: Expr) -> Expr:
    """A map of the layout ``NC...`` with its channels last, as gathers read it."""
    rank = len(c.shape_of(x))
    return c.op("permute_dims", x, axes=(0, *range(2, rank), 1))


def read_between(
    c: Emission, x: Expr, image: Expr, at: Sequence[Expr], extents: Sequence[Dim], how: Reading
) -> Expr:
    """Elements of a map, channels last: ``x[image, at...]`` of the shape of the places, channels.

    Args:
        c: The call.
        x: The map, of shape (batch, extents..., channels).
        image: Which of the batch; broadcasts with the places.
        at: Coordinates in pixels along each axis, all of one shape.
        extents: The map's.
        how: How it is read.
    """
    if how.method != "bicubic":
        at = [_inside(c, v, e, how) for v, e in zip(at, extents, strict=True)]
    taps = [_taps(c, v, how.method) for v in at]
    total: Expr | None = None
    for chosen in product(*taps):
        places = [_integer(c, p, e, how) for (p, _), e in zip(chosen, extents, strict=True)]
        value = _gathered(c, x, image, [p for p, _ in places])
        weight: Expr | None = None
        for (_, w), (_, inside) in zip(chosen, places, strict=True):
            for factor in (w, inside):
                if factor is not None:
                    weight = factor if weight is None else c.op("multiply", weight, factor)
        if weight is not None:
            wide = c.op("reshape", weight, (*c.shape_of(weight), 1))
            value = c.op("multiply", value, wide)
        total = value if total is None else c.op(how.join, total, value)
    assert total is not None
    return total


def _taps(c: Emission, at: Expr, method: str) -> list[tuple[Expr, Expr | None]]:
    """Pixels around a coordinate, with their weights."""
    if method == "nearest":
        return [(c.op("round", at), None)]
    base = c.op("floor", at)
    t = c.op("subtract", at, base)
    if method == "bilinear":
        return [(base, c.op("subtract", 1.0, t)), (c.op("add", base, 1.0), t)]
    if method != "bicubic":
        raise c.gap(f"method={method!r}")
    far = (3.0, -6.0, 3.75, -0.75)  # of 1, d, d^2, d^3 for distances of 1 to 2
    near = (1.0, 0.0, -2.25, 1.25)
    found: list[tuple[Expr, Expr | None]] = []
    for step, poly in ((-1, far), (0, near), (1, near), (2, far)):
        d = c.op("subtract", t, float(step)) if step <= 0 else c.op("subtract", float(step), t)
        found.append((c.op("add", base, float(step)), _polynomial(c, d, poly)))
    return found


def _polynomial(c: Emission, d: Expr, coefficients: Sequence[float]) -> Expr:
    found: Expr = c.number(coefficients[-1], d)
    for coefficient in reversed(coefficients[:-1]):
        found = c.op("add", c.op("multiply", found, d), coefficient)
    return found


def _inside(c: Emission, at: Expr, extent: Dim, how: Reading) -> Expr:
    """A coordinate moved into a map, where its padding does so."""
    match how.padding:
        case "zeros":
            return at
        case "border":
            return _clipped(c, at, extent)
        case "reflection":
            low, span = (0.0, extent - 1) if how.aligned else (-0.5, extent)
            if span == 0:
                return c.op("zeros_like", at)
            away = c.op("abs", c.op("subtract", at, low))
            there = size_of(c, 2 * span, at)
            if not isinstance(span, int):  # of a map of one pixel, what follows makes it 0
                there = c.op("maximum", there, 1.0)
            period = c.op("floor_mod", away, there)
            back = c.op("minimum", period, c.op("subtract", there, period))
            return _clipped(c, c.op("add", back, low), extent)
        case _:
            raise c.gap(f"padding_mode={how.padding!r}")


def _clipped(c: Emission, at: Expr, extent: Dim) -> Expr:
    """A coordinate no further than the pixels at the ends."""
    if isinstance(extent, int):
        return c.op("clip", at, min=0.0, max=float(extent - 1))
    return c.op("maximum", c.op("minimum", at, size_of(c, extent - 1, at)), 0.0)


def size_of(c: Emission, value: Dim, like: Expr) -> Expr | float:
    """A size as a number that a tensor of reals is computed with."""
    return float(value) if isinstance(value, int) else c.cast(c.op("dims", value), c.dtype_of(like))


def _integer(c: Emission, at: Expr, extent: Dim, how: Reading) -> tuple[Expr, Expr | None]:
    """A pixel's index, and 0 in place of it if it is outside and that means zeros."""
    if how.method == "bicubic":
        at = _inside(c, at, extent, how)
    found = c.cast(_clipped(c, at, extent), INT64)
    if how.padding != "zeros":
        return found, None
    above = c.op("greater_equal", at, 0.0)
    below = c.op("less_equal", at, size_of(c, extent - 1, at))
    return found, c.cast(c.op("logical_and", above, below), c.dtype_of(at))


def _gathered(c: Emission, x: Expr, image: Expr, places: Sequence[Expr]) -> Expr:
    shape = c.shape_of(places[0])
    first = c.op("broadcast_to", c.cast(image, INT64), shape)
    return c.op("gather_nd", x, c.op("stack", [first, *places], axis=len(shape)))


def half_away(c: Emission, x: Expr) -> Expr:
    """Rounded as C's ``round``, halves away from zero, exactly at every float."""
    whole = c.op("trunc", x)
    rest = c.op("abs", c.op("subtract", x, whole))
    step = c.op("where", c.op("greater_equal", rest, c.number(0.5, x)), c.op("sign", x), 0.0)
    return c.op("add", whole, step)


def numbers(c: Emission, count: Dim, rank: int) -> Expr:
    """The numbers of a batch's images, to be broadcast."""
    if isinstance(count, int):
        return Constant(np.arange(count).reshape(count, *(1,) * (rank - 1)))
    return c.op("reshape", c.op("arange", 0, count, 1, dtype=INT64), (count, *(1,) * (rank - 1)))


def grid_sample(c: Emission, x: Expr, grid: Expr, how: Reading) -> Expr:
    """A map of the layout ``NC...`` read at the places of a grid, whose corners are -1 and 1.

    Args:
        c: The node.
        x: The map.
        grid: Coordinates of shape (batch, axes, places...), those along the last axis first.
        how: How it is read.
    """
    batch, _, *extents = c.shape_of(x)
    kind = c.dtype_of(x)
    if len(extents) == 2 and 0 not in extents and kind.is_float and kind == c.dtype_of(grid):
        return c.op(
            "image.grid_sample", x, grid,
            method=how.method, padding_mode=how.padding, align_corners=how.aligned,
        )  # fmt: skip
    along = [
        c.op("take", grid, Constant(np.array(axis, np.int64)), axis=1)
        for axis in range(len(extents))
    ]
    if how.method == "bicubic" and len(extents) != 2:
        raise c.gap("cubic interpolation of a volume")
    at: list[Expr] = []
    for v, extent in zip(along, reversed(extents), strict=True):
        v = c.op("add", v, 1.0)
        if how.aligned:
            half = size_of(c, extent - 1, v)
            half = half / 2 if isinstance(half, float) else c.op("divide", half, 2.0)
            v = c.op("multiply", v, half)
        else:
            reach = c.op("multiply", v, size_of(c, extent, v))
            v = c.op("divide", c.op("subtract", reach, 1.0), 2.0)
        at.insert(0, v)
    image = numbers(c, batch, len(extents) + 1)
    found = read_between(c, axes_last(c, x), image, at, extents, how)
    rank = len(extents) + 2
    return c.op("permute_dims", found, axes=(0, rank - 1, *range(1, rank - 1)))
