"""Loop: a graph run some number of times, carrying states.

Where the number of steps is a size and no step can end the loop early, it is the IR's scan over the
numbers of the steps, and what each step gives is stacked. Else it is a while loop; what its steps
give could then be of any number, which is not implemented.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from unity.errors import UnityError
from unity.ir.dims import Dim, as_dim, dim_max
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Body, Constant, Expr, Scan, Tuple, Var, While
from unity.ir.types import TensorType

from .node import Converter, Node, Value
from .scan import kept
from .sizes import Sizes

if TYPE_CHECKING:
    from .importer import GraphImporter


def _loop(node: Node) -> list[Value]:
    body = node.attribute("body")
    if body is None or not body.HasField("g"):
        raise UnityError("lacks the graph 'body'")
    states = max(0, node.count - 2)
    if len(body.g.input) != states + 2 or len(body.g.output) < states + 1:
        raise UnityError(f"{states} states do not fit the body")
    if len(node.proto.output) > len(body.g.output) - 1:
        raise UnityError(f"has {len(node.proto.output)} outputs, the body {len(body.g.output)}")
    init = [node.tensor(2 + k) for k in range(states)]
    steps = node.sizes(0) if node.has(0) else None
    if steps is not None and _goes_on(node, body.g):
        (count,) = steps.flat
        return _counted(node, body.g, init, as_dim(dim_max(count, 0)))
    if len(body.g.output) > states + 1:
        raise node.gap("outputs of each step of a number known only at run time")
    return _checked(node, body.g, init)


def _goes_on(node: Node, body: onnx.GraphProto) -> bool:
    """Whether the condition is true before the loop and after each step."""
    if node.has(1):
        start = node.constant(1)
        if start is None or not start.all():
            return False
    made = {n.output[0]: n for n in body.node if n.output}
    given = {t.name: t for t in body.initializer}
    name = body.output[0].name
    while name in made and made[name].op_type == "Identity":
        name = made[name].input[0]
    if name == body.input[1].name:
        return True
    if name in given:
        return bool(numpy_helper.to_array(given[name]).all())
    if name in made and made[name].op_type == "Constant":
        values = [a.t for a in made[name].attribute if a.name == "value"]
        return bool(values) and bool(numpy_helper.to_array(values[0]).all())
    return False


def _counted(node: Node, body: onnx.GraphProto, init: Sequence[Expr], steps: Dim) -> list[Value]:
    """A scan over the steps' numbers."""
    inner = node.graph.inner()
    nth = inner.builder.new_var(body.input[0].name, TensorType((), INT64))
    state = _states(node, inner, body, init)
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = _true()
    after = _step(node, inner, body, state)[1:]
    numbers = node.op("arange", 0, steps, 1, dtype=INT64)
    whole = inner.builder.body(Tuple(tuple(after)))
    scan = Scan(tuple(state), tuple(init), (nth,), (numbers,), whole)
    value = node.graph.builder.emit(scan, node.label, node.span)
    return [node.field(value, k) for k in range(len(node.proto.output))]


def _checked(node: Node, body: onnx.GraphProto, init: Sequence[Expr]) -> list[Value]:
    """A while loop, which counts its steps and carries its condition."""
    limit = node.op("reshape", node.tensor(0), ()) if node.has(0) else None
    start = node.op("reshape", node.tensor(1), ()) if node.has(1) else _true()
    if limit is None and _goes_on(node, body):
        raise UnityError("never ends: it has no number of steps, and its condition stays true")
    inner = node.graph.inner()
    nth = inner.builder.new_var(body.input[0].name, TensorType((), INT64))
    going = inner.builder.new_var(body.input[1].name, TensorType((), BOOL))
    state = _states(node, inner, body, init)
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = going
    condition = _condition(node, nth, going, limit)
    within = Node(node.proto, inner, node.version)
    on, *after = _step(node, inner, body, state)
    following = within.op("add", nth, 1)
    whole = inner.builder.body(Tuple((following, within.op("reshape", on, ()), *after)))
    begin = (Constant(np.asarray(0, np.int64)), start, *init)
    loop = While((nth, going, *state), begin, condition, whole)
    value = node.graph.builder.emit(loop, node.label, node.span)
    return [node.field(value, 2 + k) for k in range(len(node.proto.output))]


def _condition(node: Node, nth: Var, going: Var, limit: Expr | None) -> Body:
    inner = node.graph.inner()
    if limit is None:
        return inner.builder.body(going)
    within = Node(node.proto, inner, node.version)
    return inner.builder.body(within.op("logical_and", going, within.op("less", nth, limit)))


def _states(
    node: Node, inner: GraphImporter, body: onnx.GraphProto, init: Sequence[Expr]
) -> list[Var]:
    """Variables for the states, under the names that the body has for them."""
    found: list[Var] = []
    for given, x in zip(body.input[2:], init, strict=True):
        var = inner.builder.new_var(given.name, node.type_of(x))
        inner.values[given.name] = var
        found.append(var)
    return found


def _step(
    node: Node, inner: GraphImporter, body: onnx.GraphProto, state: Sequence[Var]
) -> list[Expr]:
    """The body's outputs: its condition, the next states, what it gives besides."""
    within = Node(node.proto, inner, node.version)
    found = [within.materialize(v) if isinstance(v, Sizes) else v for v in inner.inline(body)]
    for k, old in enumerate(state):
        new = found[1 + k]
        before, after = node.shape_of(old), within.shape_of(new)
        if len(before) != len(after) or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(before, after, strict=True)
        ):
            raise node.gap(f"a state whose shape changes from {before} to {after}")
        found[1 + k] = kept(within, new, old)
    return found


def _true() -> Constant:
    return Constant(np.asarray(True))


CONVERTERS: dict[str, Converter] = {"Loop": _loop}
