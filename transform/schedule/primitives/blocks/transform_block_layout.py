"""transform_block_layout: a block over other axes, in a nest of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.iter_map import detect, inverse
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import AxisKind, Block, BlockAxis, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import (
    leaves,
    map_prim,
    map_stmt,
    prim_loads,
    rewrite_stmt,
    substitute_stmt,
    variables,
)

from ....blocks.extents import product
from ....blocks.legality import breach, commutes, keeps_order, late_init
from ....blocks.site import Site
from ....blocks.tree import (
    NOTHING,
    Outcome,
    Values,
    around,
    block_path,
    illegal,
    known_above,
    replaced,
    with_regions,
)
from ...index_map import IndexMap


def transform_block_layout(func: PrimFunc, name: str, index_map: IndexMap) -> Outcome:
    """The block's points are numbered anew, and its loops with them.

    Args:
        func: The prim func.
        name: A block directly in one serial loop for each of its axes.
        index_map: The new axes in terms of the old ones; a bijection.

    Raises:
        UnityError: The block is in no such nest; the map is no bijection, or joins spatial and
            reduce axes.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     for i, j in T.grid(4, 8):
    ...         with T.block("copy"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = a[vi, vj]
    ... ''').prim_funcs()["main"])
    >>> sch.transform_block_layout("copy", lambda i, j: (i * 8 + j,))
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        for ax0 in range(32):
            with T.block("copy"):
                v0 = T.axis.remap("S", ax0)
                c[v0 // 8, v0 % 8] = a[v0 // 8, v0 % 8]
    """
    path, block = block_path(func, name)
    nest = path[len(path) - 1 - len(block.axes) : -1]
    loops = [s for s in nest if isinstance(s, For)]
    where = "transform_block_layout, argument 1 'block'"
    by_var = {x.var: x for x in loops}
    driving = [
        by_var[a.value] for a in block.axes if isinstance(a.value, PrimVar) and a.value in by_var
    ]
    one_each = len(driving) == len(block.axes) and {x.var for x in driving} == set(by_var)
    if len(loops) != len(nest) or not one_each or not loops:
        raise illegal(where, f"{name!r} is not directly in one loop for each of its axes")
    for axis, loop in zip(block.axes, driving, strict=True):
        whole = axis.domain.begin == loop.begin == imm(0) and axis.domain.extent == loop.extent
        if not whole or loop.kind != "serial" or axis.kind == "O" or variables(loop.extent):
            raise illegal(where, f"{loop.var.name!r} is no serial loop over a whole axis")
    if block.predicate is not None:
        raise illegal(where, f"{name!r} has a predicate")
    site = Site(block, tuple(nest), tuple(loops), known_above(path))
    why = breach(site) or (late_init(site) if block.init is not None else None)
    if why is not None:
        raise illegal(where, why)
    where = "transform_block_layout, argument 2 'index_map'"
    if len(index_map.inputs) != len(block.axes):
        raise illegal(where, f"it takes {len(index_map.inputs)} axes, not {len(block.axes)}")
    old = [a.var for a in block.axes]
    outputs = index_map(old)
    m = detect(outputs, {a.var: a.domain.extent for a in block.axes}, known_above(path))
    if m is None or not m.is_bijective() or any(s.base != imm(0) for s in m.sums):
        raise illegal(where, "it is not known to be a bijection onto boxes from 0")
    told = {v for e in outputs for v in variables(e)}
    outside = known_above(path[: len(path) - len(block.axes)])
    for axis in block.axes:  # without its loop, a block runs where that has no iteration
        if axis.var not in told and not outside.prove(Compare("eq", axis.domain.extent, imm(1))):
            raise illegal(where, f"{axis.var.name!r} is in no output and may have no iteration")
    reduces = [a.var for a in block.axes if a.kind == "R"]
    moved = [e for e in outputs if variables(e) & set(reduces)]
    if (moved != reduces or not keeps_order(site)) and not commutes(block):
        raise illegal(where, f"the steps of {name!r} are not known to come in any order")
    made: list[For] = []
    axes: list[BlockAxis] = []
    once = {  # axes of one point where they have any, which may have none
        a.var: a.domain.extent
        for a in block.axes
        if m.known.bounds(a.domain.extent) == (1, 1) and outside.bounds(a.domain.extent) != (1, 1)
    }
    values: Values = {}
    for k, (e, s) in enumerate(zip(outputs, m.sums, strict=True)):
        extent = m.compact_extent(s)
        assert extent is not None
        var, place = PrimVar(f"ax{k}"), PrimVar(f"v{k}")
        points = [v for v in once if v in variables(e)]
        if points and extent == imm(1):
            values[points[0]] = place
        factors = [once.pop(v) for v in points]
        box = product([a.domain.extent for a in block.axes if a.var in variables(e)])
        if variables(e) and m.known.equal(box, extent):  # as it is where axes are empty, too
            extent = outside.simplify(box)
        else:
            factors += [_some(n) for n in _otherwise_outside(block, e, m.known, outside)]
            extent = outside.simplify(product([*factors, extent]))
        made.append(For(var, imm(0), extent, NOTHING))
        axes.append(BlockAxis(place, _kind(where, block, e), Range(imm(0), extent), var))
    back = inverse(m, [a.var for a in axes])
    if back is None:
        raise illegal(where, "its inverse is not found")
    for v, e in back.items():
        values.setdefault(v, e)
    values |= {e: a.var for e, a in zip(outputs, axes, strict=True) if isinstance(e, PrimVar)}
    known = Analyzer()
    for axis in axes:
        known = known.with_extent(axis.var, imm(0), axis.domain.extent)

    def undivided(e: PrimExpr) -> PrimExpr:
        if not leaves(e).divisions:
            return e
        e = map_prim(e, undivided)
        if not isinstance(e, Binary) or prim_loads(e):
            return e
        if e.op in ("floordiv", "floormod"):
            return known.simplify(e)
        whole = e.op == "add" and leaves(e).divisions  # n // 8 * 8 + n % 8
        simple = known.simplify(e) if whole else e
        return e if leaves(simple).divisions else simple

    def over(s: Stmt) -> Stmt:
        return map_stmt(s, over, undivided)

    def new_body(s: Stmt) -> Stmt:
        return over(substitute_stmt(_at_axes(s, outputs, axes, known_above(path)), values))

    new = replace(
        block,
        axes=tuple(axes),
        body=new_body(block.body),
        init=None if block.init is None else new_body(block.init),
    )
    return Outcome(replaced(func, [(loops[0], around(made, with_regions(new)))]))


def _at_axes(
    s: Stmt, outputs: Sequence[PrimExpr], axes: Sequence[BlockAxis], known: Analyzer
) -> Stmt:
    """A block's body, what lies as the new axes do indexed by these.

    No rule of arithmetic finds that in all cases: ``v // ((h - 2) * (w - 2))`` and its like.
    """
    made = {known.simplify(e): a.var for e, a in zip(outputs, axes, strict=True) if leaves(e).sizes}

    def named(indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        return tuple(made.get(known.simplify(i), i) for i in indices)

    def on_load(e: Load) -> PrimExpr:
        return replace(e, indices=named(e.indices))

    def on_stmt(x: Stmt) -> Stmt | None:
        return replace(x, indices=named(x.indices)) if isinstance(x, Store) else None

    return rewrite_stmt(s, on_stmt, load_fn=on_load) if made else s


def _otherwise_outside(
    block: Block, e: PrimExpr, inside: Analyzer, outside: Analyzer
) -> list[PrimExpr]:
    """Extents of an output's axes that come to something else where they may be empty.

    Those that are 1 or none are left out: they are factors already.
    """
    found = [a.domain.extent for a in block.axes if a.var in variables(e)]
    long = [n for n in found if inside.bounds(n) != (1, 1)]
    return [n for n in long if not outside.equal(inside.simplify(n), n)]


def _some(extent: PrimExpr) -> PrimExpr:
    """1 where an extent is not empty, else 0."""
    return Binary("min", imm(1), Binary("max", imm(0), extent))


def _kind(where: str, block: Block, e: PrimExpr) -> AxisKind:
    used: list[AxisKind] = [a.kind for a in block.axes if a.var in variables(e)]
    if "S" in used and "R" in used:
        raise illegal(where, "an axis of it joins spatial and reduce axes")
    return used[0] if used else "S"
