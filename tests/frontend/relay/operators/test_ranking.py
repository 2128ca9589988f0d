"""Proposals, boxes ranked over classes, samples as many as regions are large: by plain loops."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.frontend.relay.calls import Case, check_interpreted, check_results, module_of
from unity.errors import UnityError
from unity.interpreter import interpret

Tensor = npt.NDArray[Any]


def _covered(a: Tensor, b: Tensor, more: float) -> float:
    """What two boxes share of what they cover; sides are `more` longer than corners are apart."""
    side = [max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k]) + more) for k in (0, 1)]
    areas = [(v[2] - v[0] + more) * (v[3] - v[1] + more) for v in (a, b)]
    common = side[0] * side[1]
    return float(common / (sum(areas) - common)) if min(areas) > 0 else 0.0


def _survivors(boxes: Tensor, order: Tensor, threshold: float, more: float) -> list[int]:
    kept: list[int] = []
    for i in order:
        if all(_covered(boxes[i], boxes[k], more) <= threshold for k in kept):
            kept.append(int(i))
    return kept


def _ranked(
    boxes: Tensor, scores: Tensor, classes: int, per_class: int, most: int, overlap: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, background = len(boxes), scores.shape[2] - classes
    found, labels = np.zeros((batch, most, 4), np.float32), np.zeros((batch, most), np.float32)
    values, totals = np.zeros((batch, most), np.float32), np.zeros(batch, np.int32)
    for b in range(batch):
        chosen: list[tuple[float, int, int]] = []
        for label in range(classes):
            own = scores[b, :, label + background]
            order = np.array([i for i in np.argsort(-own, kind="stable") if own[i] >= 0.3], int)
            survivors = _survivors(boxes[b], order, overlap, 0)[:per_class]
            chosen += [(-float(own[i]), label, i) for i in survivors]
        chosen.sort(key=lambda v: v[0])
        for n, (value, label, i) in enumerate(chosen[:most]):
            found[b, n], labels[b, n], values[b, n] = boxes[b, i], label, -value
        totals[b] = min(len(chosen), most)
    return found, labels, values, totals


@pytest.mark.parametrize(("classes", "per_class", "most"), [(3, 2, 5), (2, 9, 40), (3, 1, 2)])
def test_the_best_boxes_of_all_classes(classes: int, per_class: int, most: int) -> None:
    draw = np.random.default_rng(31)
    low = draw.uniform(0, 0.6, (2, 9, 2))
    boxes = np.concatenate([low, low + draw.uniform(-0.05, 0.5, (2, 9, 2))], 2).astype(np.float32)
    # A third of the scores are the same: earlier classes and boxes come first.
    scores = (draw.integers(0, 9, (2, 9, 3)) / 9).astype(np.float32)
    wanted = _ranked(boxes, scores, classes, per_class, most, 0.4)
    assert 0 < wanted[3].min() <= most
    given = {"max_detections_per_class": per_class, "max_detections": most,
             "num_classes": classes, "iou_threshold": 0.4, "score_threshold": 0.3}  # fmt: skip
    name = "vision.regular_non_max_suppression"
    check_interpreted([Case(name, [boxes, scores], wanted, **given)])


def _anchors(stride: int, scales: tuple[float, ...], ratios: tuple[float, ...]) -> Tensor:
    rows: list[list[float]] = []
    for ratio in ratios:
        for scale in scales:
            width = np.floor(np.sqrt(np.floor(stride * stride / ratio)) + 0.5) * scale
            height = np.floor(width / scale * ratio + 0.5) * scale
            middle = 0.5 * (stride - 1)
            rows.append([middle - 0.5 * (width - 1), middle - 0.5 * (height - 1),
                         middle + 0.5 * (width - 1), middle + 0.5 * (height - 1)])  # fmt: skip
    return np.array(rows)


def _proposed(
    scores: Tensor, deltas: Tensor, image: Tensor, scales: tuple[float, ...],
    ratios: tuple[float, ...], stride: int, threshold: float, before: int, after: int,
    smallest: int, iou_loss: bool,
) -> Tensor:  # fmt: skip
    batch, doubled, height, width = scores.shape
    anchors = _anchors(stride, scales, ratios)
    out = np.zeros((batch * after, 5), np.float32)
    for b in range(batch):
        high, wide, zoom = image[b]
        boxes, values = list[Tensor](), list[float]()
        for i, j, k in np.ndindex(height, width, len(anchors)):
            x1, y1, x2, y2 = anchors[k] + stride * np.array([j, i, j, i])
            dx, dy, dw, dh = deltas[b, 4 * k : 4 * k + 4, i, j].astype(np.float64)
            if iou_loss:
                box = np.array([x1 + dx, y1 + dy, x2 + dw, y2 + dh])
            else:
                w, h = x2 - x1 + 1, y2 - y1 + 1
                x, y = dx * w + x1 + 0.5 * (w - 1), dy * h + y1 + 0.5 * (h - 1)
                w, h = np.exp(dw) * w - 1, np.exp(dh) * h - 1
                box = np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
            box = np.clip(box, 0, np.array([wide, high, wide, high]) - 1)
            value = float(scores[b, doubled // 2 + k, i, j])
            if i >= int(high / stride) or j >= int(wide / stride):
                value = -1
            least = zoom * smallest
            if min(box[2] - box[0], box[3] - box[1]) + 1 < least:
                box, value = box + np.array([-1, -1, 1, 1]) * least / 2, -1
            boxes.append(box)
            values.append(value)
        order = np.argsort(-np.array(values), kind="stable")[: before if before > 0 else None]
        kept = _survivors(np.array(boxes), order, threshold, 1)
        for n in range(after):
            out[b * after + n] = [b, *boxes[kept[n % len(kept)]]]
    return out


@pytest.mark.parametrize("iou_loss", [False, True])
@pytest.mark.parametrize(("before", "after"), [(40, 6), (-1, 60), (6000, 300)])
def test_proposals(before: int, after: int, iou_loss: bool) -> None:
    """The image is smaller than the map's cells, and few regions are left: they are repeated."""
    draw = np.random.default_rng(32)
    scales, ratios = (0.5, 2.0), (0.6, 1.0, 1.9)
    scores = draw.permuted(np.linspace(0, 1, 2 * 12 * 20)).reshape(2, 12, 4, 5).astype(np.float32)
    deltas = (draw.normal(size=(2, 24, 4, 5)) * (6 if iou_loss else 0.4)).astype(np.float32)
    image = np.array([[40, 52, 1], [48, 60, 1.5]], np.float32)
    wanted = _proposed(scores, deltas, image, scales, ratios, 12, 0.4, before, after, 9, iou_loss)
    given: dict[str, Any] = {
        "scales": scales, "ratios": ratios, "feature_stride": 12, "threshold": 0.4,
        "rpn_pre_nms_top_n": before, "rpn_post_nms_top_n": after, "rpn_min_size": 9,
        "iou_loss": iou_loss,
    }  # fmt: skip
    check_interpreted([Case("vision.proposal", [scores, deltas, image], wanted, 1e-3, **given)])


def _sampled(x: Tensor, y: float, at: float) -> Tensor:
    height, width = x.shape[1:]
    if y < -1 or y > height or at < -1 or at > width:
        return np.zeros(len(x))
    y, at = min(max(y, 0), height - 1), min(max(at, 0), width - 1)
    total = np.zeros(len(x))
    for row, down in ((int(y), 1 - y % 1), (int(y) + 1, y % 1)):
        for column, aside in ((int(at), 1 - at % 1), (int(at) + 1, at % 1)):
            if row < height and column < width:
                total += down * aside * x[:, row, column]
    return total


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"ratios": (0.0,)}, "ratios must be above 0, got 0.0"),
        ({"scales": (8.0, -1.0)}, "scales must be above 0, got 8.0, -1.0"),
        ({"feature_stride": 0}, "feature_stride must be above 0, got 0"),
        ({"ratios": (float("nan"),)}, "ratios must be above 0, got nan"),
    ],
)
def test_anchors_of_no_size_are_refused(changed: dict[str, Any], what: str) -> None:
    given: dict[str, Any] = {"scales": (8.0,), "ratios": (1.0,), "feature_stride": 16, **changed}
    operands = [np.zeros(s, np.float32) for s in ((1, 2, 3, 3), (1, 4, 3, 3), (1, 3))]
    with pytest.raises(UnityError, match=re.escape(what)):
        module_of([Case("vision.proposal", operands, operands[0], **given)])


def _aligned(x: Tensor, rois: Tensor, size: tuple[int, int], scale: float, mode: str) -> Tensor:
    out = np.zeros((len(rois), x.shape[1], *size))
    for r, roi in enumerate(rois):
        left, top, right, bottom = (roi[1:] * np.float32(scale)).astype(float)
        parts = max(bottom - top, 1) / size[0], max(right - left, 1) / size[1]
        grid = [ceil(p) for p in parts]
        for i, j in np.ndindex(*size):
            values = [
                _sampled(x[int(roi[0])], top + (i + (a + 0.5) / grid[0]) * parts[0],
                         left + (j + (b + 0.5) / grid[1]) * parts[1])
                for a, b in np.ndindex(*grid)
            ]  # fmt: skip
            out[r, :, i, j] = np.mean(values, 0) if mode == "avg" else np.max(values, 0)
    return out.astype(np.float32)


ROIS = np.array([[0, 0, 0, 8, 6], [1, 2.2, 1.4, 11, 9], [1, 9, 9, 20, 20], [0, 5, 5, 5, 5],
                 [0, -6, -8, 40, 30], [1, 3, 4, 2, 1]], np.float32)  # fmt: skip


def test_as_many_samples_as_regions_are_large() -> None:
    x = (np.random.default_rng(7).normal(size=(2, 3, 5, 6)) - 1.5).astype(np.float32)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    cases: list[Case] = []
    for mode, scale, size in (("avg", 0.5, (2, 3)), ("max", 0.25, (3, 3)), ("avg", 1.0, (1, 2))):
        wanted = _aligned(x, ROIS, size, scale, mode)
        given: dict[str, Any] = {"pooled_size": size, "spatial_scale": scale, "mode": mode}
        cases.append(Case("vision.roi_align", [x, ROIS], wanted, 1e-4, **given))
    cases.append(Case("vision.roi_align", [last, ROIS], wanted.transpose(0, 2, 3, 1), 1e-4,
                      layout="NHWC", sample_ratio=0, **given))  # fmt: skip
    check_interpreted(cases)
    module, inputs = module_of(cases[:2])
    check_results(cases[:2], unity.compile(module)(*inputs))


def test_regions_without_end_end() -> None:
    """A loop over a region's samples is no longer than the map, whatever the region says."""
    x = np.ones((1, 1, 4, 4), np.float32)
    rois = np.array([[0, 0, 0, 3e38, 1e9], [0, 0, 0, np.inf, np.nan]], np.float32)
    case = Case("vision.roi_align", [x, rois], x, pooled_size=(2, 2), spatial_scale=1.0)
    module, inputs = module_of([case])
    found = interpret(module, "main", inputs)
    assert isinstance(found, tuple)
    assert np.asarray(found[0]).shape == (2, 1, 2, 2)
