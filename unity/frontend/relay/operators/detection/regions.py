"""Maps read between their pixels: grids, regions of interest, crops, deformed windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

from ..convolutions import data_layout, paddings, steps
from ..elementwise import half_away
from ..layouts import transform


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a map is read at places that are no pixels.

    Attributes:
        method: "nearest", "bilinear" or "bicubic".
        padding: What is beyond its edges: "zeros", "border" or "reflection".
        aligned: Whether what is reflected turns at the middle of a pixel, not at its edge.
    """

    method: str
    padding: str
    aligned: bool = True


def _axes_last(c: RelayCall, x: Expr) -> Expr:
    """A map of the layout ``NC...`` with its channels last, as gathers read it."""
    rank = len(c.shape_of(x))
    return c.op("permute_dims", x, axes=(0, *range(2, rank), 1))


def _read(
    c: RelayCall, x: Expr, image: Expr, at: Sequence[Expr], extents: Sequence[int], how: _Reading
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
        total = value if total is None else c.op("add", total, value)
    assert total is not None
    return total


def _taps(c: RelayCall, at: Expr, method: str) -> list[tuple[Expr, Expr | None]]:
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


def _polynomial(c: RelayCall, d: Expr, coefficients: Sequence[float]) -> Expr:
    found: Expr = c.number(coefficients[-1], d)
    for coefficient in reversed(coefficients[:-1]):
        found = c.op("add", c.op("multiply", found, d), coefficient)
    return found


def _inside(c: RelayCall, at: Expr, extent: int, how: _Reading) -> Expr:
    """A coordinate moved into a map, where its padding does so."""
    match how.padding:
        case "zeros":
            return at
        case "border":
            return c.op("clip", at, min=0.0, max=float(extent - 1))
        case "reflection":
            low, span = (0.0, extent - 1) if how.aligned else (-0.5, extent)
            if span == 0:
                return c.op("zeros_like", at)
            away = c.op("abs", c.op("subtract", at, low))
            period = c.op("floor_mod", away, 2.0 * span)
            back = c.op("minimum", period, c.op("subtract", 2.0 * span, period))
            return c.op("clip", c.op("add", back, low), min=0.0, max=float(extent - 1))
        case _:
            raise c.gap(f"padding_mode={how.padding!r}")


def _integer(c: RelayCall, at: Expr, extent: int, how: _Reading) -> tuple[Expr, Expr | None]:
    """A pixel's index, and 0 in place of it if it is outside and that means zeros."""
    if how.method == "bicubic":
        at = _inside(c, at, extent, how)
    last = float(extent - 1)
    found = c.cast(c.op("clip", at, min=0.0, max=last), INT64)
    if how.padding != "zeros":
        return found, None
    above, below = c.op("greater_equal", at, 0.0), c.op("less_equal", at, last)
    return found, c.cast(c.op("logical_and", above, below), c.dtype_of(at))


def _gathered(c: RelayCall, x: Expr, image: Expr, places: Sequence[Expr]) -> Expr:
    shape = c.shape_of(places[0])
    first = c.op("broadcast_to", c.cast(image, INT64), shape)
    return c.op("gather_nd", x, c.op("stack", [first, *places], axis=len(shape)))


def _numbers(c: RelayCall, count: int, rank: int) -> Expr:
    """The numbers of a batch's images, to be broadcast."""
    return Constant(np.arange(count).reshape(count, *(1,) * (rank - 1)))


def _grid_sample(c: RelayCall) -> Expr:
    """A map read at the places of a grid, whose corners are -1 and 1."""
    x, grid, layout = c.tensor(0), c.tensor(1), c.text("layout")
    if layout not in ("NCHW", "NCDHW"):
        raise c.gap(f"layout={layout!r}")
    aligned = c.flag("align_corners")
    how = _Reading(c.text("method"), c.text("padding_mode"), aligned)
    batch, _, *extents = c.extents(x, "a map read between its pixels")
    if how.method == "bicubic" and len(extents) != 2:
        raise c.gap("method='bicubic' of a volume")
    at: list[Expr] = []
    for axis, extent in enumerate(reversed(extents)):  # a grid's first coordinate is x
        v = c.op("take", grid, Constant(np.array(axis, np.int64)), axis=1)
        v = c.op("add", v, 1.0)
        if aligned:
            v = c.op("multiply", v, (extent - 1) / 2)
        else:
            v = c.op("divide", c.op("subtract", c.op("multiply", v, float(extent)), 1.0), 2.0)
        at.insert(0, v)
    image = _numbers(c, batch, len(extents) + 1)
    found = _read(c, _axes_last(c, x), image, at, extents, how)
    rank = len(extents) + 2
    return c.op("permute_dims", found, axes=(0, rank - 1, *range(1, rank - 1)))


def _crop_and_resize(c: RelayCall) -> Expr:
    """Boxes of images, their corners as parts of an image's, brought to one size."""
    boxes, layout, method = c.tensor(1), c.text("layout"), c.text("method")
    height, width = c.integers("crop_size")
    outside = c.real("extrapolation_value")
    kind = c.dtype_or("out_dtype", c.dtype_of(c.tensor(0)))
    x = transform(c, c.tensor(0), layout, data_layout(2))
    _, _, *extents = c.extents(x, "an image to be cropped")
    count = c.extents(boxes, "boxes")[0]
    if min(height, width) < 2:
        raise c.gap(f"crop_size=({height}, {width}), of one pixel")
    at: list[Expr] = []
    for axis, (size, extent) in enumerate(zip((height, width), extents, strict=True)):
        first, last = (_coordinate(c, boxes, axis + k) for k in (0, 2))
        step = c.op("divide", c.op("multiply", c.op("subtract", last, first), float(extent - 1)),
                    float(size - 1))  # fmt: skip
        shift = c.op("multiply", first, float(extent - 1))
        numbers = Constant(np.arange(size, dtype=c.dtype_of(boxes).numpy).reshape(1, size))
        along = c.op("add", c.op("multiply", numbers, step), shift)
        shape = (count, size, 1) if axis == 0 else (count, 1, size)
        at.append(c.op("broadcast_to", c.op("reshape", along, shape), (count, height, width)))
    image = c.op("reshape", c.tensor(2), (count, 1, 1))
    if method in ("nearest_neighbor", "nearest"):
        how, places = _Reading("nearest", "border"), [half_away(c, v) for v in at]
    elif method == "bilinear":
        how, places = _Reading("bilinear", "border"), at
    else:
        raise c.gap(f"method={method!r}")
    found = c.cast(_read(c, _axes_last(c, x), image, places, extents, how), kind)
    for v, extent in zip(at, extents, strict=True):
        beyond = c.op("logical_or", c.op("less", v, 0.0), c.op("greater", v, float(extent - 1)))
        beyond = c.op("reshape", beyond, (count, height, width, 1))
        found = c.op("where", beyond, c.number(outside, found), found)
    return transform(c, found, "NHWC", layout)


def _coordinate(c: RelayCall, rows: Expr, place: int) -> Expr:
    """One column of a matrix, as a column."""
    return c.op("strided_slice", rows, axes=(1,), begin=(place,), end=(place + 1,))


def _roi_align(c: RelayCall) -> Expr:
    """Means (or maxima) of samples in the parts of regions."""
    rois, layout, mode = c.tensor(1), c.text("layout"), c.text("mode")
    height, width = c.integers("pooled_size")
    scale, samples = c.real("spatial_scale"), c.integer("sample_ratio")
    if samples <= 0:
        raise c.gap(f"sample_ratio={samples}: as many samples as each region is large")
    if mode not in ("avg", "max"):
        raise c.gap(f"mode={mode!r}")
    x = transform(c, c.tensor(0), layout, data_layout(2))
    _, channels, *extents = c.extents(x, "a map with regions")
    count = c.extents(rois, "regions")[0]
    at: list[Expr] = []
    whole = count, height * samples, width * samples
    outside: Expr | None = None
    for axis, size in enumerate((height, width)):
        first, last = (
            c.op("multiply", _coordinate(c, rois, place - axis), scale) for place in (2, 4)
        )
        length = c.op("maximum", c.op("subtract", last, first), 1.0)
        where = (np.arange(size * samples) + 0.5) / (size * samples)
        parts = Constant(where.astype(c.dtype_of(rois).numpy).reshape(1, -1))
        along = c.op("add", c.op("multiply", length, parts), first)
        beyond = c.op(
            "logical_or", c.op("less", along, -1.0), c.op("greater", along, float(extents[axis]))
        )
        shape = (count, size * samples, 1) if axis == 0 else (count, 1, size * samples)
        beyond = c.op("broadcast_to", c.op("reshape", beyond, shape), whole)
        outside = beyond if outside is None else c.op("logical_or", outside, beyond)
        at.append(c.op("broadcast_to", c.op("reshape", along, shape), whole))
    assert outside is not None
    image = c.op("reshape", c.cast(_coordinate(c, rois, 0), INT64), (count, 1, 1))
    read = _read(c, _axes_last(c, x), image, at, extents, _Reading("bilinear", "border"))
    read = c.op("where", c.op("reshape", outside, (*whole, 1)), c.number(0, read), read)
    split = c.op("reshape", read, (count, height, samples, width, samples, channels))
    pooled = c.op("mean" if mode == "avg" else "max", split, axis=(2, 4))
    return transform(c, pooled, "NHWC", layout)


def _roi_pool(c: RelayCall) -> Expr:
    """Maxima of the pixels in the parts of regions; 0 where a part has none."""
    rois, layout = c.tensor(1), c.text("layout")
    sizes, scale = c.integers("pooled_size"), c.real("spatial_scale")
    x = transform(c, c.tensor(0), layout, data_layout(2))
    _, channels, *extents = c.extents(x, "a map with regions")
    count = c.extents(rois, "regions")[0]
    image = c.op("reshape", c.cast(_coordinate(c, rois, 0), INT64), (count,))
    found = c.op("take", x, image, axis=0)
    lowest = c.number(-np.inf, x)
    for axis, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
        within = _parts(c, [_coordinate(c, rois, p - axis) for p in (2, 4)], scale, size, extent)
        if axis == 0:  # (count, channels, height, width): a row for each part
            mask = c.op("reshape", within, (count, 1, size, extent, 1))
            wide = c.op("reshape", found, (count, channels, 1, extent, extents[1]))
            over = 3
        else:
            mask = c.op("reshape", within, (count, 1, 1, size, extent))
            wide = c.op("reshape", found, (count, channels, sizes[0], 1, extent))
            over = 4
        held = c.op("where", mask, wide, lowest)
        found = c.op("max", held, axis=(over,))
    nothing = c.op("equal", found, lowest)
    found = c.op("where", nothing, c.number(0, x), found)
    return transform(c, found, data_layout(2), layout)


def _parts(c: RelayCall, ends: list[Expr], scale: float, size: int, extent: int) -> Expr:
    """Which pixels of an axis are in which part of each region, (regions, parts, extent)."""
    first, last = (half_away(c, c.op("multiply", v, scale)) for v in ends)
    length = c.op("maximum", c.op("add", c.op("subtract", last, first), 1.0), 1.0)
    share = c.op("divide", length, float(size))
    numbers = np.arange(size + 1, dtype=c.dtype_of(ends[0]).numpy)
    begin = c.op("floor", c.op("multiply", share, Constant(numbers[None, :-1])))
    end = c.op("ceil", c.op("multiply", share, Constant(numbers[None, 1:])))
    count = c.extents(ends[0], "regions")[0]
    begin, end = (c.op("reshape", c.op("add", v, first), (count, size, 1)) for v in (begin, end))
    pixels = Constant(np.arange(extent, dtype=numbers.dtype))
    after = c.op("greater_equal", pixels, begin)
    return c.op("logical_and", after, c.op("less", pixels, end))


def _deformable_conv2d(c: RelayCall) -> Expr:
    """A convolution whose taps each pixel moves: what they read, times the weights."""
    c.only("data_layout", "NCHW")
    c.only("kernel_layout", "OIHW")
    c.only("out_layout", "", "NCHW")
    c.drop("channels", "kernel_size")  # the weight has them
    x, moved, weight = (c.tensor(i) for i in range(3))
    kind = c.dtype_or("out_dtype", c.dtype_of(x))
    top, left, bottom, right = paddings(c.integers("padding"), 2)
    strides, dilation = steps(c, "strides", 2), steps(c, "dilation", 2)
    groups, shared = c.integer("groups"), c.integer("deformable_groups")
    batch, channels, *extents = c.extents(x, "a deformed window")
    out, inner, *kernel = c.extents(weight, "a kernel")
    padded = (extents[0] + top + bottom, extents[1] + left + right)
    size = [
        (p - d * (k - 1) - 1) // s + 1
        for p, d, k, s in zip(padded, dilation, kernel, strides, strict=True)
    ]
    taps = kernel[0] * kernel[1]
    if inner * groups != channels or channels % shared or out % groups:
        raise UnityError(f"{channels} channels don't fit a weight of {inner} in {groups} groups")
    moved = c.op("reshape", moved, (batch, shared, taps, 2, *size))
    at: list[Expr] = []
    outside: Expr | None = None
    for axis, before in enumerate((top, left)):
        tap = np.indices(kernel)[axis].reshape(-1) * dilation[axis]
        start = np.indices(size)[axis] * strides[axis] - before
        fixed = (tap[:, None, None] + start).astype(c.dtype_of(moved).numpy)
        shift = c.op("take", moved, Constant(np.array(axis, np.int64)), axis=3)
        at.append(c.op("add", shift, Constant(fixed)))
        for beyond in (
            c.op("less", at[-1], 0.0),
            c.op("greater_equal", at[-1], float(extents[axis])),
        ):
            outside = beyond if outside is None else c.op("logical_or", outside, beyond)
    assert outside is not None
    part = channels // shared
    pieces = c.op("reshape", x, (batch, shared, part, *extents))
    split = c.op("permute_dims", pieces, axes=(0, 1, 3, 4, 2))
    flat = c.op("reshape", split, (batch * shared, *extents, part))
    image = Constant(np.arange(batch * shared).reshape(batch, shared, 1, 1, 1))
    read = _read(c, flat, image, at, extents, _Reading("bilinear", "border"))
    beyond = c.op("reshape", outside, (*c.shape_of(outside), 1))
    read = c.op("where", beyond, c.number(0, read), read)
    rows = c.op("permute_dims", read, axes=(0, 1, 5, 2, 3, 4))
    rows = c.op("reshape", rows, (batch, groups, inner * taps, size[0] * size[1]))
    matrix = c.op("reshape", weight, (1, groups, out // groups, inner * taps))
    found = c.op("matmul", c.cast(matrix, kind), c.cast(rows, kind))
    return c.op("reshape", found, (batch, out, *size))


CONVERTERS: dict[str, Converter] = {
    "image.grid_sample": _grid_sample,
    "image.crop_and_resize": _crop_and_resize,
    "vision.roi_align": _roi_align,
    "vision.roi_pool": _roi_pool,
    "nn.deformable_conv2d": _deformable_conv2d,
}
