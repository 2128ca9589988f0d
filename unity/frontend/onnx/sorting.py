"""Nodes that sort: TopK, Unique."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.run_time.slicing import long_enough
from unity.ir.dims import Dim
from unity.ir.dtype import INT64

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
    given = node.attribute("axis")
    axis = None if given is None else node.axis(node.int_of("axis", 0), node.rank(0))
    found = node.op(
        "unique", x, sorted=bool(node.int_of("sorted", 1)), axis=axis,
        return_index=True, return_inverse=True, return_counts=True,
    )  # fmt: skip
    values, first, inverse, counts = (node.field(found, k) for k in range(4))
    if axis is None:  # ONNX's is flat
        inverse = node.op("reshape", inverse, (-1,))
    return [values, first, inverse, counts]


CONVERTERS: dict[str, Converter] = {"TopK": _top_k, "Unique": _unique}
