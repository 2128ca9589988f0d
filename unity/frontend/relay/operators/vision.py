"""Detection: what of it depends on shapes alone."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.graph import Constant, Expr


def _reals(c: RelayCall, name: str) -> tuple[float, ...]:
    found = c.attribute(name)
    items = found if isinstance(found, tuple) else (found,)
    known = tuple(float(i) for i in items if isinstance(i, int | float))
    if len(known) != len(items):
        raise UnityError(f"the attribute {name!r} must be numbers, got {found!r}")
    return known


def _multibox_prior(c: RelayCall) -> Expr:
    """Anchor boxes of a map of features, (1, height * width * boxes, 4), a constant."""
    *_, height, width = c.extents(c.tensor(0), "anchors of a map")
    sizes, ratios, clip = _reals(c, "sizes"), _reals(c, "ratios"), c.flag("clip")
    steps, offsets = _reals(c, "steps"), _reals(c, "offsets")
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


CONVERTERS: dict[str, Converter] = {
    "vision.multibox_prior": _multibox_prior,
}
