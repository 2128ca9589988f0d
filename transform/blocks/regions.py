"""Regions that a schedule gave a block: kept as long as they provably hold what the block touches.

What is found from statements takes a dimension whole where accesses are no constant apart. A region
that is given may say less: the lines around a position, for a resize that reads two of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith import Analyzer
from unity.ir.foreign import addressed
from unity.ir.prim_expr import Binary, Compare, PrimExpr
from unity.ir.stmt import Block, BlockAxis, For, Let, Region, Stmt, Store
from unity.ir.visit import prim_loads, stmt_children, stmt_exprs, variables

GIVEN = "given_regions"
"""Attribute of a block with regions that were given to it."""


def kept(block: Block, given: Sequence[Region], found: Sequence[Region]) -> tuple[Region, ...]:
    """The regions found, the ones that were given in place of those they hold all of."""
    by_buffer = {r.buffer: r for r in given}
    return tuple(
        by_buffer[r.buffer]
        if r.buffer in by_buffer and holds_all(block, by_buffer[r.buffer])
        else r
        for r in found
    )


def holds_all(block: Block, region: Region) -> bool:
    """Whether each access of a block to a region's buffer provably lies in the region."""
    ends = [e for r in region.ranges for e in (r.begin, r.extent)]
    own = {a.var for a in block.axes}
    if any(prim_loads(e) or not variables(e) <= own for e in ends):
        return False
    known = _with_axes(Analyzer(), block.axes)
    parts = [block.body] if block.init is None else [block.init, block.body]
    return all(_inside(s, region, known) for s in parts)


def _with_axes(known: Analyzer, axes: Sequence[BlockAxis]) -> Analyzer:
    for axis in axes:
        known = known.with_extent(axis.var, axis.domain.begin, axis.domain.extent)
    return known


def _inside(s: Stmt, region: Region, known: Analyzer) -> bool:
    exprs: tuple[PrimExpr, ...] = stmt_exprs(s)
    if isinstance(s, Block):
        exprs = (*(a.value for a in s.axes), *(() if s.predicate is None else (s.predicate,)))
    places = [x.indices for e in exprs for x in prim_loads(e) if x.buffer is region.buffer]
    if isinstance(s, Store) and s.buffer is region.buffer:
        places.append(s.indices)
    if any(region.buffer in addressed(e) for e in exprs):
        return False
    if not all(_holds(region, at, known) for at in places):
        return False
    match s:
        case For():
            known = known.with_extent(s.var, s.begin, s.extent)
        case Let():
            known = known.with_value(s.var, s.value)
        case Block():
            known = _with_axes(known, s.axes)
        case _:
            pass
    return all(_inside(c, region, known) for c in stmt_children(s))


def _holds(region: Region, at: Sequence[PrimExpr], known: Analyzer) -> bool:
    return all(
        known.prove(Compare("le", r.begin, i))
        and known.prove(Compare("lt", i, Binary("add", r.begin, r.extent)))
        for r, i in zip(region.ranges, at, strict=True)
    )
