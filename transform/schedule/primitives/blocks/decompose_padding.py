"""decompose_padding: a padded copy becomes a fill, and a copy of what is within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import Analyzer
from unity.arith.polynomial import as_constant, from_expr, split_linear, to_expr
from unity.arith.region import end, greater, lesser
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Block, BlockAxis, For, PrimFunc, Range, Stmt, Store
from unity.ir.visit import map_stmts, prim_loads, substitute_stmt, variables

from ....blocks.begun import refuse_begun
from ....blocks.dataflow import checked, loaded, plain_store
from ....blocks.legality import breach, reaches_once
from ....blocks.motion import refuse_shifting
from ....blocks.site import Site
from ....blocks.tree import (
    Outcome,
    Values,
    all_blocks,
    around,
    block_path,
    blocks_below,
    bound_to,
    conjunction,
    illegal,
    known_at,
    loop_path,
    loops_of,
    replaced,
    scope_path,
    sequence,
    unique,
    with_regions,
)

BLOCK = "decompose_padding, argument 1 'block'"
LOOP = "decompose_padding, argument 2 'loop'"


def decompose_padding(func: PrimFunc, name: str, var: PrimVar) -> Outcome:
    """What a block stores out of bounds is stored everywhere before a loop; the block keeps within.

    A selection between a formula and a constant is a branch or a mask for each element; filling and
    copying have none. Loops that drive an axis by themselves shrink to its bounds, other conditions
    become the block's predicate.

    Args:
        func: The prim func.
        name: A block that stores ``T.select(within bounds, formula, padding)``, where the padding
            loads nothing.
        var: A loop around it, before which the padding is stored.

    Returns:
        The block that fills.

    Raises:
        UnityError: The block is no such; the loops may reach points of it twice; others in the loop
            would see that the padding is there already.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 8], c: f32[Buffer, 10]) -> None:
    ...     for i in range(10):
    ...         with T.block("pad"):
    ...             vi = T.axis.spatial(10, i)
    ...             c[vi] = T.select(vi >= 1 and vi < 9, a[vi - 1], 0.0)
    ... ''').prim_funcs()["main"])
    >>> fill = sch.decompose_padding("pad", sch.get_loops("pad")[0])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 8], c: f32[Buffer, 10]) -> None:
        for i in range(10):
            with T.block("pad_fill"):
                vi = T.axis.remap("S", i)
                c[vi] = 0.0
        for i in range(8):
            with T.block("pad"):
                vi = T.axis.spatial(10, i + 1)
                c[vi] = a[vi - 1]
    """
    path, block = block_path(func, name)
    _, loop = loop_path(func, var)
    store, value = _padded(block)
    scope = scope_path(path)
    at = next((k for k, s in enumerate(scope) if s is loop), None)
    if at is None:
        raise illegal(LOOP, f"it is not around {name!r}")
    loops = loops_of(scope[at:])
    site = Site(block, scope[at:-1], loops, known_at(path[:-1]))
    why = breach(site)
    if why is None and not (site.is_certain and reaches_once(site)):
        why = f"it is not known to run once at each point of {name!r}"
    if why is not None:
        raise illegal(BLOCK, why)
    refuse_shifting(BLOCK, func, path)
    filling = replace(store, value=value.orelse)
    refuse_begun(LOOP, func, path, loop, filling)
    made = unique(f"{name}_fill", {b.name for b in all_blocks(func.body)})
    fill = _filling(made, block, loops, filling)
    within = _within(block, [x for x in loops if blocks_below(x) == [block]], value.condition)
    parts = [*(() if block.predicate is None else conjuncts(block.predicate)), *within.rest]
    body = replace(store, value=value.then)
    new = with_regions(replace(block, body=body, predicate=conjunction(parts)))
    inner = _shrunk(replaced(replace(func, body=loop), [(block, new)]).body, within)
    done = replaced(func, [(loop, sequence([fill, inner]))])
    return Outcome(checked(done, LOOP), blocks=(made,))


def _padded(block: Block) -> tuple[Store, Select]:
    """The block's store, and the selection that it stores."""
    store = plain_store(block)
    value = None if store is None else store.value
    if store is None or not isinstance(value, Select):
        raise illegal(BLOCK, f"{block.name!r} is more than the store of a selection")
    if prim_loads(value.orelse) or prim_loads(value.condition):
        raise illegal(BLOCK, "the padding, or where it is, is loaded from memory")
    if store.buffer in loaded(block):
        raise illegal(BLOCK, f"it reads {store.buffer.name!r}, which it stores to")
    return store, value


def _filling(name: str, block: Block, loops: Sequence[For], body: Store) -> Stmt:
    """A nest like the block's that stores the padding."""
    fresh: Values = {x.var: PrimVar(x.var.name, x.var.dtype) for x in loops}
    axes = tuple(BlockAxis(PrimVar(a.var.name), "S", a.domain, a.value) for a in block.axes)
    renamed: Values = {a.var: n.var for a, n in zip(block.axes, axes, strict=True)}
    fill = Block(name, axes, (), (), substitute_stmt(body, renamed), predicate=block.predicate)
    serial = [replace(x, kind="serial", thread=None) for x in loops]
    return substitute_stmt(around(serial, with_regions(fill)), fresh)


@dataclass(frozen=True, slots=True)
class _Within:
    """Where a condition holds: ends of loops, and what is left of it over loop variables."""

    low: dict[PrimVar, PrimExpr]
    high: dict[PrimVar, PrimExpr]
    rest: list[PrimExpr]


def _within(block: Block, loops: Sequence[For], condition: PrimExpr) -> _Within:
    known = Analyzer()
    found = _Within({}, {}, [])
    own = {x.var for x in loops if x.kind in ("serial", "parallel")}
    for part in conjuncts(bound_to(condition, block.axes)):
        used = variables(part)
        var = next(iter(used)) if len(used) == 1 else None
        ends = _ends(part, var) if var is not None and var in own else None
        if var is None or ends is None:
            found.rest.append(part)
            continue
        low, high = ends
        if low is not None:
            found.low[var] = low if var not in found.low else greater(found.low[var], low, known)
        if high is not None:
            found.high[var] = (
                high if var not in found.high else lesser(found.high[var], high, known)
            )
    return found


def _ends(part: PrimExpr, var: PrimVar) -> tuple[PrimExpr | None, PrimExpr | None] | None:
    """The least value of a variable under a condition, or the first one past it."""
    match part:
        case Compare("lt" | "le" as op, a, b) | Compare("gt" | "ge" as op, b, a):
            slack = 1 if op in ("lt", "gt") else 0
        case _:
            return None
    room, factor = split_linear(from_expr(Binary("sub", b, a)), var)
    sign = None if factor is None else as_constant(factor)
    rest = Analyzer().simplify(Binary("sub", to_expr(room), imm(slack)))
    if var in variables(rest):
        return None
    if sign == 1:  # rest + var >= 0
        return Analyzer().simplify(Binary("sub", imm(0), rest)), None
    if sign == -1:  # rest - var >= 0
        return None, Analyzer().simplify(Binary("add", rest, imm(1)))
    return None


def _shrunk(s: Stmt, within: _Within) -> Stmt:
    """A nest with loops cut to ends; those whose begin moves count from 0."""

    def go(x: Stmt) -> Stmt:
        x = map_stmts(x, go)
        if not isinstance(x, For) or x.var not in within.low.keys() | within.high.keys():
            return x
        known = Analyzer()
        begin = greater(x.begin, within.low.get(x.var, x.begin), known)
        whole = end(Range(x.begin, x.extent))
        last = lesser(whole, within.high.get(x.var, whole), known)
        points = known.simplify(Binary("sub", last, begin))
        new = replace(x, extent=greater(points, imm(0), known))
        if known.equal(begin, x.begin):
            return new
        shifted = substitute_stmt(x.body, {x.var: Binary("add", x.var, begin)})
        return replace(new, begin=imm(0), body=shifted)

    return go(s)
