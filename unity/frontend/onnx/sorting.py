"""Nodes that sort: TopK, Unique."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.run_time.slicing import long_enough
from unity.frontend.unique import unique_rows
from unity.ir.dims import Dim, product
from unity.ir.dtype import INT64
from unity.ir.graph import Constant

from .node import Converter, Node, Value


def _top_k(node: Node) -> list[Value]:
    node.ignore("sorted")  # sorted is one of the orders that sorted=0 allows
    x = node.tensor(0)
    axis = node.axis(node.int_of("axis", -1), node.rank(0))
    if node.version < 10:
        k: Dim = node.int_of("k", 0)
    else:
        (k,) = node.dims(1, "the k of a TopK")
    extent = node.shape_of(x)[axis]
    if isinstance(k, int) and (k < 0 or (isinstance(extent, int) and k > extent)):
        raise UnityError(f"k is {k}, the axis has {extent} elements")
    x = long_enough(node, x, axis, k)
    largest = node.int_of("largest", 1) != 0
    pair = node.op("topk", x, k=k, axis=axis, largest=largest, dtype=INT64)
    return [node.field(pair, 0), node.field(pair, 1)]


def _unique(node: Node) -> list[Value]:
    """The different elements, or slices along an axis: where, which and how many they are."""
    x = node.tensor(0)
    ascending = bool(node.int_of("sorted", 1))
    if node.attribute("axis") is None:
        x, axis = node.op("reshape", x, (-1,)), 0
    else:
        axis = node.axis(node.int_of("axis", 0), node.rank(0))
    shape = node.shape_of(x)
    order = (axis, *(k for k in range(len(shape)) if k != axis))
    leading = node.op("permute_dims", x, axes=order) if axis else x
    if shape[axis] == 0:
        nothing = Constant(np.zeros(0, np.int64))
        return [x, nothing, nothing, nothing]
    width = product(d for k, d in enumerate(shape) if k != axis)
    rows = node.op("reshape", leading, (shape[axis], width))
    found = unique_rows(node, rows, ascending=ascending)
    return [node.op("take", x, found.first, axis=axis), found.first, found.inverse, found.counts]


CONVERTERS: dict[str, Converter] = {"TopK": _top_k, "Unique": _unique}
