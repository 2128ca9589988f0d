"""Nodes that read a map between its pixels: GridSample, and the grids of AffineGrid."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.run_time.vectors import vector_of
from unity.frontend.sampling import Reading, grid_sample
from unity.ir.dims import Dim, as_dim, product
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

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
    columns: list[Expr] = []
    for axis in reversed(range(rank)):  # x first
        wide = tuple(extents[axis] if k == axis else 1 for k in range(rank))
        along = node.op("reshape", _places(node, extents[axis], theta, aligned=aligned), wide)
        columns.append(node.op("broadcast_to", along, tuple(extents)))
    columns.append(node.op("ones_like", columns[0]))
    grid = node.op("reshape", node.op("stack", columns, axis=rank), (product(extents), rank + 1))
    found = node.op("matmul", grid, node.op("permute_dims", theta, axes=(0, 2, 1)))
    return node.op("reshape", found, (batch, *extents, rank))


def _places(node: Node, extent: Dim, like: Expr, *, aligned: bool) -> Expr:
    """The pixels of an axis from -1 to 1: their middles, or the first and last at the ends."""
    kind = node.dtype_of(like)
    nth = node.cast(node.op("arange", 0, extent, 1, dtype=INT64), kind)
    steps = as_dim(extent - 1) if aligned else extent
    count = node.cast(vector_of(node, (steps,)).most(1).value, kind)
    twice = node.op("multiply", nth, node.number(2, nth))
    if not aligned:
        twice = node.op("add", twice, node.number(1, nth))
    return node.op("subtract", node.op("divide", twice, count), node.number(1, nth))


CONVERTERS: dict[str, Converter] = {"GridSample": _grid_sample, "AffineGrid": _affine_grid}
