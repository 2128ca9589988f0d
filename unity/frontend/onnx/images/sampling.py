"""Nodes that read a map between its pixels: GridSample, and the grids of AffineGrid."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.sampling import Reading, grid_sample

_METHODS = {
    "bilinear": "bilinear",
    "linear": "bilinear",
    "bicubic": "bicubic",
    "cubic": "bicubic",
    "nearest": "nearest",
}


def _grid_sample(node: Node) -> Value:
    x, grid = node.tensor(0), node.tensor(1)
    shape = node.shape_of(x)
    grid = node.agreed(grid, (shape[0], *(None,) * (len(shape) - 2), len(shape) - 2))
    places = node.shape_of(grid)
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
    grid = node.op("permute_dims", grid, axes=(0, last, *range(1, last)))
    return grid_sample(node, x, grid, how)


def _affine_grid(node: Node) -> Value:
    """Where each pixel of an output is read: places from -1 to 1, transformed."""
    theta = node.tensor(0)
    size = node.dims(1, "the size of a grid")
    rank = len(size) - 2
    if rank not in (2, 3) or node.rank(0) != 3:
        raise UnityError(f"a size of {len(size)} numbers; expected (N, C, H, W) or (N, C, D, H, W)")
    batch, _, *extents = size
    theta = node.assert_shape(theta, (batch, rank, rank + 1))
    aligned = bool(node.int_of("align_corners", 0))
    found = node.op("image.affine_grid", theta, tuple(extents), align_corners=aligned)
    return node.op("permute_dims", found, axes=(0, *range(2, rank + 2), 1))


CONVERTERS: dict[str, Converter] = {"GridSample": _grid_sample, "AffineGrid": _affine_grid}
