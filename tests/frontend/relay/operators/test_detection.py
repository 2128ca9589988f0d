"""Detection: boxes, their suppression and regions of maps, against numpy's plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.frontend.relay.calls import (
    Case,
    Known,
    Operand,
    check_interpreted,
    check_results,
    module_of,
)
from tests.frontend.relay.operators.boxes import counted, located, overlap, suppressed

Tensor = npt.NDArray[Any]


def _int(value: int) -> Known:
    return Known(np.array(value, np.int32))


def _float(value: float) -> Known:
    return Known(np.array(value, np.float32))


def _boxes(seed: int, batch: int = 2, count: int = 12) -> Tensor:
    """Detections: class (-1 for none), score, corners in any order."""
    draw = np.random.default_rng(seed)
    corners = draw.uniform(0, 1, (batch, count, 4))
    classes = draw.integers(-1, 3, (batch, count, 1))
    scores = draw.permuted(np.linspace(-0.2, 1, count)[None].repeat(batch, 0), axis=1)
    return np.concatenate([classes, scores[..., None], corners], 2).astype(np.float32)


def _front(x: Tensor, flags: Tensor, filler: float = -1) -> Tensor:
    found = np.full_like(x, filler)
    for b, which in enumerate(flags):
        found[b, : which.sum()] = x[b, which]
    return found


def test_valid_boxes_are_moved_to_the_front() -> None:
    x = _boxes(1)
    check_interpreted(
        [
            Case("vision.get_valid_counts", [x, _float(0.3)], counted(x, 0.3, 1, 0)),
            Case("vision.get_valid_counts", [x], counted(x, 0.5, 2, -1), score_threshold=0.5,
                 id_index=-1, score_index=2),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("most", "threshold", "force", "top", "label"),
    [(-1, 0.1, False, -1, 0), (3, 0.1, True, -1, 0), (2, 0.2, False, 5, -1), (-1, 0.0, True, 3, 0)],
)
def test_boxes_that_overlap_better_ones_aresuppressed(
    most: int, threshold: float, force: bool, top: int, label: int
) -> None:
    counts, x, origin = counted(_boxes(2), 0.0 if most < 0 else -1, 1, 0)
    if threshold > 0:
        rows, places = suppressed(x, counts, most, threshold, force, top, label)
    else:
        rows, places = x, np.where(origin >= 0, np.arange(x.shape[1], dtype=np.int32), -1)
    kept = places >= 0
    named = np.take_along_axis(origin, np.maximum(places, 0), 1)
    operands: list[Operand] = [x, counts, origin, _int(most), _float(threshold)]
    how = {"force_suppress": force, "top_k": top, "id_index": label}
    name = "vision.non_max_suppression"
    cases = [
        Case(name, operands, rows, return_indices=False, **how),
        Case(name, operands, _front(rows, rows[..., 0] >= 0), return_indices=False,
             invalid_to_bottom=True, **how),
        Case(name, operands, [_front(named, kept), kept.sum(1, keepdims=True).astype(np.int32)],
             **how),
    ]  # fmt: skip
    check_interpreted(cases)


def test_classes_are_suppressed_on_their_own() -> None:
    draw = np.random.default_rng(3)
    boxes = draw.uniform(0, 1, (2, 6, 4)).astype(np.float32)
    scores = draw.permuted(np.linspace(0.01, 1, 36)).reshape(2, 3, 6).astype(np.float32)
    for most in (2, 0):
        found: list[tuple[int, int, int]] = []
        for b, c in np.ndindex(2, 3):
            kept: list[int] = []
            for i in np.argsort(-scores[b, c]):
                worse = any(overlap(boxes[b, i], boxes[b, k]) >= 0.2 for k in kept)
                if scores[b, c, i] > 0.3 and not worse and len(kept) < (most or 99):
                    kept.append(int(i))
            found += [(b, c, i) for i in kept]
        triples, values = np.zeros((36, 3), np.int64), np.zeros((2, 18), np.float32)
        triples[: len(found)] = found
        pairs, totals = np.zeros((2, 18, 2), np.int64), np.zeros(2, np.int64)
        for b, c, i in found:
            pairs[b, totals[b]], values[b, totals[b]] = (c, i), scores[b, c, i]
            totals[b] += 1
        operands: list[Operand] = [boxes, scores, Known(np.array(most)), _float(0.2), _float(0.3)]
        name = "vision.all_class_non_max_suppression"
        check_interpreted(
            [
                Case(name, operands, [triples, np.array([len(found)])]),
                Case(name, operands, [pairs, values, totals], output_format="tensorflow"),
            ]
        )


def test_offsets_from_anchors_become_boxes() -> None:
    draw = np.random.default_rng(4)
    probabilities = draw.uniform(0, 1, (2, 3, 5)).astype(np.float32)
    offsets = draw.normal(size=(2, 20)).astype(np.float32)
    low = draw.uniform(0, 0.5, (1, 5, 2))
    anchors = np.concatenate([low, low + 0.3], 2).astype(np.float32)
    operands = [probabilities, offsets, anchors]
    name = "vision.multibox_transform_loc"
    for clip in (True, False):
        wanted = located(probabilities, offsets, anchors, 0.5, clip)
        check_interpreted([Case(name, operands, wanted, threshold=0.5, clip=clip)])


def test_a_detector_s_boxes_compiled() -> None:
    x = _boxes(5)
    counts, rows, origin = counted(x, 0.1, 1, 0)
    kept, _ = suppressed(rows, counts, 4, 0.2, False, -1, 0)
    cases = [
        Case("vision.get_valid_counts", [x, _float(0.1)], [counts, rows, origin]),
        Case("vision.non_max_suppression", [rows, counts, origin, _int(4), _float(0.2)], kept,
             return_indices=False),
    ]  # fmt: skip
    module, inputs = module_of(cases)
    found = unity.compile(module)(*inputs)
    check_results(cases, (tuple(found[0]), found[1]))


def _pixel(x: Tensor, at: tuple[int, ...], padding: str) -> Tensor:
    """A pixel of a map (channels, extents...), or what is beyond its edges."""
    if padding == "zeros" and any(not 0 <= i < e for i, e in zip(at, x.shape[1:], strict=True)):
        return np.zeros(len(x))
    held = tuple(min(max(i, 0), e - 1) for i, e in zip(at, x.shape[1:], strict=True))
    return np.asarray(x[(slice(None), *held)], np.float64)


def _mixed(x: Tensor, at: Tensor, padding: str) -> Tensor:
    """A map between its pixels, linearly."""
    base = np.floor(at).astype(int)
    total = np.zeros(len(x))
    for corner in np.ndindex(*(2,) * len(at)):
        weight = np.prod([t if k else 1 - t for t, k in zip(at - base, corner, strict=True)])
        place = tuple(int(b) + k for b, k in zip(base, corner, strict=True))
        total = total + weight * _pixel(x, place, padding)
    return total


def _mirrored(at: float, extent: int, aligned: bool) -> float:
    low, high = (0, extent - 1) if aligned else (-0.5, extent - 0.5)
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return min(max(at, 0), extent - 1)


def _sampled(x: Tensor, grid: Tensor, method: str, padding: str, aligned: bool) -> Tensor:
    extents = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[2:]))
    for place in np.ndindex(len(x), *grid.shape[2:]):
        b, rest = place[0], place[1:]
        at = np.array(grid[(b, slice(None), *rest)], np.float64)[::-1]
        last = np.array(extents) - 1
        at = (at + 1) * last / 2 if aligned else ((at + 1) * (last + 1) - 1) / 2
        if padding == "reflection":
            at = np.array([_mirrored(v, e, aligned) for v, e in zip(at, extents, strict=True)])
        elif padding == "border":
            at = np.clip(at, 0, last)
        if method == "nearest":
            value = _pixel(x[b], tuple(int(v) for v in np.rint(at)), padding)
        else:
            value = _mixed(x[b], at, padding)
        out[(b, slice(None), *rest)] = value
    return out.astype(np.float32)


def _cubic(x: Tensor, grid: Tensor) -> Tensor:
    """Of a grid within the map, zeros beyond, corners aligned."""
    out = np.zeros((*x.shape[:2], *grid.shape[2:]))

    def weight(d: float) -> float:
        if d <= 1:
            return 1.25 * d**3 - 2.25 * d**2 + 1
        return -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3

    for b, i, j in np.ndindex(len(x), *grid.shape[2:]):
        u, v = (grid[b, ::-1, i, j] + 1) * (np.array(x.shape[2:]) - 1) / 2
        for r in range(int(np.floor(u)) - 1, int(np.floor(u)) + 3):
            for s in range(int(np.floor(v)) - 1, int(np.floor(v)) + 3):
                w = weight(abs(u - r)) * weight(abs(v - s))
                out[b, :, i, j] += w * _pixel(x[b], (r, s), "zeros")
    return out.astype(np.float32)


def test_grids_of_places() -> None:
    draw = np.random.default_rng(5)
    x = draw.normal(size=(2, 2, 4, 5)).astype(np.float32)
    grid = draw.uniform(-1.6, 1.6, (2, 2, 2, 2)).astype(np.float32)
    volume = draw.normal(size=(1, 2, 3, 4, 2)).astype(np.float32)
    places = draw.uniform(-1.2, 1.2, (1, 3, 2, 1, 2)).astype(np.float32)
    name = "image.grid_sample"
    cases = [
        Case(name, [x, grid], _sampled(x, grid, method, padding, aligned), 1e-4, method=method,
             padding_mode=padding, align_corners=aligned)
        for method in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
        for aligned in (True, False)
    ]  # fmt: skip
    cases += [
        Case(name, [volume, places], _sampled(volume, places, "bilinear", "zeros", True), 1e-4,
             layout="NCDHW"),
        Case(name, [x, grid], _cubic(x, grid), 1e-4, method="bicubic"),
    ]  # fmt: skip
    check_interpreted(cases)


def test_crops_of_boxes() -> None:
    draw = np.random.default_rng(6)
    x = draw.normal(size=(2, 3, 5, 6)).astype(np.float32)
    boxes = np.array([[0, 0, 1, 1], [0.2, 0.6, 1.3, 0.1], [0.5, 0.25, 0.75, 0.5]], np.float32)
    which = np.array([1, 0, 1], np.int32)

    def cropped(method: str, outside: float) -> Tensor:
        out = np.full((3, 3, 4, 3), outside, np.float32)
        for r, i, j in np.ndindex(3, 4, 3):
            y1, x1, y2, x2 = boxes[r].astype(np.float64)
            at = np.array([(y1 + (y2 - y1) * i / 3) * 4, (x1 + (x2 - x1) * j / 2) * 5])
            if np.any(at < -1e-6) or np.any(at > np.array([4, 5]) + 1e-6):
                continue
            at = np.trunc(at + 0.5) if method == "nearest_neighbor" else at
            out[r, :, i, j] = _mixed(x[which[r]], at, "border")
        return out

    last = x.transpose(0, 2, 3, 1)
    name = "image.crop_and_resize"
    check_interpreted(
        [
            Case(name, [x, boxes, which], cropped("bilinear", 0), 1e-4, crop_size=(4, 3)),
            Case(name, [last, boxes, which], cropped("bilinear", 7).transpose(0, 2, 3, 1), 1e-4,
                 crop_size=(4, 3), layout="NHWC", extrapolation_value=7.0),
            Case(name, [x, boxes, which], cropped("nearest_neighbor", 0), 1e-4, crop_size=(4, 3),
                 method="nearest_neighbor"),
        ]
    )  # fmt: skip


ROIS = np.array([[0, 0, 0, 8, 6], [1, 2.2, 1.4, 11, 9], [1, 9, 9, 20, 20], [0, 5, 5, 5, 5]])


def _aligned(x: Tensor, mode: str) -> Tensor:
    out = np.zeros((4, 3, 2, 3))
    for r, ph, pw in np.ndindex(4, 2, 3):
        image, left, top, right, bottom = ROIS[r] * [1, 0.5, 0.5, 0.5, 0.5]
        high, wide = max(bottom - top, 1), max(right - left, 1)
        samples: list[Tensor] = []
        for i, j in np.ndindex(2, 2):
            down, aside = (ph + (i + 0.5) / 2) / 2, (pw + (j + 0.5) / 2) / 3
            v = np.array([top + high * down, left + wide * aside])
            outside = np.any(v < -1) or v[0] > 5 or v[1] > 6
            held = np.clip(v, 0, [4, 5])
            samples.append(np.zeros(3) if outside else _mixed(x[int(image)], held, "border"))
        stacked = np.stack(samples)
        out[r, :, ph, pw] = stacked.mean(0) if mode == "avg" else stacked.max(0)
    return out.astype(np.float32)


def _pooled(x: Tensor) -> Tensor:
    out = np.zeros((4, 3, 2, 3))
    for r, ph, pw in np.ndindex(4, 2, 3):
        image = int(ROIS[r, 0])
        left, top, right, bottom = np.trunc(ROIS[r, 1:] * 0.5 + 0.5)
        high, wide = max(bottom - top + 1, 1) / 2, max(right - left + 1, 1) / 3
        rows = np.clip([np.floor(ph * high) + top, np.ceil((ph + 1) * high) + top], 0, 5)
        columns = np.clip([np.floor(pw * wide) + left, np.ceil((pw + 1) * wide) + left], 0, 6)
        part = x[image, :, int(rows[0]) : int(rows[1]), int(columns[0]) : int(columns[1])]
        out[r, :, ph, pw] = part.max((1, 2)) if part.size else 0
    return out.astype(np.float32)


def test_regions_of_interest() -> None:
    x = np.random.default_rng(7).normal(size=(2, 3, 5, 6)).astype(np.float32)
    rois = ROIS.astype(np.float32)
    last = x.transpose(0, 2, 3, 1)
    how: dict[str, Any] = {"pooled_size": (2, 3), "spatial_scale": 0.5}
    align: dict[str, Any] = {**how, "sample_ratio": 2}
    check_interpreted(
        [
            Case("vision.roi_align", [x, rois], _aligned(x, "avg"), 1e-4, **align),
            Case("vision.roi_align", [x, rois], _aligned(x, "max"), 1e-4, mode="max", **align),
            Case("vision.roi_align", [last, rois], _aligned(x, "avg").transpose(0, 2, 3, 1), 1e-4,
                 layout="NHWC", **align),
            Case("vision.roi_pool", [x, rois], _pooled(x), 1e-4, **how),
        ]
    )  # fmt: skip


def test_windows_that_are_deformed() -> None:
    draw = np.random.default_rng(8)
    x = draw.normal(size=(1, 4, 5, 6)).astype(np.float32)
    weight = draw.normal(size=(2, 2, 3, 3)).astype(np.float32)
    moved = draw.uniform(-1.5, 1.5, (1, 36, 5, 6)).astype(np.float32)
    out = np.zeros((1, 2, 5, 6))
    for o, i, j, inner in np.ndindex(2, 5, 6, 2):
        channel = 2 * o + inner  # of the group o; the halves of the channels move together
        for tap, (ki, kj) in enumerate(np.ndindex(3, 3)):
            shift = moved[0, 18 * (channel // 2) + 2 * tap :][:2, i, j]
            at = np.array([i + ki - 1, j + kj - 1]) + shift
            if np.all(at >= 0) and np.all(at < [5, 6]):
                held = _mixed(x[0, channel : channel + 1], at, "border")
                out[0, o, i, j] += float(held[0]) * weight[o, inner, ki, kj]
    name = "nn.deformable_conv2d"
    check_interpreted(
        [
            Case(name, [x, moved, weight], out.astype(np.float32), 1e-4, padding=(1, 1), channels=2,
                 kernel_size=(3, 3), groups=2, deformable_groups=2)
        ]
    )  # fmt: skip


def test_darknet_s_order() -> None:
    x = np.arange(2 * 8 * 4 * 6, dtype=np.float32).reshape(2, 8, 4, 6)
    flat = x.reshape(2, -1)
    out = np.zeros_like(x)
    for b, k, j, i in np.ndindex(*x.shape):
        offset = k // 2
        w, h = i * 2 + offset % 2, j * 2 + offset // 2
        out[b, k, j, i] = flat[b, w + 12 * (h + 8 * (k % 2))]
    check_interpreted([Case("vision.yolo_reorg", [x], out.reshape(2, 32, 2, 3), stride=2)])
