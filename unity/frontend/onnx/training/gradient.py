"""Gradient: derivatives of one tensor of the model with respect to others, by the chain rule."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from unity.errors import UnityError
from unity.frontend.onnx.node import Converter, Node, Value
from unity.ir.graph import Expr

from .derivatives import RULES


def _gradient(node: Node) -> list[Value]:
    """The part of the graph that makes a tensor, computed from the inputs, and back to them."""
    xs, zs = node.texts_of("xs") or (), node.texts_of("zs") or ()
    y = node.text_of("y", "")
    if not y or not xs or len(xs) + len(zs) != node.count:
        raise UnityError(
            f"{node.count} inputs for {len(xs)} of 'xs' and {len(zs)} of 'zs' to {y!r}"
        )
    if node.graph.outer is not None:
        raise node.gap("a gradient within a function, an If, a Loop or a Scan")
    graph = node.graph.model.proto.graph
    given = dict(zip((*xs, *zs), (node.outcome(k) for k in range(node.count)), strict=True))
    scope = node.graph.scope(given)
    path = _path(graph, y, set(given))
    scope.convert(onnx.GraphProto(node=path))
    views = [Node(p, scope, node.graph.model.opsets.get(p.domain, 1)) for p in path]
    target = node.plain(scope.outcome(y))
    found: dict[str, Expr] = {y: node.op("ones_like", target)}
    depends = _dependent(path, set(xs))
    for view in reversed(views):
        _hand_back(node, view, found, depends)
    return [found.get(x) or node.op("zeros_like", node.plain(given[x])) for x in xs]


def _path(graph: onnx.GraphProto, y: str, ends: set[str]) -> list[onnx.NodeProto]:
    """The nodes between the ends and a tensor, in the order of the graph."""
    makers = {name: k for k, p in enumerate(graph.node) for name in p.output if name}
    inputs = {i.name for i in graph.input} - {t.name for t in graph.initializer}
    wanted: set[int] = set()
    todo = [y]
    while todo:
        name = todo.pop()
        if not name or name in ends:
            continue
        if name in inputs:
            raise UnityError(f"{y!r} depends on {name!r}, which is neither in 'xs' nor in 'zs'")
        maker = makers.get(name)
        if maker is not None and maker not in wanted:
            wanted.add(maker)
            todo += graph.node[maker].input
    return [graph.node[k] for k in sorted(wanted)]


def _dependent(path: Sequence[onnx.NodeProto], xs: set[str]) -> set[str]:
    """What depends on any of the tensors."""
    found = set(xs)
    for proto in path:
        if found.intersection(proto.input):
            found.update(name for name in proto.output if name not in xs)
    return found


def _hand_back(node: Node, view: Node, found: dict[str, Expr], depends: set[str]) -> None:
    """Add to the derivatives of a node's operands."""
    proto = view.proto
    outputs = [name for name in proto.output if name in found and name in depends]
    if not outputs or not depends.intersection(proto.input):
        return
    rule = RULES.get(proto.op_type) if proto.domain in ("", "ai.onnx") else None
    if rule is None or outputs != [proto.output[0]]:
        raise node.gap(f"the derivative of {proto.op_type}")
    out = view.plain(view.graph.outcome(proto.output[0]))
    for name, part in zip(proto.input, rule(view, out, found[outputs[0]]), strict=False):
        if part is None or name not in depends:
            continue
        found[name] = node.op("add", found[name], part) if name in found else part


CONVERTERS: dict[str, Converter] = {"Gradient": _gradient}
