"""Resizing, as TOPI does it: positions in float32, a little added before they are rounded down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.resize_positions import Method
from unity.frontend.resizing import Wanted, resized
from unity.ir.graph import Constant, Expr

from .convolutions import data_layout
from .layouts import transform

_COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
_NEAREST = ("nearest_neighbor", "nearest")
_LINEAR = ("linear", "bilinear", "trilinear")
_CUBIC = ("cubic", "bicubic")
_EPSILON = np.float32(1e-5)
_Reals: TypeAlias = npt.NDArray[np.float32]


def _resize(rank: int) -> Converter:
    def convert(c: RelayCall) -> Expr:
        return resize(c, c.integers("size"), rank)

    return convert


def resize(c: RelayCall, sizes: Sequence[int], rank: int) -> Expr:
    """A resize of the first operand as a call's attributes say."""
    layout, method = c.text("layout"), c.text("method")
    coordinates, rounding = c.text("coordinate_transformation_mode"), c.text("rounding_method")
    kind = c.dtype_of(c.tensor(0))
    out = c.dtype_or("out_dtype", kind)
    alpha, exclude = c.real("cubic_alpha"), c.integer("cubic_exclude") != 0
    c.drop("roi", "extrapolation_value")  # of a mode that is refused
    x = transform(c, c.cast(c.tensor(0), out), layout, data_layout(rank))
    if method in _CUBIC and exclude:
        raise c.gap("cubic_exclude")
    found = apply(c, x, sizes, method, coordinates, rounding, alpha)
    return transform(c, found, data_layout(rank), layout)


def apply(
    c: RelayCall,
    x: Expr,
    sizes: Sequence[int],
    method: str,
    coordinates: str,
    rounding: str,
    alpha: float = -0.5,
) -> Expr:
    """The axes behind the second one resized."""
    if coordinates not in _COORDINATES:
        raise c.gap(f"coordinate_transformation_mode={coordinates!r}")
    if len(sizes) != len(c.shape_of(x)) - 2:
        raise UnityError(f"sizes {tuple(sizes)} don't fit the shape {c.shape_of(x)}")
    if method in _NEAREST:
        for axis, size in enumerate(sizes, 2):
            x = _nearest(c, x, axis, size, coordinates, rounding)
        return x
    if method not in (*_LINEAR, *_CUBIC):
        raise c.gap(f"method={method!r}")
    mode = "linear" if method in _LINEAR else "cubic"
    how = Method(mode, coordinates, "floor", alpha, exclude_outside=False)
    return resized(c, x, how, tuple(range(2, len(sizes) + 2)), Wanted(tuple(sizes)))


def _nearest(c: RelayCall, x: Expr, axis: int, size: int, coordinates: str, rounding: str) -> Expr:
    extent = c.shape_of(x)[axis]
    if not isinstance(extent, int):
        raise c.symbolic_gap(f"an extent {extent} resized to the nearest", extent)
    if extent == size:
        return x
    at = _rounded(c, _positions(extent, size, coordinates), rounding, coordinates)
    at = np.clip(at, 0, extent - 1)
    if size % extent == 0 and np.array_equal(at, np.repeat(np.arange(extent), size // extent)):
        return c.op("repeat", x, repeats=size // extent, axis=axis)
    return c.op("take", x, Constant(at.astype(np.int64)), axis=axis)


def _positions(extent: int, size: int, coordinates: str) -> _Reals:
    """Where the elements of an axis of a new size lie in the old one."""
    x = np.arange(size, dtype=np.float32)
    scale = np.float32(extent) / np.float32(size)
    match coordinates:
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


def _rounded(c: RelayCall, at: _Reals, rounding: str, coordinates: str) -> _Reals:
    half = np.float32(0.5)
    match rounding or ("round" if coordinates == "align_corners" else "floor"):
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
            raise c.gap(f"rounding_method={rounding!r}")


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
    return transform(c, apply(c, x, sizes, method, coordinates, ""), data_layout(rank), layout)


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
