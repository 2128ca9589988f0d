"""Relay's resizes, upsampling and anchors, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.frontend.relay.calls import Case, Known, check_interpreted

Tensor = npt.NDArray[Any]
X = np.random.default_rng(4).uniform(-1, 1, (1, 2, 4, 6)).astype(np.float32)


def _positions(old: int, new: int, mode: str) -> Tensor:
    at = np.arange(new)
    match mode:
        case "align_corners":
            return at * (old - 1) / max(new - 1, 1)
        case "asymmetric":
            return at * old / new
        case _:
            return (at + 0.5) * old / new - 0.5


def _taps(at: Tensor, method: str) -> list[tuple[Tensor, Tensor]]:
    base = np.floor(at)
    t = at - base
    if method == "linear":
        return [(base, 1 - t), (base + 1, t)]
    a = -0.5
    weights = [
        a * (t**3 - 2 * t**2 + t),
        (a + 2) * t**3 - (a + 3) * t**2 + 1,
        -(a + 2) * t**3 + (2 * a + 3) * t**2 - a * t,
        a * (t**2 - t**3),
    ]
    return [(base + i - 1, w) for i, w in enumerate(weights)]


def _resized(x: Tensor, sizes: tuple[int, ...], mode: str, method: str = "linear") -> Tensor:
    found = x.astype(np.float64)
    for axis, size in enumerate(sizes, 2):
        taps = _taps(_positions(x.shape[axis], size, mode), method)
        trailing = (-1, *(1,) * (x.ndim - axis - 1))
        last = x.shape[axis] - 1
        found = np.sum(
            [
                np.take(found, np.clip(i, 0, last).astype(int), axis) * w.reshape(trailing)
                for i, w in taps
            ],
            axis=0,
        )
    return found.astype(np.float32)


def _picked(x: Tensor, rows: list[int], columns: list[int]) -> Tensor:
    return x[:, :, rows][..., columns]


def test_resizes() -> None:
    nhwc = X.transpose(0, 2, 3, 1)
    line = X[:, :, 0]
    box = np.stack([X, X + 1], 2)
    check_interpreted(
        [
            Case("image.resize2d", [X], _resized(X, (7, 3), "half_pixel"), size=(7, 3)),
            Case("image.resize2d", [X], _resized(X, (7, 9), "align_corners"), size=(7, 9),
                 coordinate_transformation_mode="align_corners"),
            Case("image.resize2d", [nhwc], _resized(X, (8, 6), "asymmetric").transpose(0, 2, 3, 1),
                 size=(8, 6), layout="NHWC", coordinate_transformation_mode="asymmetric"),
            Case("image.resize2d", [X], _resized(X, (7, 9), "half_pixel", "cubic"), size=(7, 9),
                 method="cubic"),
            Case("image.resize2d", [X], _picked(X, [0, 0, 1, 2, 2, 3], [0, 2, 4]), size=(6, 3),
                 method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
                 rounding_method="floor"),
            Case("image.resize2d", [X], _picked(X, [0, 2, 3], [0, 1, 2, 3, 4, 5]), size=(3, 6),
                 method="nearest_neighbor", coordinate_transformation_mode="align_corners",
                 rounding_method="round"),
            Case("image.resize1d", [line], _resized(line, (4,), "half_pixel"), size=(4,)),
            Case("image.resize3d", [box], _resized(box, (3, 4, 6), "half_pixel"), size=(3, 4, 6)),
        ]
    )  # fmt: skip


def test_upsampling() -> None:
    double = X.repeat(2, 2).repeat(3, 3)
    box = X[:, :, None]
    check_interpreted(
        [
            Case("nn.upsampling", [X], double, scale_h=2.0, scale_w=3.0),
            Case("nn.upsampling", [X.transpose(0, 2, 3, 1)], double.transpose(0, 2, 3, 1),
                 scale_h=2.0, scale_w=3.0, layout="NHWC"),
            Case("nn.upsampling", [X], _resized(X, (8, 12), "asymmetric"), scale_h=2.0,
                 scale_w=2.0, method="bilinear"),
            Case("nn.upsampling", [X], _resized(X, (8, 12), "align_corners"), scale_h=2.0,
                 scale_w=2.0, method="bilinear", align_corners=True),
            Case("dyn.nn.upsampling", [X, Known(np.array(2, np.float32)),
                 Known(np.array(3, np.float32))], double),
            Case("dyn.nn.upsampling3d", [box, *(Known(np.array(v, np.float32)) for v in (1, 2, 2))],
                 _resized(box, (1, 8, 12), "half_pixel"), method="trilinear"),
            Case("nn.upsampling3d", [box], _resized(box, (2, 8, 12), "half_pixel"), scale_d=2.0,
                 scale_h=2.0, scale_w=2.0, method="trilinear"),
        ]
    )  # fmt: skip


def test_grids_and_anchors() -> None:
    theta = np.array([[[1, 0, 0.5], [0, 2, -0.5]]], np.float32)
    ys, xs = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 2), indexing="ij")
    grid = np.stack([xs + 0.5, 2 * ys - 0.5])[None].astype(np.float32)
    anchors = np.array(
        [[[0.25 - w, 0.5 - h, 0.25 + w, 0.5 + h], [0.75 - w, 0.5 - h, 0.75 + w, 0.5 + h]]
         for w, h in ((0.125, 0.25), (0.25, 0.5), (0.125 * 2, 0.25 / 2))], np.float32
    ).transpose(1, 0, 2).reshape(1, -1, 4)  # fmt: skip
    check_interpreted(
        [
            Case("image.affine_grid", [theta], grid, target_shape=(3, 2)),
            Case("vision.multibox_prior", [np.zeros((1, 8, 1, 2), np.float32)], anchors,
                 sizes=(0.5, 1.0), ratios=(1.0, 4.0)),
        ]
    )  # fmt: skip
