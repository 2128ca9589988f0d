"""Resizes over all of their attributes, against plain numpy loops of what TOPI computes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, Known, check_interpreted, module_of
from unity.errors import UnsupportedError

Tensor = npt.NDArray[Any]
_DRAW = np.random.default_rng(14)
X = _DRAW.uniform(-1, 1, (1, 2, 4, 6)).astype(np.float32)
LINE, BOX = X[:, :, 1], _DRAW.uniform(-1, 1, (1, 2, 3, 4, 2)).astype(np.float32)
ROUNDINGS = ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def _place(i: int, old: int, new: int, coordinates: str, part: tuple[float, float]) -> float:
    match coordinates:
        case "align_corners":
            return i * (old - 1) / (new - 1)
        case "asymmetric":
            return i * old / new
        case "tf_half_pixel_for_nn":
            return (i + 0.5) * old / new
        case "pytorch_half_pixel" if new == 1:
            return 0.0
        case "tf_crop_and_resize" if new == 1:
            return 0.5 * sum(part) * (old - 1)
        case "tf_crop_and_resize":
            return (part[0] + i * (part[1] - part[0]) / (new - 1)) * (old - 1)
        case _:
            return (i + 0.5) * old / new - 0.5


def _rounded(at: float, rounding: str) -> int:
    match rounding:
        case "round":
            return int(np.trunc(at + np.copysign(0.5, at)))
        case "round_prefer_floor":
            return int(np.ceil(at - 0.5))
        case "round_prefer_ceil":
            return int(np.floor(at + 0.5))
        case "floor":
            return int(np.floor(at + 1e-5))
        case _:
            return int(np.ceil(at - 1e-5))


def _weights(at: float, old: int, method: str, alpha: float, excludes: bool) -> dict[int, float]:
    """Which elements a place reads, and how much of each."""
    base = int(np.floor(at))
    t = at - base
    if method == "linear":
        taps = {base: 1 - t, base + 1: t}
    else:
        taps = {
            base - 1: alpha * (t**3 - 2 * t**2 + t),
            base: (alpha + 2) * t**3 - (alpha + 3) * t**2 + 1,
            base + 1: -(alpha + 2) * t**3 + (2 * alpha + 3) * t**2 - alpha * t,
            base + 2: alpha * (t**2 - t**3),
        }
    if excludes:
        taps = {i: w for i, w in taps.items() if 0 <= i < old}
        taps = {i: w / sum(taps.values()) for i, w in taps.items()}
    return taps


def _resized(
    x: Tensor,
    sizes: Sequence[int],
    method: str = "linear",
    coordinates: str = "half_pixel",
    rounding: str = "round",
    *,
    alpha: float = -0.5,
    excludes: bool = False,
    roi: Sequence[float] = (),
    outside: float = 0.0,
) -> Tensor:
    found, rank = x.astype(np.float64), len(sizes)
    beyond: list[tuple[int, list[bool]]] = []
    for axis, new in enumerate(sizes, 2):
        old = x.shape[axis]
        part = (roi[axis - 2], roi[axis - 2 + rank]) if roi else (0.0, 0.0)
        places = [_place(i, old, new, coordinates, part) for i in range(new)]
        matrix = np.zeros((new, old))
        for i, at in enumerate(places):
            if method == "nearest_neighbor":
                matrix[i, np.clip(_rounded(at, rounding), 0, old - 1)] = 1
                continue
            for tap, weight in _weights(at, old, method, alpha, excludes).items():
                matrix[i, np.clip(tap, 0, old - 1)] += weight
        found = np.moveaxis(np.moveaxis(found, axis, -1) @ matrix.T, -1, axis)
        if roi:
            beyond.append((axis, [at < 0 or at > old - 1 for at in places]))
    for axis, flags in beyond:
        np.moveaxis(found, axis, 0)[flags] = outside
    return found.astype(x.dtype)


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest_elements(coordinates: str) -> None:
    cases: list[Case] = []
    given: dict[str, Any] = {
        "method": "nearest_neighbor",
        "coordinate_transformation_mode": coordinates,
    }
    for rounding in ROUNDINGS:
        for name, x, sizes in (
            ("1d", LINE, (7,)),
            ("2d", X, (3, 9)),
            ("3d", BOX, (2, 7, 3)),
        ):
            wanted = _resized(x, sizes, "nearest_neighbor", coordinates, rounding)
            cases.append(Case(f"image.resize{name}", [x], wanted, size=sizes,
                              rounding_method=rounding, **given))  # fmt: skip
    usual = "round" if coordinates == "align_corners" else "floor"
    cases.append(Case("image.resize1d", [LINE],
                      _resized(LINE, (7,), "nearest_neighbor", coordinates, usual), size=(7,),
                      rounding_method="", **given))  # fmt: skip
    check_interpreted(cases)


def test_multiples_of_two_axes_are_divided_as_integers() -> None:
    """Of TOPI's ``use_int_div``; one axis and three are rounded as they are asked to be."""
    given: dict[str, Any] = {
        "method": "nearest_neighbor",
        "coordinate_transformation_mode": "asymmetric",
        "rounding_method": "ceil",
    }
    check_interpreted(
        [
            Case("image.resize2d", [X], X.repeat(2, 2).repeat(3, 3), size=(8, 18), **given),
            Case("image.resize1d", [LINE], LINE[..., [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]],
                 size=(12,), **given),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_weighted_elements(coordinates: str) -> None:
    cases: list[Case] = []
    given: dict[str, Any] = {"coordinate_transformation_mode": coordinates}
    for name, x, sizes in (("1d", LINE, (9,)), ("2d", X, (7, 3)), ("3d", BOX, (5, 4, 3))):
        wanted = _resized(x, sizes, "linear", coordinates)
        cases.append(Case(f"image.resize{name}", [x], wanted, size=sizes, **given))
        for alpha, excludes in product((-0.5, -0.75), (False, True)):
            wanted = _resized(x, sizes, "cubic", coordinates, alpha=alpha, excludes=excludes)
            cases.append(Case(f"image.resize{name}", [x], wanted, 1e-4, size=sizes,
                              method="cubic", cubic_alpha=alpha, cubic_exclude=int(excludes),
                              **given))  # fmt: skip
    check_interpreted(cases)


def test_half_pixels_for_the_nearest() -> None:
    how: dict[str, Any] = {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}
    cases = [
        Case("image.resize2d", [X],
             _resized(X, sizes, "nearest_neighbor", "tf_half_pixel_for_nn", rounding), size=sizes,
             method="nearest_neighbor", rounding_method=rounding, **how)
        for sizes in ((4, 9), (8, 3))
        for rounding in ("floor", "round")
    ]  # fmt: skip
    check_interpreted(cases)
    with pytest.raises(UnsupportedError, match="tf_half_pixel_for_nn"):
        module_of([Case("image.resize2d", [X], X, size=(8, 8), **how)])


def test_parts() -> None:
    """The part that is resized reaches beyond the edges, where one value stands."""
    how: dict[str, Any] = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    cases: list[Case] = []
    for method, rounding in (("nearest_neighbor", "round"), ("linear", "round"),
                             ("cubic", "round"), ("nearest_neighbor", "floor")):  # fmt: skip
        for name, x, sizes, roi in (
            ("1d", LINE, (7,), (-0.17, 0.73)),
            ("2d", X, (5, 4), (0.93, 0.12, 0.21, 1.17)),
            ("2d", X, (1, 3), (0.1, 0.0, 0.5, 1.0)),
        ):
            wanted = _resized(x, sizes, method, "tf_crop_and_resize", rounding, roi=roi, outside=9)
            cases.append(Case(f"image.resize{name}", [x], wanted, 1e-4, size=sizes, roi=roi,
                              method=method, rounding_method=rounding, extrapolation_value=9.0,
                              **how))  # fmt: skip
    check_interpreted(cases)
    with pytest.raises(UnsupportedError, match="of volumes"):
        module_of([Case("image.resize3d", [BOX], BOX, size=(2, 2, 2), roi=(0.0,) * 6, **how)])


def test_layouts_and_dtypes() -> None:
    """Doubled, integers have weights that are exact, and so is what is cut off of sums."""
    bytes_ = _DRAW.integers(0, 256, (1, 2, 4, 6)).astype(np.uint8)
    reals = _resized(bytes_.astype(np.float32), (8, 12))
    splines = _resized(bytes_.astype(np.float32), (8, 12), "cubic")
    assert splines.max() > 255
    half = X.astype(np.float16)
    check_interpreted(
        [
            Case("image.resize1d", [LINE.transpose(0, 2, 1)],
                 _resized(LINE, (4,)).transpose(0, 2, 1), size=(4,), layout="NWC"),
            Case("image.resize3d", [BOX.transpose(0, 2, 3, 4, 1)],
                 _resized(BOX, (2, 2, 2)).transpose(0, 2, 3, 4, 1), size=(2, 2, 2),
                 layout="NDHWC"),
            Case("image.resize2d", [X.reshape(1, 1, 2, 4, 6).transpose(0, 1, 3, 4, 2)],
                 _resized(X, (7, 9)).reshape(1, 1, 2, 7, 9).transpose(0, 1, 3, 4, 2),
                 size=(7, 9), layout="NCHW2c"),
            Case("image.resize2d", [bytes_], reals.astype(np.uint8), size=(8, 12)),
            Case("image.resize2d", [bytes_], np.clip(splines, 0, 255).astype(np.uint8),
                 size=(8, 12), method="cubic"),
            Case("image.resize2d", [bytes_], reals, 1e-4, size=(8, 12), out_dtype="float32"),
            Case("image.resize2d", [X * 100], _resized(X * 100, (7, 9)).astype(np.int8),
                 size=(7, 9), out_dtype="int8"),
            Case("image.resize2d", [half], _resized(half.astype(np.float32), (7, 9)), 1e-3,
                 size=(7, 9), out_dtype="float32"),
            Case("image.resize1d", [LINE], _resized(LINE, (4,)).astype(np.float16), 1e-3,
                 size=(4,), out_dtype="float16"),
            Case("image.resize3d", [BOX], _resized(BOX, (2, 2, 2)).astype(np.float16), 1e-3,
                 size=(2, 2, 2), out_dtype="float16"),
        ]
    )  # fmt: skip


def test_sizes_that_are_operands() -> None:
    size, roi = Known(np.array([7, 9], np.int64)), Known(np.zeros(4, np.float32))
    nhwc = X.transpose(0, 2, 3, 1)
    check_interpreted(
        [
            Case("dyn.image.resize2d", [nhwc, size, roi],
                 _resized(X, (7, 9), "cubic", alpha=-0.75, excludes=True).transpose(0, 2, 3, 1),
                 1e-4, layout="NHWC", method="cubic", cubic_alpha=-0.75, cubic_exclude=1),
            Case("dyn.image.resize2d", [X, size, roi], _resized(X, (7, 9)).astype(np.float16),
                 1e-3, out_dtype="float16"),
        ]
    )  # fmt: skip


def test_upsampling_of_volumes() -> None:
    last = BOX.transpose(0, 2, 3, 4, 1)
    scales: dict[str, Any] = {"scale_d": 2.0, "scale_h": 1.0, "scale_w": 3.0}
    operands = [Known(np.array(v, np.float32)) for v in (2, 1, 3)]
    cases: list[Case] = []
    for coordinates in ("half_pixel", "align_corners", "asymmetric"):
        rounding = "round" if coordinates == "align_corners" else "floor"
        for method in ("nearest_neighbor", "trilinear"):
            kind = "linear" if method == "trilinear" else method
            wanted = _resized(BOX, (6, 4, 6), kind, coordinates, rounding)
            how: dict[str, Any] = {
                "method": method, "coordinate_transformation_mode": coordinates, "layout": "NDHWC",
            }  # fmt: skip
            turned = wanted.transpose(0, 2, 3, 4, 1)
            cases += [
                Case("nn.upsampling3d", [last], turned, **how, **scales),
                Case("dyn.nn.upsampling3d", [last, *operands], turned, **how),
            ]
    two = [Known(np.array(2, np.float32))] * 2
    cases += [
        Case("dyn.nn.upsampling", [X, *two],
             _resized(X, (8, 12), "linear", "align_corners" if aligned else "asymmetric"),
             method="bilinear", align_corners=aligned)
        for aligned in (False, True)
    ]  # fmt: skip
    check_interpreted(cases)
