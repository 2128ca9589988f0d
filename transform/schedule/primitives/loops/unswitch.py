"""unswitch: a choice that a loop does not change is made before it, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from unity.arith import Analyzer
from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Not, PrimExpr, PrimVar, Select
from unity.ir.stmt import Block, For, Let, PrimFunc, Stmt
from unity.ir.visit import map_stmt, rewrite_stmt, stmt_exprs, walk_prim, walk_stmt

from ....blocks.access import asked_in_vain
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
    variables,
    with_regions,
)

WHERE = "unswitch, argument 1 'loop'"


def unswitch(func: PrimFunc, var: PrimVar) -> Outcome:
    """Two loops, one for each way that a choice in it goes; where one runs, the other does not.

    What is chosen (`T.select`) by a condition that is the same in all iterations takes no test and
    no mask in either. The condition becomes a predicate of the blocks, lowering asks it outside the
    loops. Of conditions that are joined, those that the loop does not change are taken; of several
    choices, the first with such, and all others by the same condition.

    Args:
        func: The prim func.
        var: The loop.

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
    parts = _unchanged(loop, _bound(path[:-1]), known_at(path[:-1]))
    if not parts:
        raise illegal(WHERE, "nothing in it is chosen by a condition that it does not change")
    fact = conjunction(parts)
    assert fact is not None
    other = copied(loop, func)
    assert isinstance(other, For)
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
            if same:
                return list(dict.fromkeys(same))
    return []


def _selects(block: Block) -> Iterator[Select]:
    for s in walk_stmt(block.body):
        for e in stmt_exprs(s):
            yield from (x for x in walk_prim(e) if isinstance(x, Select))


def _settled(s: Stmt, parts: Sequence[PrimExpr], *, holds: bool) -> Stmt:
    """A statement where all parts of a condition hold, or where not all of them do."""
    if not isinstance(s, Block):
        return map_stmt(s, lambda x: _settled(x, parts, holds=holds), lambda e: e)
    block = s

    def on_expr(e: PrimExpr) -> PrimExpr | None:
        if not isinstance(e, Select):
            return None
        asked = {part: bound_to(part, block.axes) for part in conjuncts(e.condition)}
        if not holds:
            return e.orelse if set(parts) <= {*asked.values()} else None
        rest = [part for part, bound in asked.items() if bound not in parts]
        if len(rest) == len(asked):
            return None
        left = conjunction(rest)
        return e.then if left is None else replace(e, condition=left)

    body = rewrite_stmt(block.body, None, on_expr)
    return block if body is block.body else with_regions(replace(block, body=body))
