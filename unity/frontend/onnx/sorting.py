"""Nodes that sort: TopK."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dims import Dim, always_ge, as_dim, dim
from unity.ir.dtype import INT64
from unity.ir.graph import Expr

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
    if not always_ge(extent, k):
        x = _long_enough(node, x, axis, k)
    largest = node.int_of("largest", 1) != 0
    pair = node.op("topk", x, k=k, axis=axis, largest=largest, dtype=INT64)
    return [node.field(pair, 0), node.field(pair, 1)]


def _long_enough(node: Node, x: Expr, axis: int, k: Dim) -> Expr:
    """An extent that may be too short is checked at run time."""
    shape = node.shape_of(x)
    if not isinstance(k, int):
        others = node.sized(as_dim(shape[axis] - k), f"{node.label}_beyond_k")
        return node.assert_shape(x, (*shape[:axis], as_dim(k + others), *shape[axis + 1 :]))
    name = node.graph.builder.fresh(f"{node.label}_axis_{axis}_sorted").name
    return node.assert_shape(x, (*shape[:axis], dim(name, min=k), *shape[axis + 1 :]))


CONVERTERS: dict[str, Converter] = {"TopK": _top_k}
