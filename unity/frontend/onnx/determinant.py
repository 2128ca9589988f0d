"""Det: of square matrices, by elimination with the largest pivots, one column a step of a scan."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dtype import INT64
from unity.ir.graph import Scan, Tuple
from unity.ir.types import TensorType

from .node import Converter, Node, Value


def _det(node: Node) -> Value:
    x = node.tensor(0)
    *leading, rows, columns = node.shape_of(x)
    if rows != columns:
        x = node.assert_shape(x, (*leading, rows, rows))
    matrices = node.op("reshape", x, (-1, rows, rows))
    batch = node.shape_of(matrices)[0]
    kind = node.dtype_of(x)
    one = node.op("ones", (batch,), dtype=kind)
    steps = node.op("arange", 0, rows, 1, dtype=INT64)
    graph = node.graph.inner()
    within = Node(node.proto, graph, node.version)
    new = graph.builder.new_var
    left, product = new("left", node.type_of(matrices)), new("product", node.type_of(one))
    nth = new("nth", TensorType((), INT64))
    if not kind.is_float:
        raise UnityError(f"takes floats, got {kind}")

    place = within.op("arange", 0, rows, 1, dtype=INT64)
    column = within.op("take", left, nth, axis=2)
    later = within.op("greater_equal", place, nth)
    size = within.op("where", later, within.op("abs", column), within.number(-1.0, column))
    best = within.op("argmax", size, axis=1)  # (batch,)
    here = within.op("equal", within.op("reshape", place, (1, rows)),
                     within.op("reshape", best, (batch, 1)))  # fmt: skip
    at = within.op("broadcast_to", within.op("reshape", best, (batch, 1, 1)), (batch, 1, rows))
    pivot_row = within.op("gather_elements", left, at, axis=1)  # (batch, 1, rows)
    own_row = within.op("expand_dims", within.op("take", left, nth, axis=1), axis=1)
    is_best = within.op("reshape", here, (batch, rows, 1))
    is_own = within.op("reshape", within.op("equal", place, nth), (1, rows, 1))
    swapped = within.op("where", is_own, pivot_row, within.op("where", is_best, own_row, left))
    pivot = within.op("take", within.op("squeeze", pivot_row, axis=(1,)), nth, axis=1)
    sign = within.op("where", within.op("equal", best, nth), within.number(1.0, pivot),
                     within.number(-1.0, pivot))  # fmt: skip
    after = within.op("multiply", product, within.op("multiply", pivot, sign))
    zero = within.number(0.0, pivot)
    safe = within.op("where", within.op("equal", pivot, zero), within.number(1.0, pivot), pivot)
    below = within.op("reshape", within.op("greater", place, nth), (1, rows, 1))
    own_column = within.op("expand_dims", within.op("take", swapped, nth, axis=2), axis=2)
    factor = within.op("divide", own_column, within.op("reshape", safe, (batch, 1, 1)))
    factor = within.op("where", below, factor, zero)
    following = within.op("subtract", swapped, within.op("multiply", factor, pivot_row))
    body = graph.builder.body(Tuple((following, after)))
    scan = Scan((left, product), (matrices, one), (nth,), (steps,), body)
    value = node.graph.builder.emit(scan, node.label, node.span)
    return node.op("reshape", node.field(value, 1), tuple(leading))


CONVERTERS: dict[str, Converter] = {"Det": _det}
