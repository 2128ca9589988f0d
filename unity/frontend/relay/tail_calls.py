"""Functions that end in a call of themselves become loops: `with_loops`.

Relay has no loops: its frontends write each as a function that asks a condition and calls itself
with the next values, or gives the last ones. A loop runs on as long as it has to, where calls nest
to a limit. Only that form is taken: one call, the last thing in one branch of the condition that
ends the function, with values of the parameters' own types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.graph import (
    Binding,
    Body,
    Call,
    Expr,
    Function,
    FunctionRef,
    If,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
    While,
)
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visit import bodies_of, graph_children
from unity.ir.visiting.visit_graph import substitute_vars
from unity.op.builder import GraphBuilder
from unity.op.infer import signatures_of
from unity.transform.graph.uses import variables


@dataclass(frozen=True, slots=True)
class _Tail:
    """A function's parts.

    Attributes:
        before: What is computed before the condition is asked.
        condition: That condition.
        goes_on: Whether it holds, or not, where the function calls itself.
        again: The branch that calls, without the call.
        following: What it calls with.
        last: The branch that ends.
    """

    before: Sequence[VarBinding]
    condition: Expr
    goes_on: bool
    again: Sequence[Binding]
    following: Sequence[Expr]
    last: Body


def with_loops(module: IRModule) -> IRModule:
    """The module, its functions of that form as loops.

    >>> from unity.script import parse, print_module
    >>> module = parse('''
    ... @script.function
    ... def count(i: i64[Tensor, ()]) -> i64[Tensor, ()]:
    ...     more = R.less(i, 9)
    ...     if more:
    ...         following = R.add(i, 1)
    ...         result = count(following)
    ...     else:
    ...         result = i
    ...     return result
    ... ''')
    >>> print(print_module(with_loops(module)), end="")
    @script.function
    def count(i: i64[Tensor, ()]) -> i64[Tensor, ()]:
        def lv_test(i_1: i64[Tensor, ()]):
            with R.dataflow():
                more = R.less(i_1, 9)
            return more
        def lv_step(i_1: i64[Tensor, ()]):
            with R.dataflow():
                following = R.add(i_1, 1)
                items = (following,)
            return items
        lv = R.while_loop(lv_test, lv_step, (i,))
        with R.dataflow():
            i_2 = lv[0]
        return i_2
    """
    found = {name: _parts(name, f) for name, f in module.graph_functions().items()}
    loops = {name: _loop(module, name, tail) for name, tail in found.items() if tail is not None}
    return module.with_(loops) if loops else module


def _parts(name: str, f: Function) -> _Tail | None:
    bindings = [b for block in f.body.blocks for b in block.bindings]
    if not bindings or _calls(name, f.body) != 1 or not f.pure:
        return None
    *before, end = bindings
    plain = [b for b in before if isinstance(b, VarBinding) and not list(bodies_of(b.value))]
    if len(plain) < len(before) or not isinstance(end, VarBinding) or f.body.result is not end.var:
        return None
    choice = end.value
    if not isinstance(choice, If):
        return None
    for goes_on, body, last in (
        (True, choice.then, choice.orelse),
        (False, choice.orelse, choice.then),
    ):
        inner = [b for block in body.blocks for b in block.bindings]
        ending = [b for block in last.blocks for b in block.bindings]
        if not all(isinstance(b, VarBinding) for b in (*inner, *ending)):
            continue
        if not inner or inner[-1].var is not body.result:
            continue
        match inner[-1].value:
            case Call(FunctionRef(called), args) if called == name and _fit(args, f.params):
                return _Tail(plain, choice.condition, goes_on, inner[:-1], args, last)
            case _:
                continue
    return None


def _calls(name: str, of: Body | Expr) -> int:
    """How often a function is mentioned."""
    if isinstance(of, Body):
        inner = [b.value for block in of.blocks for b in block.bindings]
        return sum(_calls(name, e) for e in (*inner, of.result))
    here = isinstance(of, FunctionRef) and of.name == name
    return here + sum(_calls(name, x) for x in (*graph_children(of), *bodies_of(of)))


def _fit(args: Sequence[Expr], params: Sequence[Var]) -> bool:
    """Whether each value has exactly the type of its parameter, of known extents."""
    return len(args) == len(params) and all(
        isinstance(p.type, TensorType)
        and isinstance(p.type.shape, tuple)
        and all(isinstance(d, int) for d in p.type.shape)
        and atom_type(a) == p.type
        for a, p in zip(args, params, strict=True)
    )


def _loop(module: IRModule, name: str, tail: _Tail) -> Function:
    f = module.graph_functions()[name]
    builder = GraphBuilder(signatures_of(module))
    params = [builder.param(p.name, p.type, p.span) for p in f.params]
    states = [builder.new_var(p.name, p.type, p.span) for p in f.params]

    asked, mapping = builder.child(), dict[Var, Expr](zip(f.params, states, strict=True))
    _again(asked, tail.before, mapping)
    going = substitute_vars(tail.condition, mapping)
    condition = asked.body(going if tail.goes_on else asked.op("logical_not", going))

    step, mapping = builder.child(), dict[Var, Expr](zip(f.params, states, strict=True))
    _again(step, (*_needed(tail.before, tail.again, tail.following), *tail.again), mapping)
    following = tuple(substitute_vars(e, mapping) for e in tail.following)
    loop = builder.emit(While(tuple(states), tuple(params), condition, step.body(Tuple(following))))

    ends = [builder.emit(TupleGet(loop, i), p.name) for i, p in enumerate(f.params)]
    mapping = dict[Var, Expr](zip(f.params, ends, strict=True))
    last = [b for block in tail.last.blocks for b in block.bindings]
    _again(builder, (*_needed(tail.before, last, (tail.last.result,)), *last), mapping)
    result = substitute_vars(tail.last.result, mapping)
    return builder.finish(result, result_type=f.result, attrs=f.attrs, span=f.span)


def _again(builder: GraphBuilder, bindings: Sequence[Binding], mapping: dict[Var, Expr]) -> None:
    """Bind once more, with other values for some variables."""
    for b in bindings:
        value = substitute_vars(b.value, mapping)
        assert isinstance(b, VarBinding)
        mapping[b.var] = builder.emit(value, b.var.name, b.span)


def _needed(
    before: Sequence[Binding], behind: Sequence[Binding], results: Sequence[Expr]
) -> list[Binding]:
    """Those of some bindings that others and what they give read."""
    read = {v for e in (*(b.value for b in behind), *results) for v in variables(e)}
    found: list[Binding] = []
    for b in reversed(before):
        if b.var in read:
            read |= set(variables(b.value))
            found.append(b)
    return found[::-1]
