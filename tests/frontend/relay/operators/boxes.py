"""Detection in numpy's plain loops: what Relay's vision operators give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Tensor = npt.NDArray[Any]


def counted(x: Tensor, threshold: float, score: int, label: int) -> tuple[Tensor, Tensor, Tensor]:
    """The boxes with scores above a threshold: how many, they first, and where they were."""
    rows, places = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    counts = np.zeros(len(x), np.int32)
    for b, boxes in enumerate(x):
        for i, box in enumerate(boxes):
            if box[score] > threshold and (label < 0 or box[label] >= 0):
                rows[b, counts[b]], places[b, counts[b]] = box, i
                counts[b] += 1
    return counts, rows, places


def overlap(a: Tensor, b: Tensor) -> float:
    """What two boxes share, of what they cover."""
    (al, at), (ar, ab) = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    (bl, bt), (br, bb) = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    common = max(0, min(ar, br) - max(al, bl)) * max(0, min(ab, bb) - max(at, bt))
    union = (ar - al) * (ab - at) + (br - bl) * (bb - bt) - common
    return 0 if union <= 0 else float(common / union)


def suppressed(
    x: Tensor, counts: Tensor, most: int, threshold: float, force: bool, top: int, label: int
) -> tuple[Tensor, Tensor]:
    """What is left of each place in order of scores, and which box it was; -1 elsewhere."""
    rows, places = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    for b, count in enumerate(counts):
        order = np.argsort(-x[b, :count, 1], kind="stable")
        keep = min(count, top) if top > 0 else count
        rows[b, :keep], places[b, :keep] = x[b, order[:keep]], order[:keep]
        found = 0
        for j in range(count):
            if found == most:
                rows[b, j], places[b, j] = -1, -1
            elif rows[b, j, 1] > 0:
                if any(
                    rows[b, k, 1] > 0
                    and (label < 0 or rows[b, k, label] >= 0)
                    and (force or label < 0 or rows[b, k, label] == rows[b, j, label])
                    and overlap(rows[b, j, 2:], rows[b, k, 2:]) >= threshold
                    for k in range(j)
                ):
                    rows[b, j], places[b, j] = -1, -1
                else:
                    found += 1
    return rows, places


def located(
    probabilities: Tensor, offsets: Tensor, anchors: Tensor, threshold: float, clip: bool
) -> tuple[Tensor, Tensor]:
    """The boxes of objects that offsets from anchors say, and how many they are."""
    batch, _, count = probabilities.shape
    rows, counts = np.full((batch, count, 6), -1, np.float32), np.zeros(batch, np.int32)
    for b, j in np.ndindex(batch, count):
        label = int(np.argmax(probabilities[b, 1:, j]))
        score = probabilities[b, 1 + label, j]
        if score < threshold:
            continue
        (left, top, right, bottom), p = anchors[0, j], offsets[b, 4 * j : 4 * j + 4]
        width, height = right - left, bottom - top
        x, y = p[0] * 0.1 * width + (left + right) / 2, p[1] * 0.1 * height + (top + bottom) / 2
        w, h = np.exp(p[2] * 0.2) * width / 2, np.exp(p[3] * 0.2) * height / 2
        box = np.array([x - w, y - h, x + w, y + h])
        rows[b, counts[b]] = [label, score, *(np.clip(box, 0, 1) if clip else box)]
        counts[b] += 1
    return rows, counts
