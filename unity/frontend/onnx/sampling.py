"""Nodes that read a map between its pixels: GridSample."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.sampling import Reading, grid_sample
from unity.ir.graph import Constant

from .node import Converter, Node, Value

_METHODS = {
    "bilinear": "bilinear",
    "linear": "bilinear",
    "bicubic": "bicubic",
    "cubic": "bicubic",
    "nearest": "nearest",
}


def _grid_sample(node: Node) -> Value:
    x, grid = node.tensor(0), node.tensor(1)
    shape, places = node.shape_of(x), node.shape_of(grid)
    mode = node.text_of("mode", "linear" if node.version >= 20 else "bilinear")
    if mode not in _METHODS:
        raise UnityError(f"mode {mode!r}; expected one of {', '.join(_METHODS)}")
    if len(shape) != len(places) or len(shape) < 3 or places[-1] != len(shape) - 2:
        raise UnityError(f"a grid of shape {places} for an input of shape {shape}")
    how = Reading(
        _METHODS[mode],
        node.text_of("padding_mode", "zeros"),
        bool(node.int_of("align_corners", 0)),
    )
    last = len(places) - 1
    along = [
        node.op("take", grid, Constant(np.array(axis, np.int64)), axis=last)
        for axis in range(len(shape) - 2)
    ]
    return grid_sample(node, x, along, how)


CONVERTERS: dict[str, Converter] = {"GridSample": _grid_sample}
