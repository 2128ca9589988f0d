"""Resize and its forerunner Upsample."""

from __future__ import annotations

import numpy as np

from unity.frontend.resize_positions import Method
from unity.frontend.resizing import resized

from .node import Converter, Node, Value


def _resize(node: Node) -> Value:
    if node.int_of("antialias", 0):
        raise node.gap("antialias")
    if node.text_of("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise node.gap("keep_aspect_ratio_policy")
    early = node.version < 11
    method = Method(
        node.text_of("mode", "nearest"),
        node.text_of("coordinate_transformation_mode", "asymmetric" if early else "half_pixel"),
        node.text_of("nearest_mode", "floor" if early else "round_prefer_floor"),
        node.float_of("cubic_coeff_a", -0.75),
        bool(node.int_of("exclude_outside", 0)),
    )
    node.ignore("extrapolation_value")  # only for tf_crop_and_resize, which is refused
    rank = node.rank(0)
    axes = node.ints_of("axes")
    over = tuple(range(rank)) if axes is None else tuple(node.axis(a, rank) for a in axes)
    scales_at = 1 if early else 2
    sizes = node.dims(3, "sizes") if node.has(3) else ()
    if sizes:
        return resized(node, node.tensor(0), method, over, sizes, None)
    scales = _scales(node, scales_at)
    return resized(node, node.tensor(0), method, over, None, scales)


def _upsample(node: Node) -> Value:
    mode = node.text_of("mode", "nearest")
    method = Method(mode, "asymmetric", "floor", -0.75, False)
    given = node.attribute("scales")
    scales = tuple(float(s) for s in given.floats) if given is not None else _scales(node, 1)
    return resized(node, node.tensor(0), method, tuple(range(node.rank(0))), None, scales)


def _scales(node: Node, index: int) -> tuple[float, ...]:
    array = node.constant(index) if node.has(index) else None
    if array is None:
        raise node.gap("scales known only at run time")
    return tuple(float(s) for s in array.astype(np.float64).reshape(-1))


CONVERTERS: dict[str, Converter] = {"Resize": _resize, "Upsample": _upsample}
