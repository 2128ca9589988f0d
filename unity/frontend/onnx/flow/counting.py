"""While loops that count, as Keras's recurrent layers are exported: how many steps they take.

A state grows by one in each step, and the condition is that it is below a size. A state that steps
pass on as it is (weights) is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from unity.frontend.sizes import Sizes
from unity.ir.dims import Dim, as_dim, dim_max, dim_min, equal
from unity.ir.graph import Constant

from ..node import Node, Outcome
from ..reading.tensors import array_of


def constant_states(body: onnx.GraphProto, count: int) -> list[int]:
    """The states that a loop's body gives as it got them."""
    made = {n.output[0]: n for n in body.node if n.output}
    return [
        k
        for k in range(count)
        if _source(made, body.output[1 + k].name, ("Identity",)) == body.input[2 + k].name
    ]


def without_states(body: onnx.GraphProto, gone: Sequence[int]) -> onnx.GraphProto:
    """The body without some states."""
    left = onnx.GraphProto()
    left.CopyFrom(body)
    for k in sorted(gone, reverse=True):
        del left.input[2 + k], left.output[1 + k]
    return left


def counted_steps(node: Node, body: onnx.GraphProto, init: Sequence[Outcome]) -> Dim | None:
    """The number of steps of a loop that counts; None if it does not.

    It begins either way or by the same comparison.
    """
    made = {n.output[0]: n for n in body.node if n.output}
    most = node.sizes(0) if node.has(0) else None
    if node.has(0) and most is None:
        return None
    test = made.get(_source(made, body.output[0].name, ("Identity", "Cast")))
    if test is None or test.op_type != "Less":
        return None
    counter, bound = (_source(made, name, ("Identity", "Cast")) for name in test.input)
    limit = _size(node, body, bound)
    state = _counter(node, body, made, counter)
    if limit is None or state is None:
        return None
    first = _number(init[state])
    if first is None:
        return None
    least: Dim = 0
    if not node.has(1) or node.constant(1) is not None:
        if node.has(1) and not np.asarray(node.constant(1)).all():
            return None
        least = 1  # the first step asks for nothing
    else:
        known = node.graph.compared.get(node.tensor(1))
        if known is None or not all(map(equal, known, (first, limit))):
            return None
    steps = dim_max(as_dim(limit - first), least)
    return steps if most is None else dim_min(steps, dim_max(most.flat[0], 0))


def _source(made: dict[str, onnx.NodeProto], name: str, through: Sequence[str]) -> str:
    """What a name is a copy of."""
    for _ in range(len(made)):  # more of them in a row would be a cycle
        if name not in made or made[name].op_type not in through:
            break
        name = made[name].input[0]
    return name


def _counter(
    node: Node, body: onnx.GraphProto, made: dict[str, onnx.NodeProto], name: str
) -> int | None:
    """The state that a name is the next value of, where that is one more."""
    add = made.get(name)
    if add is None or add.op_type != "Add":
        return None
    for k, (before, after) in enumerate(_states(body)):
        others = [x for x in add.input if x != before]
        is_next = _source(made, after, ("Identity",)) == name
        if is_next and len(others) == 1 and _one(node, body, others[0]):
            return k
    return None


def _states(body: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    for before, after in zip(body.input[2:], body.output[1:], strict=False):
        yield before.name, after.name


def _one(node: Node, body: onnx.GraphProto, name: str) -> bool:
    given = {t.name: t for t in body.initializer}
    for n in body.node:
        if n.op_type == "Constant" and n.output[0] == name:
            given.update((name, a.t) for a in n.attribute if a.name == "value")
    if name in given:
        data = array_of(given[name], node.graph.model.storage)
        return data.size == 1 and bool((data == 1).all())
    found = _size(node, body, name)
    return isinstance(found, int) and found == 1


def _size(node: Node, body: onnx.GraphProto, name: str) -> Dim | None:
    """The one size that a name stands for, which is made around the body."""
    inside = {o for n in body.node for o in n.output} | {i.name for i in body.input}
    inside |= {t.name for t in body.initializer}
    return None if name in inside else _number(node.graph.outcome(name))


def _number(value: Outcome) -> Dim | None:
    match value:
        case Sizes() if len(value.flat) == 1:
            return value.flat[0]
        case Constant(data) if data.size == 1 and data.reshape(()) == np.rint(data.reshape(())):
            return int(data.reshape(()))
        case _:
            return None
