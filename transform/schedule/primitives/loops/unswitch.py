"""unswitch: a choice that a loop does not change is made before it, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Imm, Not, PrimExpr, PrimVar, Select
from unity.ir.stmt import Block, For, Let, PrimFunc, Stmt
from unity.ir.visit import (
    bound_in,
    leaves,
    map_prim,
    map_stmt,
    map_stmts,
    prim_loads,
    stmt_exprs,
    variables,
    walk_stmt,
)

from ....blocks.access import asked_in_vain
from ....blocks.site import sites
from ....blocks.throughout import margin_of
from ....blocks.throughout import throughout as throughout_
from ....blocks.tree import (
    Outcome,
    Path,
    blocks_below,
    bound_to,
    conjunction,
    copied,
    guarded,
    illegal,
    known_at,
    loop_path,
    replaced,
    sequence,
    with_regions,
)

WHERE = "unswitch, argument 1 'loop'"


def unswitch(func: PrimFunc, var: PrimVar, throughout: bool = False) -> Outcome:
    """Two loops, one for each way that a choice in it goes; where one runs, the other does not.

    What is chosen (`T.select`) by a condition that is the same in all iterations takes no test and
    no mask in either. The condition becomes a predicate of the blocks, lowering asks it outside the
    loops. Of conditions that are joined, those that the loop does not change are taken; of several
    choices, the first with such, and all others by the same condition.

    Args:
        func: The prim func.
        var: The loop.
        throughout: Whether to ask, of conditions that the loop or those in it do change, that they
            hold in all iterations (a tile that lies within an image); the other loop keeps them.

    Returns:
        The loop that runs where the condition holds, with the blocks' names, and the other one.

    Raises:
        UnityError: Nothing is chosen by such a condition; a block reduces, and may begin here.

    >>> from unity.script import parse
    >>> from unity.transform.schedule import Schedule
    >>> sch = Schedule(parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 6, 8]) -> None:
    ...     for i, j in T.grid(6, 8):
    ...         with T.block("pad"):
    ...             vi, vj = T.axis.remap("SS", i, j)
    ...             c[vi, vj] = T.select(vi >= 2, a[vi - 2, vj], 0.0)
    ... ''').prim_funcs()["main"])
    >>> there, fill = sch.unswitch(sch.get_loops("pad")[1])
    >>> print(sch.func, end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 6, 8]) -> None:
        for i in range(6):
            for j in range(8):
                with T.block("pad"):
                    vi, vj = T.axis.remap("SS", i, j)
                    T.where(i >= 2)
                    c[vi, vj] = a[vi - 2, vj]
            for j in range(8):
                with T.block("pad_1"):
                    vi, vj = T.axis.remap("SS", i, j)
                    T.where(not i >= 2)
                    c[vi, vj] = 0.0
    """
    path, loop = loop_path(func, var)
    if loop.kind != "serial":
        raise illegal(WHERE, f"it is {loop.kind} already")
    reduces = next((b.name for b in blocks_below(loop) if b.init is not None), None)
    if reduces is not None:
        raise illegal(WHERE, f"the reduction {reduces!r} may begin in it", "decompose_reduction")
    other = copied(loop, func)
    assert isinstance(other, For)
    if throughout:
        fact = all_there(loop, path)
        if fact is None:
            raise illegal(WHERE, "no condition is known under which all in it is there")
        there = guarded(_there(loop, bound_in(loop)), fact)
        done = replaced(func, [(loop, sequence([there, guarded(other, Not(fact))]))])
        return Outcome(done, (loop.var, other.var))
    parts = _unchanged(loop, _bound(path[:-1]), known_at(path[:-1]))
    if not parts:
        raise illegal(WHERE, "nothing in it is chosen by a condition that it does not change")
    fact = conjunction(parts)
    assert fact is not None
    there = guarded(_settled(loop, parts, holds=True), fact)
    elsewhere = guarded(_settled(other, parts, holds=False), Not(fact))
    done = replaced(func, [(loop, sequence([there, elsewhere]))])
    return Outcome(done, (loop.var, other.var))


def _bound(path: Path) -> set[PrimVar]:
    """The variables that a path binds."""
    found: set[PrimVar] = set()
    for s in path:
        match s:
            case For() | Let():
                found.add(s.var)
            case Block():
                found |= {a.var for a in s.axes}
            case _:
                pass
    return found


def _unchanged(loop: For, outside: set[PrimVar], known: Analyzer) -> list[PrimExpr]:
    """What the first choice below a loop asks that is the same in all iterations."""
    for block in blocks_below(loop):
        for select in _selects(block):
            asked = [bound_to(part, block.axes) for part in conjuncts(select.condition)]
            same = [e for e in asked if variables(e) <= outside and asked_in_vain(e, known)]
            same = [e for e in same if not isinstance(known.simplify(e), Imm)]
            if same:
                return list(dict.fromkeys(same))
    return []


def _selects(block: Block) -> Iterator[Select]:
    for s in walk_stmt(block.body):
        for e in stmt_exprs(s):
            yield from leaves(e).selects


def _settled(s: Stmt, parts: Sequence[PrimExpr], *, holds: bool) -> Stmt:
    """A statement where all parts of a condition hold, or where not all of them do."""
    if not isinstance(s, Block):
        return map_stmts(s, lambda x: _settled(x, parts, holds=holds))
    block = s

    def on_expr(e: PrimExpr) -> PrimExpr:
        if not leaves(e).selects:
            return e
        e = map_prim(e, on_expr)
        if not isinstance(e, Select):
            return e
        asked = {part: bound_to(part, block.axes) for part in conjuncts(e.condition)}
        if not holds:
            return e.orelse if set(parts) <= {*asked.values()} else e
        rest = [part for part, bound in asked.items() if bound not in parts]
        if len(rest) == len(asked):
            return e
        left = conjunction(rest)
        return e.then if left is None else replace(e, condition=left)

    def on_stmt(x: Stmt) -> Stmt:
        return map_stmt(x, on_stmt, on_expr)

    body = on_stmt(block.body)
    return block if body is block.body else with_regions(replace(block, body=body))


def all_there(loop: For, path: Path) -> PrimExpr | None:
    """The condition under which all that a loop chooses, or does, by comparisons is there."""
    found, inside = sites(loop, path[:-1]), bound_in(loop)
    asked: dict[PrimExpr, None] = {}
    for site in found:
        asked |= dict.fromkeys(_changing(site.block.predicate, inside))
        for select in _selects(site.block):
            parts = [bound_to(part, site.block.axes) for part in conjuncts(select.condition)]
            if parts and _compare(parts):
                asked |= dict.fromkeys(parts)
    loops = list(dict.fromkeys(x for site in found for x in site.loops))
    known = known_at(path)
    for x in loops:
        known = known.with_extent(x.var, x.begin, x.extent)
    return throughout_(list(asked), loops, known)


def _compare(parts: Sequence[PrimExpr]) -> bool:
    """Whether all parts of a condition are comparisons that can be asked of a loop as a whole."""
    loads = any(prim_loads(part) for part in parts)
    return not loads and all(margin_of(part) is not None for part in parts)


def _changing(predicate: PrimExpr | None, inside: set[PrimVar]) -> list[PrimExpr]:
    """The comparisons of a predicate that loops change."""
    parts = () if predicate is None else conjuncts(predicate)
    return [p for p in parts if variables(p) & inside and _compare([p])]


def _there(s: Stmt, inside: set[PrimVar]) -> Stmt:
    """A statement where all that loops choose, or do, by comparisons is there."""
    if not isinstance(s, Block):
        return map_stmts(s, lambda x: _there(x, inside))

    def on_expr(e: PrimExpr) -> PrimExpr:
        if not leaves(e).selects:
            return e
        if isinstance(e, Select) and _compare(conjuncts(e.condition)):
            return on_expr(e.then)
        return map_prim(e, on_expr)

    def on_stmt(x: Stmt) -> Stmt:
        return map_stmt(x, on_stmt, on_expr)

    gone = _changing(s.predicate, inside)
    if gone and s.predicate is not None:
        s = replace(s, predicate=conjunction([p for p in conjuncts(s.predicate) if p not in gone]))

    body = on_stmt(s.body)
    return s if body is s.body else with_regions(replace(s, body=body))
