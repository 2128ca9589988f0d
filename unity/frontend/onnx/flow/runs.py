"""A Loop that may end early, whose steps give tensors: scans over runs of its steps, in a while.

What the steps of a run give is stacked as in any scan, and put behind what earlier ones gave. A run
is as long as all before it together, or as long as the bound on the steps allows; so each tensor is
copied a few times, however many steps there are, and memory is that of the steps that were taken,
whatever the bound. Once a step has ended the loop, what is left of its run changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx

from unity.frontend.run_time.slicing import run_of, scalar
from unity.frontend.run_time.vectors import Ints, bound
from unity.ir.dims import Dim
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Body, Constant, Expr, If, Scan, Tuple, Var, While
from unity.ir.types import Shape, TensorType

from ..node import Node
from .scan import kept
from .states import State, stepped

SHORTEST = 4
"""Steps of the first run: what ends at once has room for so many."""


def in_runs(
    node: Node,
    body: onnx.GraphProto,
    states: Sequence[State],
    start: Expr,
    limit: Expr | None,
    given: Sequence[TensorType],
) -> list[Expr]:
    """The states after the last step, and what the steps gave, stacked.

    Args:
        node: The loop.
        body: Its body.
        states: Tensors whose shapes no step changes.
        start: Whether there is a first step.
        limit: How many steps there are at most; None for no bound.
        given: Of what types the tensors are that a step gives.
    """
    inner = node.graph.inner()
    within = Node(node.proto, inner, node.version)
    shapes = [_shape(t) for t in given]
    new_var = inner.builder.new_var
    nth, going = new_var("taken", TensorType((), INT64)), new_var("going", TensorType((), BOOL))
    variables = [new_var(s.name or "state", s.type(within)) for s in states]
    stacks = [new_var("stacked", TensorType(len(t) + 1, g.dtype))
              for t, g in zip(shapes, given, strict=True)]  # fmt: skip
    taken = Ints(within, nth)
    (before,) = bound(within, taken, "taken")
    begun = [within.assert_shape(s, (before, *t)) for s, t in zip(stacks, shapes, strict=True)]
    most = taken.most(SHORTEST)
    if limit is not None:
        most = most.least(Ints(within, limit) - taken)
    (length,) = bound(within, most, "run")
    after, on, *found = _run(within, body, states, (nth, going, *variables), given, length)
    (new,) = bound(within, Ints(within, after) - taken, "new")
    for k, whole in enumerate(begun, len(states)):
        part = run_of(within, found[k], (0,), (0,), (new,))
        found[k] = within.op("concat", Tuple((whole, part)), axis=0)
    carried = inner.builder.body(Tuple((after, on, *found)))
    none = [node.op("zeros", (0, *t), dtype=g.dtype) for t, g in zip(shapes, given, strict=True)]
    init = (_number(0), start, *(s.packed(node) for s in states), *none)
    condition = condition_of(node, nth, going, limit)
    loop = While((nth, going, *variables, *stacks), init, condition, carried)
    value = node.graph.builder.emit(loop, node.label, node.span)
    last = [node.field(value, k) for k in range(len(init))]
    (total,) = bound(node, Ints(node, last[0]), "steps")
    results = last[2 : 2 + len(states)]
    for stack, shape in zip(last[2 + len(states) :], shapes, strict=True):
        results.append(node.assert_shape(stack, (total, *shape)))
    return results


def _run(
    node: Node,
    body: onnx.GraphProto,
    states: Sequence[State],
    begin: Sequence[Expr],
    given: Sequence[TensorType],
    length: Dim,
) -> list[Expr]:
    """A scan over so many steps: how many were taken, whether to go on, the states, the stacks."""
    inner = node.graph.inner()
    new_var = inner.builder.new_var
    number = new_var("number", TensorType((), INT64))
    nth, going = new_var("nth", TensorType((), INT64)), new_var("on", TensorType((), BOOL))
    variables = [new_var(s.name or "state", s.type(node)) for s in states]
    carried = (nth, going, *variables)
    within = Node(node.proto, inner, node.version)
    step = _taken(within, body, states, carried, given)
    choice = If(going, step, _left_out(within, carried, given))
    value = inner.builder.emit(choice, node.label, node.span)
    fields = [within.field(value, k) for k in range(len(carried) + len(given))]
    whole = inner.builder.body(Tuple(tuple(fields)))
    numbers = node.op("arange", 0, length, 1, dtype=INT64)
    scan = Scan(carried, tuple(begin), (number,), (numbers,), whole)
    found = node.graph.builder.emit(scan, node.label, node.span)
    return [node.field(found, k) for k in range(len(fields))]


def _taken(
    node: Node,
    body: onnx.GraphProto,
    states: Sequence[State],
    carried: Sequence[Var],
    given: Sequence[TensorType],
) -> Body:
    """A step: its number and the states are what is carried."""
    inner = node.graph.inner()
    within = Node(node.proto, inner, node.version)
    nth, _, *values = carried
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = Constant(np.asarray(True))
    for info, value in zip(body.input[2:], values, strict=True):
        if info.name:
            inner.define(info.name, value)
    on, *after = stepped(within, body, states, values)
    after[len(states) :] = map(partial(kept, within), after[len(states) :], given)
    following = within.op("add", nth, 1)
    return inner.builder.body(Tuple((following, scalar(within, on), *after)))


def _left_out(node: Node, carried: Sequence[Var], given: Sequence[TensorType]) -> Body:
    """What is carried as it is, and nothing given."""
    inner = node.graph.inner()
    within = Node(node.proto, inner, node.version)
    nothing = [within.op("zeros", _shape(t), dtype=t.dtype) for t in given]
    return inner.builder.body(Tuple((*carried, *nothing)))


def condition_of(node: Node, nth: Var, going: Var, limit: Expr | None) -> Body:
    """Whether there is a next step."""
    inner = node.graph.inner()
    if limit is None:
        return inner.builder.body(going)
    within = Node(node.proto, inner, node.version)
    return inner.builder.body(within.op("logical_and", going, within.op("less", nth, limit)))


def _shape(of: TensorType) -> Shape:
    assert isinstance(of.shape, tuple)
    return of.shape


def _number(value: int) -> Constant:
    return Constant(np.asarray(value, np.int64))
