"""One computation in a loop nest of random form: with a block or without, split, fused, reordered,
unrolled, vectorized, parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import block_regions
from unity.ir.stmt import (
    AxisKind,
    Block,
    BlockAxis,
    Buffer,
    For,
    ForKind,
    IfThen,
    Let,
    Range,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit import rewrite_prim, substitute_stmt

Axis = tuple[PrimVar, PrimExpr]


@dataclass(frozen=True)
class Computation:
    """``output[spatial] = value``; with an `init`, repeated over the reduce axes."""

    name: str
    output: Buffer
    spatial: tuple[Axis, ...]
    reduces: tuple[Axis, ...]
    value: PrimExpr
    init: Imm | None


@dataclass(frozen=True)
class _Loop:
    var: PrimVar
    extent: PrimExpr
    reduces: bool
    kind: ForKind = "serial"


@dataclass
class _Form:
    """Loops, outermost first, what each axis is in terms of them, and where that is in range."""

    loops: list[_Loop]
    values: dict[PrimVar, PrimExpr]
    predicates: list[PrimExpr]


def nest(c: Computation, rng: Random) -> Stmt:
    """The computation as a statement."""
    form = _form(c, rng)
    if rng.random() < 0.6:
        return _around(form.loops, _block(c, form, rng))
    return _without_block(c, form, rng)


def _form(c: Computation, rng: Random) -> _Form:
    loops: list[_Loop] = []
    form = _Form(loops, {}, [])
    for axis, reduces in [*((a, False) for a in c.spatial), *((a, True) for a in c.reduces)]:
        loops.extend(_axis_loops(axis, reduces, form, rng))
    if rng.random() < 0.3:
        _fuse(form, rng)
    _reorder(form, rng)
    _annotate(form, rng)
    return form


def _axis_loops(axis: Axis, reduces: bool, form: _Form, rng: Random) -> list[_Loop]:
    var, extent = axis
    name = var.name
    if rng.random() < 0.7:
        loop = _Loop(PrimVar(name), extent, reduces)
        form.values[var] = loop.var
        return [loop]
    factor = rng.randint(2, 4)
    outer: PrimExpr = (extent + (factor - 1)) // factor
    if isinstance(extent, Imm):
        outer = imm(-(-int(extent.value) // factor))
    pair = [
        _Loop(PrimVar(f"{name}o"), outer, reduces),
        _Loop(PrimVar(f"{name}i"), imm(factor), reduces),
    ]
    value = pair[0].var * factor + pair[1].var
    form.values[var] = value
    if not (isinstance(extent, Imm) and int(extent.value) % factor == 0):
        form.predicates.append(Compare("lt", value, extent))
    return pair


def _fuse(form: _Form, rng: Random) -> None:
    """Join two neighbours of one kind into one loop."""
    places = [
        k
        for k, (a, b) in enumerate(zip(form.loops, form.loops[1:], strict=False))
        if a.reduces == b.reduces and isinstance(b.extent, Imm)
    ]
    if not places:
        return
    k = rng.choice(places)
    a, b = form.loops[k], form.loops[k + 1]
    fused = _Loop(PrimVar(f"{a.var.name}{b.var.name}"), a.extent * b.extent, a.reduces)
    parts: dict[PrimVar, PrimExpr] = {
        a.var: Binary("floordiv", fused.var, b.extent),
        b.var: Binary("floormod", fused.var, b.extent),
    }
    form.loops[k : k + 2] = [fused]
    form.values = {v: _substitute(e, parts) for v, e in form.values.items()}
    form.predicates = [_substitute(p, parts) for p in form.predicates]


def _substitute(e: PrimExpr, values: Mapping[PrimVar, PrimExpr]) -> PrimExpr:
    return rewrite_prim(e, lambda x: values.get(x) if isinstance(x, PrimVar) else None)


def _reorder(form: _Form, rng: Random) -> None:
    """Any order in which the reduce loops keep theirs."""
    reduces = [loop for loop in form.loops if loop.reduces]
    spatial = [loop for loop in form.loops if not loop.reduces]
    if rng.random() < 0.4:
        rng.shuffle(spatial)
    merged: list[_Loop] = []
    while spatial or reduces:
        take_spatial = bool(spatial) and (not reduces or rng.random() < 0.8)
        merged.append((spatial if take_spatial else reduces).pop(0))
    form.loops = merged


def _annotate(form: _Form, rng: Random) -> None:
    """Kinds of spatial loops: parallel outermost, vectorized innermost, unrolled anywhere."""
    for k, loop in enumerate(form.loops):
        constant = isinstance(loop.extent, Imm)
        kind: ForKind = "serial"
        if not loop.reduces:
            if k == 0 and rng.random() < 0.3:
                kind = "parallel"
            elif k == len(form.loops) - 1 and constant and rng.random() < 0.3:
                kind = "vectorized"
        if kind == "serial" and constant and rng.random() < 0.15:
            kind = "unrolled"
        form.loops[k] = replace(loop, kind=kind)


def _around(loops: list[_Loop], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = For(loop.var, imm(0), loop.extent, body, loop.kind)
    return body


def _all(conditions: list[PrimExpr]) -> PrimExpr | None:
    result: PrimExpr | None = None
    for condition in conditions:
        result = condition if result is None else Binary("and", result, condition)
    return result


def _block(c: Computation, form: _Form, rng: Random) -> Block:
    axes: list[BlockAxis] = []
    vars_: dict[PrimVar | SizeVar, PrimExpr] = {}
    for k, (var, extent) in enumerate((*c.spatial, *c.reduces)):
        kind: AxisKind = "S" if k < len(c.spatial) else "R"
        axis = PrimVar(f"v{var.name}")
        vars_[var] = axis
        axes.append(BlockAxis(axis, kind, Range(imm(0), extent), form.values[var]))
    indices = tuple(var for var, _ in c.spatial)
    body: Stmt = substitute_stmt(Store(c.output, indices, c.value), vars_)
    init = None
    if c.init is not None:
        init = substitute_stmt(Store(c.output, indices, c.init), vars_)
    reads, writes = block_regions(body, init, [axis.var for axis in axes])
    attrs_name = c.name if rng.random() < 0.9 else ""
    return Block(attrs_name, tuple(axes), reads, writes, body, init, _all(form.predicates))


def _without_block(c: Computation, form: _Form, rng: Random) -> Stmt:
    indices = tuple(var for var, _ in c.spatial)
    store: Stmt = Store(c.output, indices, c.value)
    use_let = rng.random() < 0.4
    lets: list[tuple[PrimVar, PrimExpr]] = []
    values: dict[PrimVar | SizeVar, PrimExpr] = {}
    for var, value in form.values.items():
        if use_let and not isinstance(value, PrimVar):
            named = PrimVar(f"at_{var.name}")
            lets.append((named, value))
            values[var] = named
        else:
            values[var] = value
    store = substitute_stmt(store, values)
    for named, value in reversed(lets):
        store = Let(named, value, store)
    guard = _all(form.predicates)
    body = _around(form.loops, store if guard is None else IfThen(guard, store))
    if c.init is None:
        return body
    axes = [(PrimVar(var.name), extent) for var, extent in c.spatial]
    clear: Stmt = Store(c.output, tuple(v for v, _ in axes), c.init)
    for var, extent in reversed(axes):
        clear = For(var, imm(0), extent, clear)
    return Seq((clear, body))


__all__ = ["Axis", "Computation", "SizeVar", "nest"]
