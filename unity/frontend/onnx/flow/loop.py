"""Loop: a graph run some number of times, carrying states.

Where the number of steps is a size and no step can end the loop early, it is the IR's scan over the
numbers of the steps, and what each step gives is stacked. Else it is a while loop, whose states may
grow (`states`). What its steps give is stacked by scans over runs of them (`runs`), or put into a
sequence that grows where steps change the shape of that or of a state. A few steps that carry
sequences of known length are written out, so that nothing is left of the sequences; where steps
only append to one that begins empty, what they append is stacked (`appended`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from unity.errors import UnityError
from unity.frontend.run_time.ragged import Ragged, inserted, of_stack, stacked
from unity.frontend.run_time.slicing import scalar
from unity.frontend.run_time.vectors import Ints, bound
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, as_dim, dim_max
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Constant, Expr, Scan, Tuple, While
from unity.ir.types import TensorType

from ..node import Converter, Node, Outcome, Value
from ..reading.tensors import array_of, check_declared
from ..sequences.held import Held, Listed, Maybe
from .appended import appended
from .counting import constant_states, counted_steps, without_states
from .runs import condition_of, in_runs
from .states import State, enter, enter_step, even_types, stack_of, states_of, stepped
from .unread import begun

MOST_WRITTEN_OUT = 64
"""Steps of a loop over sequences that are written out."""


def _loop(node: Node) -> Sequence[Outcome]:
    body = node.graph_of("body")
    count = max(0, node.count - 2)
    if len(body.input) != count + 2 or len(body.output) < count + 1:
        raise UnityError(f"{count} states do not fit the body")
    if len(node.proto.output) > len(body.output) - 1:
        raise UnityError(f"has {len(node.proto.output)} outputs, the body {len(body.output)}")
    init = [node.outcome(2 + k) for k in range(count)]
    _check_inputs(node, body, init)
    constant = constant_states(body, count)
    within = node.graph.scope({body.input[2 + k].name: init[k] for k in constant})
    left = [x for k, x in enumerate(init) if k not in constant]
    inside = Node(node.proto, within, node.version)
    wanted = sum(k not in constant for k in range(len(node.proto.output)))
    found = _looped(inside, without_states(body, constant), left, wanted)
    for k in constant:
        found.insert(k, init[k])
    return found[: len(node.proto.output)]


def _looped(
    node: Node, body: onnx.GraphProto, init: Sequence[Outcome], wanted: int
) -> list[Outcome]:
    """What a loop gives: as much of it as is wanted, or more."""
    count = len(init)
    steps = node.sizes(0) if node.has(0) else None
    goes_on = _goes_on(node, body)
    number = None if goes_on else counted_steps(node, body, init)
    if number is not None:
        steps, goes_on = sizes_of(number), True
    if steps is not None and goes_on:
        found = _collected(node, body, init, as_dim(dim_max(steps.flat[0], 0)))
        if found is not None:
            return found
    if steps is not None and goes_on and any(isinstance(x, Listed | Maybe) for x in init):
        (number,) = steps.flat
        if isinstance(number, int) and number <= MOST_WRITTEN_OUT:
            return _written_out(node, body, init, number)
    init = begun(node, body, [x if isinstance(x, Held) else node.plain(x) for x in init])
    states = states_of(node, body, init)
    stacks = len(body.output) > count + 1
    held = any(s.form is not None for s in states)
    firm = not any(s.is_loose for s in states)
    if not held and steps is not None and goes_on and (stacks or firm):
        (number,) = steps.flat
        return [*_counted(node, body, init, as_dim(dim_max(number, 0)))]
    if not held and stacks and node.has(0) and _goes_on(node, body, whatever_begins=True):
        said = node.run_time(0).most(0)
        if node.has(1):
            said = Ints(node, scalar(node, node.tensor(1))).choose(said, 0)
        (length,) = bound(node, said, "steps")
        return [*_counted(node, body, init, length)]
    return _checked(node, body, states, wanted)


def _check_inputs(node: Node, body: onnx.GraphProto, init: Sequence[Outcome]) -> None:
    tensors = [None if isinstance(x, Held) else node.dtype_of(node.plain(x)) for x in init]
    for info, kind in zip(body.input, [INT64, BOOL, *tensors], strict=True):
        if kind is not None:
            check_declared(info, kind, f"the body's input {info.name!r}")
    if node.has(1):
        node.require_bool(1)


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
        if name in made and _keeps_truth(made[name]):
            name = made[name].input[0]
    if name == body.input[1].name:
        return True
    found = given.get(name)
    if name in made and made[name].op_type == "Constant":
        found = next((a.t for a in made[name].attribute if a.name == "value"), None)
    if found is not None:
        return bool(array_of(found, node.graph.model.storage).all())
    if any(name in n.output for n in body.node) or name in [i.name for i in body.input]:
        return False
    around = node.graph.outcome(name)
    return isinstance(around, Constant) and bool(around.data.all())


def _keeps_truth(made: onnx.NodeProto) -> bool:
    """Whether a node gives what is true where it is given that; torch casts all conditions."""
    casts = made.op_type == "Cast" and any(a.i == onnx.TensorProto.BOOL for a in made.attribute)
    return bool(made.input) and (made.op_type == "Identity" or casts)


def _written_out(
    node: Node, body: onnx.GraphProto, init: Sequence[Outcome], steps: int
) -> list[Outcome]:
    """The steps one after another, all in this graph."""
    states = list(init)
    names = [info.name for info in body.input]
    given: list[list[Expr]] = [[] for _ in body.output[1 + len(init) :]]
    if not steps and given:
        raise node.gap("outputs of each step where there is none")
    for nth in range(steps):
        values = (Constant(np.asarray(nth, np.int64)), _true(), *states)
        after = node.graph.inline(body, dict(zip(names, values, strict=True)))
        states = after[1 : 1 + len(init)]
        for of, value in zip(given, after[1 + len(init) :], strict=True):
            of.append(node.op("expand_dims", node.plain(value), axis=0))
    stacks = [node.op("concat", Tuple(tuple(of)), axis=0) for of in given]
    return [*states, *stacks]


def _counted(node: Node, body: onnx.GraphProto, init: Sequence[Outcome], steps: Dim) -> list[Value]:
    """A scan over the steps' numbers."""
    inner = node.graph.inner()
    within = Node(node.proto, inner, node.version)
    nth = inner.builder.new_var(body.input[0].name, TensorType((), INT64))
    states = [State(info.name, x) for info, x in zip(body.input[2:], init, strict=True)]
    variables, entered = enter(inner, within, states)
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = _true()
    after = stepped(within, body, states, entered)[1:]
    numbers = node.op("arange", 0, steps, 1, dtype=INT64)
    whole = inner.builder.body(Tuple(tuple(after)))
    begin = tuple(node.plain(x) for x in init)
    scan = Scan(tuple(variables), begin, (nth,), (numbers,), whole)
    value = node.graph.builder.emit(scan, node.label, node.span)
    return [node.field(value, k) for k in range(len(body.output) - 1)]


def _collected(
    node: Node, body: onnx.GraphProto, init: Sequence[Outcome], steps: Dim
) -> list[Outcome] | None:
    """A scan whose steps append to sequences; None where they do not, or shapes differ by step."""
    plain = appended(body, [isinstance(x, Listed) and not x.items for x in init])
    if plain is None:
        return None
    left = [x for k, x in enumerate(init) if k not in plain.places]
    if any(isinstance(x, Held) for x in left):
        return None
    left = [node.plain(x) for x in left]
    states = states_of(node, plain.body, left)
    if any(s.is_loose for s in states) or even_types(node, plain.body, states) is None:
        return None
    found: list[Outcome] = [*_counted(node, plain.body, left, steps)]
    stacks = found[len(found) - len(plain.places) :]
    found = found[: len(found) - len(plain.places)]
    for place, stack in zip(plain.places, stacks, strict=True):
        found.insert(place, of_stack(node, node.plain(stack)))
    return found


def _checked(
    node: Node, body: onnx.GraphProto, states: Sequence[State], wanted: int
) -> list[Outcome]:
    """A while loop, which counts its steps and carries its condition."""
    limit = scalar(node, node.tensor(0)) if node.has(0) else None
    start = scalar(node, node.tensor(1)) if node.has(1) else _true()
    if limit is None and _goes_on(node, body):
        raise UnityError("never ends: it has no number of steps, and its condition stays true")
    count = len(body.input) - 2
    if wanted > count and not any(s.is_loose for s in states):
        given = even_types(node, body, states)
        if given is not None:
            return [*in_runs(node, body, states, start, limit, given)]
    states = [*states, *_stacks(node, body, states)]
    inner = node.graph.inner()
    nth, going = enter_step(inner, body)
    within = Node(node.proto, inner, node.version)
    variables, entered = enter(inner, within, states)
    condition = condition_of(node, nth, going, limit)
    on, *after = stepped(within, body, states[:count], entered[:count])
    for k in range(count, len(states)):
        old = entered[k]
        assert isinstance(old, Ragged)
        after[k] = states[k].after(within, old, inserted(within, old, after[k], None))
    following = within.op("add", nth, 1)
    whole = inner.builder.body(Tuple((following, scalar(within, on), *after)))
    begin = (Constant(np.asarray(0, np.int64)), start, *(s.packed(node) for s in states))
    loop = While((nth, going, *variables), begin, condition, whole)
    value = node.graph.builder.emit(loop, node.label, node.span)
    results: list[Outcome] = []
    for k, state in enumerate(states[:wanted]):
        found = state.unpacked(node, node.field(value, 2 + k))
        if k >= count:
            assert isinstance(found, Ragged)
            found = stacked(node, found, 0)
        results.append(found)
    return results


def _stacks(node: Node, body: onnx.GraphProto, states: Sequence[State]) -> list[State]:
    """States that collect what the steps give besides, found by converting the body."""
    if len(body.output) == 1 + len(states):
        return []
    inner = node.graph.trial()
    enter_step(inner, body)
    within = Node(node.proto, inner, node.version)
    enter(inner, within, states)
    return [stack_of(within, within.plain(v)) for v in inner.inline(body)[1 + len(states) :]]


def _true() -> Constant:
    return Constant(np.asarray(True))


CONVERTERS: dict[str, Converter] = {"Loop": _loop}
