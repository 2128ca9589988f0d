"""Putting choices into a function: regions become functions of engines, matches library calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from unity.errors import Span
from unity.ir.attrs import Attrs
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    CallEngine,
    CallLibrary,
    Expr,
    Function,
    FunctionRef,
    Tuple,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.symbols.mentioned import expr_mentions
from unity.ir.types import TensorType, TupleType
from unity.ir.visit import type_symbols
from unity.ir.visiting.visit_graph import free_vars, substitute_vars

from ...pattern import Graph
from ..names import Names
from ..symbols import is_concrete, plain_symbols
from .call_site import Candidate


def inputs_of(members: Sequence[Var], graph: Graph) -> list[Var]:
    """What a region reads that it does not compute, in order of first use."""
    inside = set(members)
    found: dict[Var, None] = {}
    for var in members:
        for other in _in_order(graph.values[var]):
            if other not in inside:
                found.setdefault(other)
    return list(found)


def outputs_of(members: Sequence[Var], graph: Graph) -> list[Var]:
    """What a region computes that is read elsewhere, in order."""
    inside = set(members)
    return [
        v for v in members if v in graph.results or any(u not in inside for u in graph.using(v))
    ]


def refusal(members: Sequence[Var], graph: Graph) -> str | None:
    """Why a region can't be a function of its own; None if it can."""
    inputs, outputs = inputs_of(members, graph), outputs_of(members, graph)
    for var in (*inputs, *outputs):
        if not isinstance(var.type, TensorType) or not is_concrete(var.type):
            return f"{var.name} is {var.type}, not a tensor of known dtype and rank"
    known = plain_symbols([v.type for v in inputs])
    mentioned = {
        s for v in members for s in (*type_symbols(v.type), *expr_mentions(graph.values[v]))
    }
    missing = sorted(s.name for s in mentioned - known)
    if missing:
        return f"no input of the region tells {', '.join(missing)}"
    return None


def outlined(members: Sequence[Var], graph: Graph, marks: Attrs) -> Function:
    """The function that computes a region's outputs from its inputs; its variables are new."""
    inputs, outputs = inputs_of(members, graph), outputs_of(members, graph)
    mapping: dict[Var, Expr] = {}
    params: list[Var] = []
    for var in inputs:
        params.append(Var(var.name, var.type, var.span))
        mapping[var] = params[-1]
    bindings: list[Binding] = []
    for var in members:
        new = Var(var.name, var.type, var.span)
        bindings.append(VarBinding(new, substitute_vars(graph.values[var], mapping)))
        mapping[var] = new
    blocks = [BindingBlock(tuple(bindings), dataflow=True)]
    results = tuple(mapping[v] for v in outputs)
    types = tuple(v.type for v in outputs)
    result, given = results[0], types[0]
    if len(results) > 1:
        given = TupleType(types)
        result = Var("results", given)
        blocks.append(BindingBlock((VarBinding(result, Tuple(results)),)))
    return Function(tuple(params), Body(tuple(blocks), result), given, attrs=marks)


def with_regions(
    function: Function,
    graph: Graph,
    groups: Sequence[tuple[str, Sequence[Var]]],
    names: Names,
    needs: Mapping[Var, Sequence[Var]],
) -> tuple[Function, dict[str, Function], dict[Var, str]]:
    """A function with regions replaced by calls of engines.

    Args:
        function: The function.
        graph: Its index.
        groups: For each region the engine and the variables, operands first.
        names: Gives the new functions' names.
        needs: What each binding stands behind.

    Returns:
        The function, the functions of engines by name, and for each variable the one it is in.
    """
    made: dict[str, Function] = {}
    inside: dict[Var, str] = {}
    calls: dict[str, list[VarBinding]] = {}
    for engine, members in groups:
        name = names.fresh(f"{engine}_{members[-1].name}")
        made[name] = outlined(members, graph, Attrs(engine=engine, private=True))
        inside.update(dict.fromkeys(members, name))
        calls[name] = _call(engine, name, members, graph)
    blocks = tuple(
        replace(b, bindings=tuple(_reordered(b.bindings, inside, calls, needs)))
        if b.dataflow
        else b
        for b in function.body.blocks
    )
    return replace(function, body=replace(function.body, blocks=blocks)), made, inside


def _call(engine: str, name: str, members: Sequence[Var], graph: Graph) -> list[VarBinding]:
    inputs, outputs = inputs_of(members, graph), outputs_of(members, graph)
    span: Span | None = members[-1].span
    types = tuple(v.type for v in outputs)
    call = CallEngine(engine, FunctionRef(name), tuple(inputs), types, span=span)
    if len(outputs) == 1:
        return [VarBinding(outputs[0], call, span)]
    whole = Var(name, TupleType(types), span)
    parts = [VarBinding(v, TupleGet(whole, i), v.span) for i, v in enumerate(outputs)]
    return [VarBinding(whole, call, span), *parts]


def _reordered(
    bindings: Sequence[Binding],
    inside: Mapping[Var, str],
    calls: Mapping[str, list[VarBinding]],
    needs: Mapping[Var, Sequence[Var]],
) -> Iterator[Binding]:
    """A block's bindings, each region as one, all behind what they need."""
    units: dict[str, list[Binding]] = {}
    members: dict[str, list[Var]] = {}
    for binding in bindings:
        name = inside.get(binding.var)
        if name is not None:
            units[name] = [*calls[name]]
        else:
            name = f"{len(units)}:"
            units[name] = [binding]
        members.setdefault(name, []).append(binding.var)
    unit_of = {v: key for key, unit in members.items() for v in unit}
    needed = {
        key: {unit_of[n] for v in unit for n in needs[v] if n in unit_of} - {key}
        for key, unit in members.items()
    }
    for key in _ordered(needed):
        yield from units[key]


def _ordered(needed: Mapping[str, AbstractSet[str]]) -> Iterator[str]:
    """The keys, each behind those it needs; iterative, since chains are long."""
    done: set[str] = set()
    opened: set[str] = set()
    for start in needed:
        stack = [start]
        while stack:
            key = stack[-1]
            missing = sorted(needed[key] - done) if key not in done else []
            if missing:
                assert key not in opened, f"regions need each other: {key}"
                opened.add(key)
                stack += reversed(missing)
                continue
            stack.pop()
            if key not in done:
                done.add(key)
                yield key


def library_call(candidate: Candidate, out: Var) -> CallLibrary:
    """The call that stands for a match."""
    assert candidate.function is not None
    assert candidate.match is not None
    function, match = candidate.function, candidate.match
    args = tuple(match[name] for name in function.inputs)
    types = out.type.fields if isinstance(out.type, TupleType) else (out.type,)
    return CallLibrary(function.name, args, tuple(types), function.attrs(match), out.span)


def _in_order(e: Expr) -> list[Var]:
    found: dict[Var, None] = {}

    def note(x: Expr) -> None:
        match x:
            case Var():
                found.setdefault(x)
            case Tuple(fields):
                for f in fields:
                    note(f)
            case _:
                for v in free_vars(x):
                    found.setdefault(v)

    for child in getattr(e, "args", ()) or (e,):
        note(child)
    return list(found)
