"""What a migration did, for those who have to trust it: Markdown.

Nothing is left out without a line: attributes of operators, of functions and of the module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from unity.frontend.relay import syntax
from unity.frontend.relay.record import Record, Translated
from unity.frontend.relay.recursion import reached_from
from unity.frontend.relay.wishes import has_engine
from unity.ir.attrs import AttrValue
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.ir.visit import type_symbols, walk_bindings
from unity.script.printer import fragment

_SHOWN = 4
"""Ways to translate one operator that are told; the others are counted."""
_DROPPED = {
    "Primitive": "fused by TVM; fused anew here",
    "Composite": "a pattern of a partition; its operators are resolved one by one",
    "hash": "a key of TVM's caches",
    "global_symbol": "what TVM called its object code",
    "Inline": "all functions are put in place where they are called",
    "SkipOptimization": "all functions are optimized",
    "PartitionedFromPattern": "a pattern of a partition",
    "layout_desired": "layouts are chosen when compiling",
    "virtual_device": "there is one device",
    "param_virtual_devices": "there is one device",
    "result_virtual_device": "there is one device",
    "attrs_type_key": "the kind of the attributes beside it",
}


def report(source: syntax.Module, module: IRModule, record: Record) -> str:
    """The report of a translation.

    Args:
        source: What was translated.
        module: What it became.
        record: What happened on the way.
    """
    main = module["main"]
    assert isinstance(main, Function)
    parts = (
        (f"# {Path(source.file).name}", _summary(source, record)),
        ("## Operators", _operators(record.calls)),
        (
            "## Attributes left out",
            [*_attributes(record.calls), *_other_attributes(source, record)],
        ),
        ("## Inputs and results", _signature(source, main)),
        ("## Symbols", _symbols(main)),
        ("## Partitions", _partitions(record)),
        ("## What to check", _checks(source, module, record)),
    )
    told = ((title, list(lines)) for title, lines in parts)
    blocks = ("\n".join([title, "", *lines]) for title, lines in told if lines)
    return "\n\n".join(blocks) + "\n"


def _summary(source: syntax.Module, record: Record) -> list[str]:
    given = len(source.params)
    return [
        f"{len(record.calls)} calls of operators in {len(source.functions)} functions; "
        f"{given} parameter{'s' * (given != 1)} with values."
    ]


def _operators(calls: Sequence[Translated]) -> list[str]:
    ways: dict[str, Counter[str]] = {}
    for call in calls:
        became = ", ".join(f"`{op}`" for op in call.ops) or "nothing to compute"
        ways.setdefault(call.operator, Counter())[became] += 1
    lines = ["| Relay | calls | becomes |", "|---|---|---|"]
    for operator, found in sorted(ways.items()):
        shown = [way for way, _ in found.most_common(_SHOWN)]
        shown += [f"{len(found) - _SHOWN} more ways"] * (len(found) > _SHOWN)
        lines.append(f"| `{operator}` | {found.total()} | {'; or '.join(shown)} |")
    return lines


def _attributes(calls: Sequence[Translated]) -> list[str]:
    found = Counter(
        f"`{c.operator}`: `{name}={_value(c.call.attributes[name])}`"
        for c in calls
        for name in c.dropped
    )
    why = "the operands say it, or it changes nothing here"
    return [f"- {what}, {times} times: {why}" for what, times in sorted(found.items())]


def _other_attributes(source: syntax.Module, record: Record) -> Iterator[str]:
    """Those that no operator has: of functions, their calls, variables, the module."""
    wished = {compiler for _, compiler in record.wishes()}
    own: Counter[tuple[str, str, str]] = Counter()
    for expr in _exprs(source):
        match expr:
            case syntax.Function():
                owner = "functions"
            case syntax.Call(callee) if not isinstance(callee, syntax.Op):
                owner = "calls of functions"
            case _:
                continue
        for name, value in expr.attributes.items():
            if name != "Compiler" or not (isinstance(value, str) and value in wished):
                own[owner, name, _value(value)] += 1
    own.update(
        (i.owner, i.name, "" if i.value is None else _value(i.value)) for i in source.ignored
    )
    own.update(("the module", name, _value(value)) for name, value in source.attributes.items())
    for (owner, name, value), times in sorted(own.items()):
        why = _DROPPED.get(name, "no meaning here")
        told = f"{name}={value}" if value else name
        yield f"- of {owner}: `{told}`, {times} times: {why}"


def _exprs(source: syntax.Module) -> Iterator[syntax.Function | syntax.Call]:
    stack: list[syntax.Expr] = [*source.functions.values()]
    seen: set[syntax.Expr] = set()
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, syntax.Function | syntax.Call):
            yield expr
        stack += syntax.children(expr)


def _value(value: syntax.AttrValue) -> str:
    match value:
        case tuple():
            text = ", ".join(map(_value, value))
        case syntax.Record(key):
            text = f"{key}(...)"
        case _:
            text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _signature(source: syntax.Module, main: Function) -> Iterator[str]:
    own = [p for p in source.functions["main"].params if p.name not in source.params]
    for param, var in zip(own, main.params, strict=True):
        called = "" if param.name == var.name else f" (`{param.name}`)"
        yield f"- `{var.name}`{called}: `{fragment(var.type)}`"
    yield f"- gives `{fragment(main.result)}`"


def _symbols(main: Function) -> Iterator[str]:
    known: set[str] = set()
    for param in main.params:
        for name in _new(param.type, known):
            yield f"- `{name}`: a size of the input `{param.name}` that the model leaves open (`?`)"
    for binding in walk_bindings(main):
        for name in _new(binding.var.type, known):
            yield f"- `{name}`: a size of `{binding.var.name}`, known when the program runs"


def _new(kind: Type, known: set[str]) -> Iterable[str]:
    found = {s.name for s in type_symbols(kind)} - known
    known |= found
    return sorted(found)


def _partitions(record: Record) -> list[str]:
    found: dict[str, list[str]] = {}
    for site, compiler in record.wishes():
        found.setdefault(compiler, []).append(site)
    return [
        f"- `{compiler}`, put in place: {', '.join(f'`{s}`' for s in sites)}; "
        + (
            f"`resolve=wishes(module)` gives them to the engine `engine:{compiler}`"
            if has_engine(compiler)
            else "no engine is called so here, they are ours"
        )
        for compiler, sites in sorted(found.items())
    ]


def _checks(source: syntax.Module, module: IRModule, record: Record) -> Iterator[str]:
    operators = {c.operator for c in record.calls}
    yield "- results, by outputs saved on the old installation: " + (
        '`np.savez("expected.npz", *[m.get_output(i).numpy() for i in range(m.get_num_outputs())])`'
    )
    main = module["main"]
    assert isinstance(main, Function)
    for index, *nodes in _trees(main):
        form = " ".join(str(n).partition(" ")[0] or "_" for n in nodes)
        yield (
            f"- the input `{main.params[int(str(index))].name}` is of one form, that of its "
            f"example: `{form}`; `unity.relay.vm` compiles for each form that comes"
        )
    if any(type_symbols(p.type) for p in main.params):
        yield (
            "- sizes left open: no two `?` are taken for equal; where two are, say so: "
            '`dynamic={"x": {0: "n"}, "y": {0: "n"}}`'
        )
    if any(name.startswith("qnn.") for name in operators):
        yield "- quantized layers: integers are to equal TVM's to the bit; any difference is a bug"
    if operators & {"nn.dropout"}:
        yield "- `nn.dropout` passes its input on, as in inference"
    if operators & {"take", "gather", "gather_nd"}:
        yield "- indices beyond a tensor are clamped, also where TVM's mode `fast` checks nothing"
    if len(module) > 1:
        yield "- functions that call themselves run until they end: no depth is checked"
    called = {"main", *reached_from(source, "main")}
    uncalled = [name for name in source.functions if name not in called]
    if uncalled:
        yield f"- functions that main does not call are left out: {', '.join(uncalled)}"
    unset = [p.name for p in source.functions["main"].params if p.name not in source.params]
    if len(unset) > 1 and not source.params:
        yield "- no parameter has a value: weights are inputs, unless `--params` gives them"


def _trees(main: Function) -> list[tuple[AttrValue, ...]]:
    """The inputs of declared types: each one's place and its parts."""
    found = main.attrs.get("tree_inputs", ())
    return [t for t in found if isinstance(t, tuple)] if isinstance(found, tuple) else []
