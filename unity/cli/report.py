"""`unity inspect --report`: what a model is and asks for, before anything of it is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unity.compilation import main_name
from unity.errors import UnsupportedError
from unity.ir.dims import Symbol, dim_text
from unity.ir.graph import (
    Body,
    Call,
    Constant,
    Expr,
    Function,
    If,
    Op,
    Scan,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.module import IRModule
from unity.ir.symbols.representative import LENGTH, of_symbol, representative
from unity.ir.types import TensorType, TupleType, Type
from unity.ir.visit import (
    bodies_of,
    free_vars,
    substitute_symbols,
    type_symbols,
    walk_bindings,
    walk_constants,
)
from unity.op.infer import infer_type
from unity.transform.graph.resolve.cost import bytes_of, flops
from unity.transform.graph.resolve.engine import OpSite
from unity.transform.graph.resolve.following_sizes import following_sizes

from .model import read_model
from .source import only_models

_ALIASES = ("reshape", "squeeze", "expand_dims", "flatten")
"""Operators that give their operand's memory another shape."""


def report_model(path: Path) -> None:
    """Print inputs, outputs, operators, parameters, work and memory; or what is not implemented."""
    only_models(path, "inspect --report")
    console = Console(highlight=False)
    table = Table("what", "in it", show_header=False)
    try:
        module = read_model(path)
    except UnsupportedError as error:
        for gap in error.gaps or [error.message]:
            table.add_row("not implemented", escape(gap))
        for name, count in _nodes_of(path):
            table.add_row("nodes", escape(f"{count} {name}"))
        console.print(table)
        return
    for what, text in _rows(module):
        table.add_row(what, escape(text))
    for name, count in _nodes_of(path):
        table.add_row("nodes", escape(f"{count} {name}"))
    console.print(table)


def _nodes_of(path: Path) -> list[tuple[str, int]]:
    """How many nodes of each type an ONNX model has, most first, those of inner graphs too."""
    if path.suffix != ".onnx":
        return []
    import onnx

    from unity.frontend.onnx.reading.graphs import subgraphs

    def walk(graph: onnx.GraphProto) -> Iterator[str]:
        for node in graph.node:
            yield f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            for inner in subgraphs(node):
                yield from walk(inner)

    return Counter(walk(onnx.load(path, load_external_data=False).graph)).most_common()


def _rows(module: IRModule) -> Iterator[tuple[str, str]]:
    main = module[main_name(module)]
    assert isinstance(main, Function)
    for param in main.params:
        yield "input", f"{param.name}: {_text(param.type)}"
    yield "output", _text(main.result)
    symbols = dict.fromkeys(s for p in main.params for s in type_symbols(p.type))
    given = {s: of_symbol(s) for s in sorted(symbols, key=lambda s: s.name)}
    main, at = _at(main, given)
    constants = list({id(c.data): c for c in walk_constants(main.body)}.values())
    held = sum(c.data.nbytes for c in constants)
    yield (
        "parameters",
        f"{sum(c.data.size for c in constants):,} in {len(constants)}, {held:,} bytes",
    )
    for each in sorted(constants, key=lambda c: -c.data.nbytes)[:3]:
        shape = f"{each.data.dtype}{list(each.data.shape)}"
        yield "", f"{each.name or 'unnamed'}: {shape}, {each.data.nbytes:,} bytes"
    yield "operations", f"{_operations(main.body):,.0f}{at}"
    peak = _peak(main.body)
    yield "memory", f"{peak:,} bytes of intermediate values at once{at}, before any are fused"
    calls = Counter(
        b.value.callee.name
        for b in walk_bindings(main)
        if isinstance(b.value, Call) and isinstance(b.value.callee, Op)
    )
    yield "operators", ", ".join(f"{name} {count}" for name, count in calls.most_common())


def _at(main: Function, given: Mapping[Symbol, int]) -> tuple[Function, str]:
    """A function at some sizes of its inputs, and what is said of these."""
    sizes = ", ".join(f"{s.name}={n}" for s, n in given.items())
    found = following_sizes(main, given)
    at = f" at {sizes}" if sizes else ""
    main = substitute_symbols(main, {**found})
    others = {s for b in walk_bindings(main) for s in type_symbols(b.var.type)}
    if others:
        count = "1 size" if len(others) == 1 else f"{len(others)} sizes"
        at += f" ({count} that only data tells taken as {LENGTH})"
    return main, at


def _text(kind: Type) -> str:
    match kind:
        case TensorType(shape=tuple() as shape):
            return f"{kind.dtype}[{', '.join(map(dim_text, shape))}]"
        case TupleType():
            return ", ".join(map(_text, kind.fields))
        case _:
            return str(kind)


def _bindings(body: Body) -> list[tuple[Var, Expr]]:
    return [(b.var, b.value) for block in body.blocks for b in block.bindings]


def _operations(body: Body) -> float:
    """What calls of operators compute; of a loop whose steps are not known, one step."""
    total = 0.0
    for var, value in _bindings(body):
        match value:
            case Call(callee=Op()):
                args = tuple(infer_type(a, {}) for a in value.args)
                total += flops(OpSite(value, args, var.type))
            case Scan():
                steps = infer_type(value.inputs[0], {}) if value.inputs else None
                count = 1
                if isinstance(steps, TensorType) and isinstance(steps.shape, tuple):
                    count = representative(steps.shape[0])
                total += count * _operations(value.body)
            case If():
                total += max(_operations(value.then), _operations(value.orelse))
            case While():
                total += _operations(value.condition) + _operations(value.body)
            case _:
                pass
    return total


def _peak(body: Body) -> int:
    """The most bytes that values have at once, each from where it is made to its last use."""
    bindings = _bindings(body)
    roots: dict[Var, Var] = {}
    last: dict[Var, int] = {}
    uses: list[Iterable[Var]] = [free_vars(value) for _, value in bindings]
    for place, used in enumerate((*uses, free_vars(body.result))):
        if place < len(bindings):
            var, value = bindings[place]
            of = _operand(value)
            roots[var] = roots.get(of, of) if of is not None else var
        for each in used:
            last[roots.get(each, each)] = place
    live = peak = 0
    ending: dict[int, int] = {}
    for place, (var, value) in enumerate(bindings):
        within = max((_peak(inner) for inner in bodies_of(value)), default=0)
        if roots[var] is var and not isinstance(value, Constant | Tuple):
            size = bytes_of(var.type)
            live += size
            end = last.get(var, place)
            ending[end] = ending.get(end, 0) + size
        peak = max(peak, live + within)
        live -= ending.get(place, 0)
    return peak


def _operand(value: Expr) -> Var | None:
    """The variable whose memory a value is, if it is another's."""
    match value:
        case Var():
            return value
        case TupleGet(value=Var() as of):
            return of
        case Call(callee=Op(name=name), args=(Var() as of, *_)) if name in _ALIASES:
            return of
        case _:
            return None
