"""Nodes that sort: TopK."""

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


CONVERTERS: dict[str, Converter] = {"TopK": _top_k}
