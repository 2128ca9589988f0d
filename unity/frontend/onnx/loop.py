"""Loop: a graph run some number of times, carrying states.

Where the number of steps is a size and no step can end the loop early, it is the IR's scan over the
numbers of the steps, and what each step gives is stacked. Else it is a while loop; what its steps
give could then be of any number, which is not implemented.

A state may grow: an axis that a step changes has another size in each step. A scan's states keep
their shapes, so such a loop is a while loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx

from unity.errors import UnityError
from unity.frontend.emission import Gap
from unity.frontend.run_time.vectors import Ints, bound
from unity.frontend.sizes import Sizes
from unity.ir.dims import Dim, as_dim, bounds, dim_max, equal
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Body, Constant, Expr, Scan, Tuple, Var, While
from unity.ir.types import TensorType
from unity.op.argument import shape_text

from .node import Converter, Node, Value
from .scan import kept
from .tensors import array_of, check_declared

if TYPE_CHECKING:
    from .importer import GraphImporter

Axes: TypeAlias = "frozenset[int]"
"""The axes of a state that steps change."""


def _loop(node: Node) -> list[Value]:
    body = node.graph_of("body")
    states = max(0, node.count - 2)
    if len(body.input) != states + 2 or len(body.output) < states + 1:
        raise UnityError(f"{states} states do not fit the body")
    if len(node.proto.output) > len(body.output) - 1:
        raise UnityError(f"has {len(node.proto.output)} outputs, the body {len(body.output)}")
    init = [node.tensor(2 + k) for k in range(states)]
    kinds = [INT64, BOOL, *(node.dtype_of(x) for x in init)]
    for info, kind in zip(body.input, kinds, strict=True):
        check_declared(info, kind, f"the body's input {info.name!r}")
    if node.has(1):
        node.require_bool(1)
    steps = node.sizes(0) if node.has(0) else None
    loose = _changing(node, body, init)
    stacks = len(body.output) > states + 1
    if steps is not None and _goes_on(node, body) and (stacks or not any(loose)):
        (count,) = steps.flat
        return _counted(node, body, init, as_dim(dim_max(count, 0)))
    if stacks and node.has(0) and _goes_on(node, body, whatever_begins=True):
        said = node.run_time(0).most(0)
        if node.has(1):
            said = Ints(node, node.op("reshape", node.tensor(1), ())).choose(said, 0)
        (length,) = bound(node, said, "steps")
        return _counted(node, body, init, length)
    if stacks:
        raise node.gap("outputs of each step of a number known only at run time")
    return _checked(node, body, init, loose)


def _changing(node: Node, body: onnx.GraphProto, init: Sequence[Expr]) -> list[Axes]:
    """Which axes of each state a step may change, found by converting the body and looking.

    An axis of an unknown size may make others unknown, so this is repeated. If the body can't be
    converted with such axes, none is: what a step gives is then asserted to have the old shape.
    """
    found: list[Axes] = [frozenset() for _ in init]
    while True:
        inner = node.graph.trial()
        inner.values[body.input[0].name] = inner.builder.new_var("nth", TensorType((), INT64))
        inner.values[body.input[1].name] = inner.builder.new_var("going", TensorType((), BOOL))
        within = Node(node.proto, inner, node.version)
        _, before = _states(node, inner, body, init, found)
        try:
            after = [within.shape_of(v) for v in _outputs(within, body)[1 : 1 + len(init)]]
        except (Gap, UnityError):
            return [frozenset() for _ in init]
        wider: list[Axes] = []
        for old, new, axes in zip(before, after, found, strict=True):
            shape = within.shape_of(old)
            if len(shape) != len(new):
                return [frozenset() for _ in init]
            wider.append(axes | {k for k, d in enumerate(shape) if not equal(d, new[k])})
        if wider == found:
            return found
        found = wider


def _goes_on(node: Node, body: onnx.GraphProto, *, whatever_begins: bool = False) -> bool:
    """Whether the condition is true before the loop and after each step.

    With `whatever_begins` whether it is so after each step if it is before the loop.
    """
    if node.has(1) and not whatever_begins:
        start = node.constant(1)
        if start is None or not start.all():
            return False
    made = {n.output[0]: n for n in body.node if n.output}
    given = {t.name: t for t in body.initializer}
    name = body.output[0].name
    for _ in body.node:  # more of them in a row would be a cycle
        if name in made and made[name].op_type == "Identity" and made[name].input:
            name = made[name].input[0]
    if name == body.input[1].name:
        return True
    found = given.get(name)
    if name in made and made[name].op_type == "Constant":
        found = next((a.t for a in made[name].attribute if a.name == "value"), None)
    return found is not None and bool(array_of(found, node.graph.model.storage).all())


def _counted(node: Node, body: onnx.GraphProto, init: Sequence[Expr], steps: Dim) -> list[Value]:
    """A scan over the steps' numbers."""
    inner = node.graph.inner()
    nth = inner.builder.new_var(body.input[0].name, TensorType((), INT64))
    state, _ = _states(node, inner, body, init, [frozenset() for _ in init])
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = _true()
    after = _step(node, inner, body, state, [frozenset() for _ in init])[1:]
    numbers = node.op("arange", 0, steps, 1, dtype=INT64)
    whole = inner.builder.body(Tuple(tuple(after)))
    scan = Scan(tuple(state), tuple(init), (nth,), (numbers,), whole)
    value = node.graph.builder.emit(scan, node.label, node.span)
    return [node.field(value, k) for k in range(len(node.proto.output))]


def _checked(
    node: Node, body: onnx.GraphProto, init: Sequence[Expr], loose: Sequence[Axes]
) -> list[Value]:
    """A while loop, which counts its steps and carries its condition."""
    limit = node.op("reshape", node.tensor(0), ()) if node.has(0) else None
    start = node.op("reshape", node.tensor(1), ()) if node.has(1) else _true()
    if limit is None and _goes_on(node, body):
        raise UnityError("never ends: it has no number of steps, and its condition stays true")
    inner = node.graph.inner()
    nth = inner.builder.new_var(body.input[0].name, TensorType((), INT64))
    going = inner.builder.new_var(body.input[1].name, TensorType((), BOOL))
    state, entered = _states(node, inner, body, init, loose)
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = going
    condition = _condition(node, nth, going, limit)
    within = Node(node.proto, inner, node.version)
    on, *after = _step(node, inner, body, entered, loose)
    following = within.op("add", nth, 1)
    whole = inner.builder.body(Tuple((following, within.op("reshape", on, ()), *after)))
    begin = (Constant(np.asarray(0, np.int64)), start, *init)
    loop = While((nth, going, *state), begin, condition, whole)
    value = node.graph.builder.emit(loop, node.label, node.span)
    results: list[Value] = []
    for k, (x, axes) in enumerate(zip(init, loose, strict=True)):
        if k < len(node.proto.output):
            results.append(_shaped(node, node.field(value, 2 + k), x, axes))
    return results


def _condition(node: Node, nth: Var, going: Var, limit: Expr | None) -> Body:
    inner = node.graph.inner()
    if limit is None:
        return inner.builder.body(going)
    within = Node(node.proto, inner, node.version)
    return inner.builder.body(within.op("logical_and", going, within.op("less", nth, limit)))


def _states(
    node: Node,
    inner: GraphImporter,
    body: onnx.GraphProto,
    init: Sequence[Expr],
    loose: Sequence[Axes],
) -> tuple[list[Var], list[Expr]]:
    """Variables for the states, and what the body has under its names for them.

    The two differ for states with changing axes: those have a symbol of the step in the body.
    """
    within = Node(node.proto, inner, node.version)
    found: list[Var] = []
    entered: list[Expr] = []
    for given, x, axes in zip(body.input[2:], init, loose, strict=True):
        of = node.type_of(x)
        kind = TensorType(len(node.shape_of(x)), of.dtype) if axes else of
        var = inner.builder.new_var(given.name, kind)
        inner.values[given.name] = value = _shaped(within, var, x, axes)
        found.append(var)
        entered.append(value)
    return found, entered


def _shaped(node: Node, value: Expr, init: Expr, axes: Axes) -> Expr:
    """A state of some step: shaped as it began but for its changing axes."""
    if not axes:
        return value
    fresh = node.graph.builder.fresh
    shape = enumerate(node.shape_of(init))
    return node.assert_shape(
        value, tuple(fresh(f"{node.label}_size") if k in axes else d for k, d in shape)
    )


def _outputs(within: Node, body: onnx.GraphProto) -> list[Expr]:
    values = within.graph.inline(body)
    found: list[Expr] = []
    found += [within.materialize(v) if isinstance(v, Sizes) else v for v in values]
    return found


def _step(
    node: Node,
    inner: GraphImporter,
    body: onnx.GraphProto,
    state: Sequence[Expr],
    loose: Sequence[Axes],
) -> list[Expr]:
    """The body's outputs: its condition, the next states, what it gives besides."""
    within = Node(node.proto, inner, node.version)
    found = _outputs(within, body)
    for k, (old, axes) in enumerate(zip(state, loose, strict=True)):
        new = found[1 + k]
        before, after = within.shape_of(old), within.shape_of(new)
        pairs = list(zip(before, after, strict=False))
        changes = any(i not in axes and _differ(a, b) for i, (a, b) in enumerate(pairs))
        if len(before) != len(after) or changes:
            raise node.gap(
                f"the state {body.input[2 + k].name!r} whose shape changes from "
                f"{shape_text(before)} to {shape_text(after)}"
            )
        target = tuple(b if i in axes else a for i, (a, b) in enumerate(pairs))
        found[1 + k] = kept(within, new, TensorType(target, within.dtype_of(old)))
    return found


def _differ(a: Dim, b: Dim) -> bool:
    """Whether two extents are never the same."""
    low, high = bounds(as_dim(a - b))
    return (low is not None and low > 0) or (high is not None and high < 0)


def _true() -> Constant:
    return Constant(np.asarray(True))


CONVERTERS: dict[str, Converter] = {"Loop": _loop}
