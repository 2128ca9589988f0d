"""Nodes that sort: TopK."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dims import always_ge
from unity.ir.dtype import INT64

from .node import Converter, Node, Value


def _top_k(node: Node) -> list[Value]:
    node.ignore("sorted")  # sorted is one of the orders that sorted=0 allows
    x = node.tensor(0)
    axis = node.axis(node.int_of("axis", -1), node.rank(0))
    if node.version < 10:
        k = node.int_of("k", 0)
    else:
        (k,) = node.ints(1, "the k of a TopK")
    extent = node.shape_of(x)[axis]
    if isinstance(extent, int) and not 0 <= k <= extent:
        raise UnityError(f"k is {k}, the axis has {extent} elements")
    if not always_ge(extent, k):
        raise node.gap(f"the {k} best of the symbolic extent {extent}, which may have fewer")
    largest = node.int_of("largest", 1) != 0
    pair = node.op("topk", x, k=k, axis=axis, largest=largest, dtype=INT64)
    return [node.field(pair, 0), node.field(pair, 1)]


CONVERTERS: dict[str, Converter] = {"TopK": _top_k}
