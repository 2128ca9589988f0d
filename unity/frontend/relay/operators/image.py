"""Resizing, as TOPI does it: positions in float32, a little added before they are rounded down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.resize_positions import CROPPED, Method
from unity.frontend.resizing import Wanted, resized
from unity.ir.dtype import FLOAT32, DType
from unity.ir.graph import Constant, Expr

from .convolutions import data_layout
from .elementwise import clipped, limits
from .layouts import transform

_COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
_OF_NEAREST = "tf_half_pixel_for_nn"
"""Coordinates that nearest elements alone are read at; others would lie half a pixel aside."""
_NEAREST = ("nearest_neighbor", "nearest")
_LINEAR = ("linear", "bilinear", "trilinear")
_CUBIC = ("cubic", "bicubic")
_EPSILON = np.float32(1e-5)
_Reals: TypeAlias = npt.NDArray[np.float32]


def _resize(rank: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        return resize(c, c.integers("size"), rank)

    return convert


@dataclass(frozen=True, slots=True)
class Resize:
    """How an axis is read at the places of a new size.

    Attributes:
        method: "nearest_neighbor", "linear", "cubic" and what else they are called.
        coordinates: Where those places are.
        rounding: Which element is the nearest; empty it is what goes with the coordinates.
        alpha: The coefficient of cubic splines.
        excludes: Whether cubic splines are of elements alone, none of them beyond an edge.
        region: What part of each axis is resized, its begins and then its ends, in parts of it.
        outside: What is beyond the edges, where a part reaches there.
        divides: Whether asymmetric coordinates of a multiple are divided as integers.
    """

    method: str
    coordinates: str
    rounding: str = ""
    alpha: float = -0.5
    excludes: bool = False
    region: tuple[float, ...] = ()
    outside: float = 0.0
    divides: bool = False


def resize(c: RelayCall, sizes: Sequence[int], rank: int) -> Expr:
    """A resize of the first operand as a call's attributes say."""
    layout, kind = c.text("layout"), c.dtype_of(c.tensor(0))
    how = Resize(
        c.text("method"),
        c.text("coordinate_transformation_mode"),
        c.text("rounding_method"),
        c.real("cubic_alpha"),
        c.integer("cubic_exclude") != 0,
        # Only two axes, whose multiples TOPI divides as integers, whatever the rounding is.
        divides=rank == 2,
    )
    if how.coordinates == CROPPED:
        how = replace(how, region=_region(c, rank), outside=c.real("extrapolation_value"))
    else:
        c.drop("roi", "extrapolation_value")
    out = c.dtype_or("out_dtype", kind)
    x = transform(c, c.tensor(0), layout, data_layout(rank))
    found = apply(c, x, sizes, how, out)
    return transform(c, found, data_layout(rank), layout)


def _region(c: RelayCall, rank: int) -> tuple[float, ...]:
    if rank == 3:  # TVM takes their numbers in another order than it says
        raise c.gap(f"coordinate_transformation_mode={CROPPED!r} of volumes")
    found = c.attribute("roi")
    items = found if isinstance(found, tuple) else ()
    known = tuple(float(v) for v in items if isinstance(v, int | float))
    if len(known) != 2 * rank:
        raise UnityError(f"the attribute 'roi' must be {2 * rank} numbers, got {found!r}")
    return known


def apply(
    c: RelayCall, x: Expr, sizes: Sequence[int], how: Resize, out: DType | None = None
) -> Expr:
    """The axes behind the second one resized; all but the nearest computed in reals."""
    nearest = how.method in _NEAREST
    allowed = (*_COORDINATES, CROPPED, *((_OF_NEAREST,) if nearest else ()))
    kind = c.dtype_of(x)
    out = out or kind
    if how.coordinates not in allowed:
        raise c.gap(f"coordinate_transformation_mode={how.coordinates!r}")
    if len(sizes) != len(c.shape_of(x)) - 2:
        raise UnityError(f"sizes {tuple(sizes)} don't fit the shape {c.shape_of(x)}")
    if not nearest and how.method not in (*_LINEAR, *_CUBIC):
        raise c.gap(f"method={how.method!r}")
    if nearest:
        for axis, size in enumerate(sizes, 2):
            x = _nearest(c, x, axis, size, how)
        return c.cast(x, out)
    if not kind.is_float or kind.bits < 32:
        x = c.cast(x, FLOAT32)
    mode = "linear" if how.method in _LINEAR else "cubic"
    method = Method(mode, how.coordinates, "floor", how.alpha, how.excludes,
                    extrapolation=how.outside)  # fmt: skip
    region = Constant(np.array(how.region, np.float32)) if how.region else None
    found = resized(
        c, x, method, tuple(range(2, len(sizes) + 2)), Wanted(tuple(sizes), region=region)
    )
    if (
        not out.is_float and out.bits < 32
    ):  # splines go beyond what an integer holds, and sums are cut off
        found = clipped(c, found, *limits(out))
    return c.cast(found, out)


def _nearest(c: RelayCall, x: Expr, axis: int, size: int, how: Resize) -> Expr:
    extent = c.shape_of(x)[axis]
    if not isinstance(extent, int):
        raise c.symbolic_gap(f"an extent {extent} resized to the nearest", extent)
    if how.divides and how.coordinates == "asymmetric" and size % extent == 0:
        at = np.floor_divide(np.arange(size), size // extent).astype(np.float32)
        beyond = np.zeros(size, bool)
    else:
        place = axis - 2
        count = len(how.region) // 2
        part = (how.region[place], how.region[place + count]) if how.region else (0.0, 1.0)
        exact = _positions(extent, size, how.coordinates, part)
        beyond = (exact < 0) | (exact > extent - 1) if how.region else np.zeros(size, bool)
        at = np.clip(_rounded(c, exact, how), 0, extent - 1)
    if np.array_equal(at, np.arange(extent)):
        found = x
    elif size % extent == 0 and np.array_equal(at, np.repeat(np.arange(extent), size // extent)):
        found = c.op("repeat", x, repeats=size // extent, axis=axis)
    else:
        found = c.op("take", x, Constant(at.astype(np.int64)), axis=axis)
    if not beyond.any():
        return found
    line = Constant(beyond.reshape(-1, *(1,) * (len(c.shape_of(x)) - axis - 1)))
    return c.op("where", line, c.number(how.outside, x), found)


def _positions(extent: int, size: int, coordinates: str, part: tuple[float, float]) -> _Reals:
    """Where the elements of an axis of a new size lie in the old one, or in a part of it."""
    x = np.arange(size, dtype=np.float32)
    scale = np.float32(extent) / np.float32(size)
    match coordinates:
        case "tf_crop_and_resize":
            first, end = (np.float32(v) for v in part)
            last = np.float32(extent - 1)
            if size == 1:
                return np.asarray(np.float32(0.5) * (first + end) * last).reshape(1)
            return np.asarray(first * last + x * (end - first) * last / np.float32(size - 1))
        case "tf_half_pixel_for_nn":
            return np.asarray((x + np.float32(0.5)) * scale)
        case "align_corners":
            step = np.float32(extent - 1) / np.float32(max(size - 1, 1))
            return np.asarray(step * x)
        case "asymmetric":
            return np.asarray(scale * x)
        case "pytorch_half_pixel" if size == 1:
            return np.zeros(1, np.float32)
        case _:
            half = np.float32(0.5)
            return np.asarray((x + half) * scale - half)


def _rounded(c: RelayCall, at: _Reals, how: Resize) -> _Reals:
    half = np.float32(0.5)
    match how.rounding or ("round" if how.coordinates == "align_corners" else "floor"):
        case "round":
            return np.asarray(np.trunc(at + np.copysign(half, at)))
        case "round_prefer_floor":
            return np.asarray(np.ceil(at - half))
        case "round_prefer_ceil":
            return np.asarray(np.floor(at + half))
        case "floor":
            return np.asarray(np.floor(at + _EPSILON))
        case "ceil":
            return np.asarray(np.ceil(at - _EPSILON))
        case _:
            raise c.gap(f"rounding_method={how.rounding!r}")


def _upsampling(axes: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        return upsampled(c, [c.real(f"scale_{a}") for a in axes])

    return convert


def upsampled(c: RelayCall, scales: Sequence[float]) -> Expr:
    """The first operand grown by scales; corners stay in place if they are aligned, else edges."""
    rank, layout, method = len(scales), c.text("layout"), c.text("method")
    if rank == 2:
        coordinates = "align_corners" if c.flag("align_corners") else "asymmetric"
    else:
        coordinates = c.text("coordinate_transformation_mode")
    x = transform(c, c.tensor(0), layout, data_layout(rank))
    extents = c.extents(x, "upsampling")[2:]
    sizes = [int(np.floor(e * s + 0.5)) for e, s in zip(extents, scales, strict=True)]
    found = apply(c, x, sizes, Resize(method, coordinates, divides=rank == 2))
    return transform(c, found, data_layout(rank), layout)


def _affine_grid(c: RelayCall) -> Expr:
    """Where the pixels of a target lie in a source that is turned: (batch, 2, height, width)."""
    height, width = c.integers("target_shape")
    kind = c.dtype_of(c.tensor(0)).numpy
    ys, xs = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    points = np.stack([xs, ys, np.ones_like(xs)]).reshape(3, height * width).astype(kind)
    batch = c.shape_of(c.tensor(0))[0]
    found = c.op("matmul", c.tensor(0), Constant(points))
    return c.op("reshape", found, (batch, 2, height, width))


CONVERTERS: dict[str, Converter] = {
    "image.resize1d": _resize(1),
    "image.resize2d": _resize(2),
    "image.resize3d": _resize(3),
    "nn.upsampling": _upsampling("hw"),
    "nn.upsampling3d": _upsampling("dhw"),
    "image.affine_grid": _affine_grid,
}
