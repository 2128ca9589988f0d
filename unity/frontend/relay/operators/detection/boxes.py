"""Detection: anchors, boxes from what a network says of them, a map in another order."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Constant, Expr, Tuple
from unity.op.vision.boxes import moved_to_front


def reals(c: RelayCall, name: str) -> tuple[float, ...]:
    """An attribute of numbers; one stands for a tuple of it."""
    found = c.attribute(name)
    items = found if isinstance(found, tuple) else (found,)
    known = tuple(float(i) for i in items if isinstance(i, int | float))
    if len(known) != len(items):
        raise UnityError(f"the attribute {name!r} must be numbers, got {found!r}")
    return known


def _multibox_prior(c: RelayCall) -> Expr:
    """Anchor boxes of a map of features, (1, height * width * boxes, 4), a constant."""
    *_, height, width = c.extents(c.tensor(0), "anchors of a map")
    sizes, ratios, clip = reals(c, "sizes"), reals(c, "ratios"), c.flag("clip")
    steps, offsets = reals(c, "steps"), reals(c, "offsets")
    step = [s if s > 0 else 1 / n for s, n in zip(steps, (height, width), strict=True)]
    rows = (np.arange(height, dtype=np.float32) + np.float32(offsets[0])) * np.float32(step[0])
    columns = (np.arange(width, dtype=np.float32) + np.float32(offsets[1])) * np.float32(step[1])
    # Each size at the first ratio, then the first size at each other ratio; half widths, heights.
    half = [(s * height / width / 2, s / 2) for s in sizes]
    half += [(sizes[0] * height / width * r**0.5 / 2, sizes[0] / r**0.5 / 2) for r in ratios[1:]]
    boxes = np.empty((height, width, len(half), 4), np.float32)
    for i, (w, h) in enumerate(half):
        boxes[:, :, i, 0] = columns - np.float32(w)
        boxes[:, :, i, 1] = (rows - np.float32(h))[:, None]
        boxes[:, :, i, 2] = columns + np.float32(w)
        boxes[:, :, i, 3] = (rows + np.float32(h))[:, None]
    if clip:
        boxes = np.clip(boxes, 0, 1)
    return Constant(np.ascontiguousarray(boxes.reshape(1, -1, 4)))


def _multibox_transform_loc(c: RelayCall) -> Expr:
    """Detections (class, score, corners) of SSD, those of objects first; how many they are."""
    probabilities, offsets, anchors = (c.tensor(i) for i in range(3))
    threshold, clip = c.real("threshold"), c.flag("clip")
    c.only("keep_background", False)
    variances = reals(c, "variances")
    batch, classes, count = c.extents(probabilities, "probabilities of classes")
    named = c.op("strided_slice", probabilities, axes=(1,), begin=(1,), end=(classes,))
    score = c.op("max", named, axis=(1,))
    label = c.op("argmax", named, axis=1, keepdims=False)
    present = c.op("greater_equal", score, c.number(threshold, score))
    moved = c.op("reshape", offsets, (batch, count, 4))
    corners = _decoded(c, moved, c.op("reshape", anchors, (1, count, 4)), variances)
    if clip:
        corners = c.op("clip", corners, min=0.0, max=1.0)
    columns = [c.op("reshape", v, (batch, count, 1)) for v in (c.cast(label, FLOAT32), score)]
    rows, found = moved_to_front(c, present, c.op("concat", [*columns, corners], axis=2))
    return Tuple((rows, found))


def _decoded(c: RelayCall, moved: Expr, anchors: Expr, variances: tuple[float, ...]) -> Expr:
    """The corners of boxes, of their offsets from anchors."""

    def columns(x: Expr, begin: int) -> Expr:
        return c.op("strided_slice", x, axes=(2,), begin=(begin,), end=(begin + 2,))

    low, high = columns(anchors, 0), columns(anchors, 2)
    size = c.op("subtract", high, low)
    middle = c.op("multiply", c.op("add", low, high), 0.5)
    shifts, growths = (Constant(np.array(v, np.float32)) for v in (variances[:2], variances[2:]))
    shift = c.op("multiply", c.op("multiply", columns(moved, 0), shifts), size)
    at = c.op("add", shift, middle)
    growth = c.op("exp", c.op("multiply", columns(moved, 2), growths))
    half = c.op("multiply", c.op("multiply", growth, size), 0.5)
    return c.op("concat", [c.op("subtract", at, half), c.op("add", at, half)], axis=2)


def _yolo_reorg(c: RelayCall) -> Expr:
    """Darknet's order of elements: as if the input had the channels of a larger map."""
    x, stride = c.tensor(0), c.integer("stride")
    batch, channels, height, width = c.extents(x, "a map")
    inner = channels // stride**2
    if not inner or channels % stride**2 or height % stride or width % stride:
        raise UnityError(f"a map of {channels}x{height}x{width} has no stride {stride}")
    k, j, i = np.indices((channels, height, width))
    down, right = np.divmod(k // inner, stride)
    wide = i * stride + right + width * stride * (j * stride + down)
    places = wide + width * stride * height * stride * (k % inner)
    flat = c.op("reshape", x, (batch, channels * height * width))
    found = c.op("take", flat, Constant(places.reshape(-1).astype(np.int64)), axis=1)
    shape = batch, channels * stride**2, height // stride, width // stride
    return c.op("reshape", found, shape)


CONVERTERS: dict[str, Converter] = {
    "vision.multibox_prior": _multibox_prior,
    "vision.multibox_transform_loc": _multibox_transform_loc,
    "vision.yolo_reorg": _yolo_reorg,
}
