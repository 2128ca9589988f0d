"""Random control flow: branches, loops, closures and calls of functions."""

from __future__ import annotations

import numpy as np

from unity.ir.dtype import FLOAT32, INT64
from unity.ir.graph import (
    Body,
    Call,
    Constant,
    Expr,
    FunctionRef,
    If,
    Scan,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.types import TensorType, Type
from unity.op.call import call_op

from .rules import PLAIN
from .sampled import sampled
from .state import Rule, State, dtype_of, pick, shape_of


def grow(state: State, size: int, control_flow: bool) -> None:
    """Add bindings; a draw that fits nothing at hand adds none."""
    rules: list[Rule] = [*PLAIN, sampled, sampled]
    if control_flow and state.depth < 2:
        rules += _CONTROL
    for _ in range(size):
        made = state.rng.choice(rules)(state)
        state.values += [] if made is None else [made]


def _branch(state: State, kind: Type) -> Body:
    """A body that gives a value of a type: something computed, else something at hand."""
    inner = state.child()
    grow(inner, state.rng.randint(0, 3), True)
    fitting = [v for v in inner.values if v.type == kind]
    fitting = [v for v in fitting if v not in state.values] or fitting
    return inner.builder.body(state.rng.choice(fitting))


def _if(state: State) -> Var | None:
    like = pick(state)
    x = pick(state, FLOAT32)
    if like is None or x is None:
        return None
    total = state.builder.op("sum", x)
    condition = state.builder.op("greater", total, 0.5)
    branches = (_branch(state, like.type), _branch(state, like.type))
    return state.builder.emit(If(condition, *branches), "chosen")


def _while(state: State) -> Var | None:
    """A few turns: a counter and one value that keeps its type."""
    x = pick(state, FLOAT32)
    if x is None:
        return None
    counter = state.builder.new_var("i", TensorType((), INT64))
    value = state.builder.new_var("value", x.type)
    test, step = state.child(), state.child()
    limit = Constant(np.asarray(state.rng.randint(0, 3), np.int64))
    condition = test.builder.body(test.builder.op("less", counter, limit))
    step.values = [*state.values, value]
    grow(step, 2, False)
    following = step.builder.op("add", counter, 1)
    kept = step.rng.choice([v for v in step.values if v.type == x.type])
    body = step.builder.body(Tuple((following, kept)))
    start = Constant(np.asarray(0, np.int64))
    loop = state.builder.emit(While((counter, value), (start, x), condition, body), "loop")
    return state.builder.emit(TupleGet(loop, 1))


def _scan(state: State) -> Var | None:
    """Steps over the leading axis: states that keep their types, and stacked outputs."""
    x = pick(state, FLOAT32, range(1, 4))
    if x is None:
        return None
    slice_type = TensorType(shape_of(x)[1:], FLOAT32)
    init: list[Expr] = [state.builder.op("zeros", shape_of(x)[1:], dtype=FLOAT32)]
    other = pick(state, FLOAT32)
    init += [] if other is None else [other]
    types = [slice_type, *([] if other is None else [other.type])]
    carried = tuple(state.builder.new_var("carried", t) for t in types)
    element = state.builder.new_var("element", slice_type)
    step = state.child()
    added = step.builder.op("add", carried[0], element)
    step.values = [*state.values, *carried, element, added]
    grow(step, 2, False)

    def choice(t: Type) -> Expr:
        return state.rng.choice([v for v in step.values if v.type == t])

    results = [choice(v.type) for v in carried]
    results += [choice(slice_type) for _ in range(state.rng.randint(0, 2))]
    body = step.builder.body(Tuple(tuple(results)))
    made = state.builder.emit(Scan(carried, tuple(init), (element,), (x,), body), "scanned")
    return state.builder.emit(TupleGet(made, state.rng.randrange(len(results))))


def _closure(state: State) -> Var | None:
    """A nested function that sees the values around it, and a call of it."""
    x = pick(state, FLOAT32)
    if x is None:
        return None
    inner = state.child()
    param = inner.builder.param("arg", x.type)
    inner.values.append(param)
    grow(inner, 2, False)
    function = inner.builder.finish(inner.values[-1])
    closure = state.builder.emit(function, "closure")
    return state.builder.emit(Call(closure, (x,)))


def _call(state: State) -> Var | None:
    """A call of another function of the module, with arguments made to fit."""
    if not state.helpers:
        return None
    name = state.rng.choice(list(state.helpers))
    args: list[Expr] = []
    for param in state.helpers[name].params:
        fitting = [v for v in state.tensors() if v.type == param.type]
        made = call_op("ones", shape_of(param), dtype=dtype_of(param))
        args.append(state.rng.choice(fitting) if fitting else state.builder.emit(made))
    return state.builder.emit(Call(FunctionRef(name), tuple(args)))


_CONTROL: tuple[Rule, ...] = (_if, _if, _while, _scan, _closure, _call)
