"""Control flow: If. A branch decided during the import is put in place; else both are kept."""

from __future__ import annotations

import onnx

from unity.errors import UnityError
from unity.frontend.sizes import Sizes
from unity.ir.graph import Body, Expr, If, Tuple

from .node import Converter, Node, Value


def _if(node: Node) -> list[Value]:
    then, orelse = node.graph_of("then_branch"), node.graph_of("else_branch")
    for branch in (then, orelse):
        if len(branch.output) != len(node.proto.output):
            raise UnityError(
                f"has {len(node.proto.output)} outputs, a branch of it {len(branch.output)}"
            )
    node.require_bool(0)
    known = node.constant(0)
    if known is not None:
        taken = then if bool(known.reshape(-1)[0]) else orelse
        return node.graph.inline(taken)
    condition = node.tensor(0)
    if node.rank(0):
        condition = node.op("reshape", condition, ())
    value = node.graph.builder.emit(
        If(condition, _body(node, then), _body(node, orelse)), node.label, node.span
    )
    count = len(node.proto.output)
    return [value] if count == 1 else [node.field(value, i) for i in range(count)]


def _body(node: Node, graph: onnx.GraphProto) -> Body:
    inner = node.graph.inner()
    values = inner.inline(graph)
    tensors: list[Expr] = [
        Node(node.proto, inner, node.version).materialize(v) if isinstance(v, Sizes) else v
        for v in values
    ]
    return inner.builder.body(tensors[0] if len(tensors) == 1 else Tuple(tuple(tensors)))


CONVERTERS: dict[str, Converter] = {"If": _if}
