"""Tiles of a line of unknown length whose ends see a border.

Pixels at the border of an image see some taps and not others. Those that see all taps are done in
tiles, the rest of them in smaller ones; the others by themselves, in loops over what they see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import simplify
from unity.arith.region import greater, lesser
from unity.ir.prim_expr import Binary, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, For, Let, Stmt
from unity.ir.visit import stmt_exprs, substitute_prim, substitute_stmt, variables, walk_stmt

from ...blocks.conditions import computing
from ...blocks.extents import number
from ...blocks.tree import Path, Values, known_at, sequence
from .border_loops import Fact, facts_of
from .tail_tiles import SmallerTiles, Tail, halves, registers_of


def at_border(loop: For, above: Path) -> Stmt | None:
    """A line of pixels in tiles that see no border, and what is left of it.

    Args:
        loop: A serial loop over an unknown number of tiles.
        above: The way to it.

    Returns:
        None where none of their rows sees a border.
    """
    if loop.begin != imm(0) or number(loop.extent) is not None:
        return None
    facts = facts_of(loop, above)
    rows = _rows(loop, facts)
    if rows is None or len(facts) == len(rows.counts) or not rows.are_one_with(loop):
        return None
    known = known_at(above)
    count, *others = (known.simplify(_end(f.room(imm(0)), 1)) for f in rows.counts)
    if not all(known.equal(c, count) for c in others):
        return None
    count = lesser(count, Binary("mul", loop.extent, imm(rows.size)), known)
    low: PrimExpr = imm(0)
    high = count
    for fact in facts:
        if any(fact is f for f in rows.counts):
            continue
        by, least = rows.apart(fact)
        room = fact.room(imm(least))
        if by > 0:
            low = greater(low, known.simplify(_first(room, by)), known)
        else:
            high = lesser(high, known.simplify(_end(room, -by)), known)
    parts = tuple(f.part for f in rows.counts)
    tail = Tail(frozenset(x.var for x in rows.loops), rows.size, count, parts, False, None)
    registers = registers_of(loop.body, tail)
    if registers is None:
        return None
    named = [PrimVar(name) for name in ("pixels", "first", "end")]
    pixels, first, end = named
    low, high = lesser(low, pixels, known), greater(high, first, known)
    smaller = SmallerTiles(loop.body, tail, registers, known)
    inside = [f.part for f in facts]
    sizes = [rows.size, *halves(rows.size)]
    made = sequence(
        [
            *smaller.of(imm(0), first, [1]),
            *smaller.of(first, end, sizes, inside),
            *smaller.of(end, pixels, [1]),
        ]
    )
    for var, value in zip(reversed(named), (high, low, count), strict=True):
        made = Let(var, value, made)
    return substitute_stmt(made, {loop.var: imm(0)})


def _first(room: PrimExpr, step: int) -> PrimExpr:
    """The first `x` with ``step * x + room >= 0``."""
    return Binary("floordiv", Binary("sub", imm(step - 1), room), imm(step))


def _end(room: PrimExpr, step: int) -> PrimExpr:
    """The first `x` without ``room - step * x >= 0``."""
    return Binary("add", Binary("floordiv", room, imm(step)), imm(1))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a tile.

    Attributes:
        loops: One written-out loop around each block.
        size: How many there are.
        counts: What says that a row lies inside, for each block.
    """

    loops: Sequence[For]
    size: int
    counts: Sequence[Fact]

    def apart(self, fact: Fact) -> tuple[int, int]:
        """How a fact moves with its row, and the least that other loops within add."""
        (by,) = (by for x, by in fact.inner if any(x is row for row in self.loops))
        return by, min(fact.moved) - min(0, by * (self.size - 1))

    def are_one_with(self, loop: For) -> bool:
        """Whether all below depends on ``size * tile + row`` alone, not on the loop's variable."""
        before = Binary("mul", loop.var, imm(self.size))
        parted: Values = {x.var: Binary("sub", x.var, before) for x in self.loops}

        def stays(e: PrimExpr) -> bool:
            return loop.var in variables(simplify(substitute_prim(e, parted)))

        for s in walk_stmt(loop.body):
            exprs = list(stmt_exprs(s))
            if isinstance(s, Block):
                exprs = [a.value for a in s.axes] + [p for p in (s.predicate,) if p is not None]
            if any(loop.var in variables(e) and stays(e) for e in exprs):
                return False
        return True


def _rows(loop: For, facts: Sequence[Fact]) -> _Rows | None:
    """The rows that all blocks of a tile have in common."""
    loops: list[For] = []
    counts: list[Fact] = []
    for block in computing(loop.body):
        own = [f for f in facts if f.block is block]
        found = [f for f in own if _is_count(f)]
        if len(found) != 1:
            return None
        ((row, _),) = found[0].inner
        if any(all(x is not row for x, _ in f.inner) for f in own):
            return None
        loops.append(row)
        counts += found
    sizes = {number(x.extent) for x in loops}
    size = sizes.pop() if len(sizes) == 1 else None
    return None if size is None or size < 2 else _Rows(loops, size, counts)


def _is_count(fact: Fact) -> bool:
    """Whether it says that a row of a tile lies inside: ``size * tile + row < end``."""
    match fact.inner:
        case ((For(kind="unrolled", begin=Imm(0), extent=Imm(int(size))), -1),):
            return fact.step == -size
        case _:
            return False
