"""Tiles of a line of unknown length whose ends see a border.

Pixels at the border of an image see some taps and not others. A line that is long enough is whole
tiles: one at each end, in which it is known which taps a pixel sees there, and others between,
which see all taps and may begin where another has not ended. Of a shorter line the pixels that see
all taps are done in smaller tiles; the others by themselves, in loops over what they see. Where
neighbours see the same taps, as under dilated ones, those at a border are done in runs instead
(`border_runs.py`), however long the line is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer, simplify
from unity.arith.region import greater, lesser
from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, Compare, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, Buffer, For, IfThen, Let, Stmt
from unity.ir.visit import stmt_exprs, substitute_prim, substitute_stmt, variables, walk_stmt

from ...blocks.conditions import computing
from ...blocks.extents import number
from ...blocks.site import sites
from ...blocks.tree import Path, Values, conjunction, known_at, sequence
from .border_loops import Fact, facts_of
from .border_runs import in_runs, runs_of
from .tail_tiles import ALL_SIZES, SmallerTiles, Tail, accesses_in, halves, registers_of

SPARED = 3
"""Rows that smaller tiles, which wait for their own sums, cost beyond those that they have."""


def least_line(rows: int) -> int:
    """The pixels of a line from which on two whole tiles cost less than what smaller ones do."""
    return 2 * rows - SPARED


def at_border(loop: For, above: Path, *, repeats: bool) -> Stmt | None:
    """A line of pixels in tiles that see no border, and what is left of it.

    Args:
        loop: A serial loop over tiles of an unknown number of pixels.
        above: The way to it.
        repeats: Whether rows may be computed twice, what is written being none of what is read.

    Returns:
        None where none of their rows sees a border.
    """
    if loop.begin != imm(0):
        return None
    facts = facts_of(loop, above)
    rows = _rows(loop, facts) or _whole_rows(loop, above, facts)
    if rows is None or len(facts) == len(rows.counts) or not rows.are_one_with(loop):
        return None
    known = known_at(above)
    counts = [known.simplify(_end(f.room(imm(0)), 1)) for f in rows.counts]
    if not all(known.equal(c, counts[0]) for c in counts[1:]):
        return None
    count: PrimExpr = known.simplify(Binary("mul", loop.extent, imm(rows.size)))
    if counts:
        count = lesser(counts[0], count, known)
    if number(count) is not None:
        return None
    borders = [f for f in facts if all(f is not x for x in rows.counts)]
    begins, ends = _changes(rows, borders, known)
    low: PrimExpr = imm(0)
    high = count
    for change in begins:
        low = greater(low, change, known)
    for change in ends:
        high = lesser(high, change, known)
    parts = tuple(f.part for f in rows.counts)
    tail = Tail(frozenset(x.var for x in rows.loops), rows.size, count, parts, False, None)
    registers = registers_of(loop.body, tail)
    if registers is None:
        return None
    named = [PrimVar(name) for name in ("pixels", "first", "end")]
    pixels, first, end = named
    smaller = SmallerTiles(loop.body, tail, registers, known)
    inside = [f.part for f in facts]
    sizes = [rows.size, *halves(rows.size)]
    runs = runs_of(borders, rows.loops, begins, ends)
    repeats = repeats and runs is None and _repeatable(loop.body, registers)
    repeats = repeats and _has_room(rows.size, low, high, count, known)
    if repeats:
        sizes = [n for n in sizes if n < rows.size or n > ALL_SIZES]
    middle = sequence(smaller.of(first, end, sizes, inside))
    if runs is None:
        before, behind = smaller.of(imm(0), first, [1]), smaller.of(end, pixels, [1])
        made = sequence([*before, middle, *behind])
    else:
        narrow = Compare("lt", high, low)
        made = sequence([middle, in_runs(smaller, runs, (pixels, first, end), narrow)])
    if repeats:
        whole = _overlapping(smaller, rows, facts, (pixels, first), count)
        made = IfThen(_is_long(rows.size, pixels, first, end), whole, made)
    low, high = lesser(low, pixels, known), greater(high, first, known)
    for var, value in zip(reversed(named), (high, low, count), strict=True):
        made = Let(var, value, made)
    return substitute_stmt(made, {loop.var: imm(0)})


def _changes(
    rows: _Rows, borders: Sequence[Fact], known: Analyzer
) -> tuple[list[PrimExpr], list[PrimExpr]]:
    """For each fact the pixel from which on all its taps are inside, or from which on not all."""
    begins, ends = list[PrimExpr](), list[PrimExpr]()
    for fact in borders:
        by, least = rows.apart(fact)
        room = fact.room(imm(least))
        if by > 0:
            begins.append(known.simplify(_first(room, by)))
        else:
            ends.append(known.simplify(_end(room, -by)))
    return begins, ends


def _is_long(size: int, pixels: PrimVar, first: PrimVar, end: PrimVar) -> PrimExpr:
    """Whether a line is long enough for a whole tile at each end."""
    limits = (
        Compare("le", imm(size), end),
        Compare("le", Binary("add", first, imm(size)), pixels),
        Compare("le", imm(least_line(size)), pixels),
    )
    found = conjunction(limits)
    assert found is not None
    return found


def _has_room(size: int, low: PrimExpr, high: PrimExpr, count: PrimExpr, known: Analyzer) -> bool:
    """Whether a tile lies between the borders of each line that is longer than two tiles."""

    def most(width: PrimExpr) -> int:
        fits = (n for n in range(size + 1) if known.prove(Compare("le", width, imm(n))))
        return next(fits, size + 2)

    return most(low) + most(known.simplify(Binary("sub", count, high))) <= size + 1


def _overlapping(
    smaller: SmallerTiles,
    rows: _Rows,
    facts: Sequence[Fact],
    line: tuple[PrimVar, PrimVar],
    count: PrimExpr,
) -> Stmt:
    """A line in whole tiles: one at each end, which sees one border, and others between.

    The last two begin where they end in time: some rows are computed twice. There is a whole tile
    in front of the border that the line ends with, and one behind the border that it begins with.

    Args:
        smaller: Tiles of these rows.
        rows: The rows of a tile.
        facts: What says which rows are there, and which see a border.
        line: How many pixels there are, and the first that sees all taps.
        count: What the number of pixels is.
    """
    size, (pixels, first) = rows.size, line
    ends: tuple[list[PrimExpr], list[PrimExpr]] = [], []
    for fact in facts:
        by = -1 if any(fact is f for f in rows.counts) else rows.apart(fact)[0]
        ends[by > 0].append(fact.part)
    above, below = ends
    counts = [f.part for f in rows.counts]
    nth, last = PrimVar("tile"), PrimVar("last")
    left = Binary("sub", pixels, imm(2 * size))
    tiles = Binary("floordiv", Binary("add", left, imm(size - 1)), imm(size))
    place = Binary("min", Binary("mul", Binary("add", nth, imm(1)), imm(size)), last)
    tile = smaller.at(place, size, [*above, *below], named=True)
    between = For(nth, imm(0), Binary("max", tiles, imm(0)), tile)
    return sequence(
        [
            smaller.at(imm(0), size, above),
            Let(last, Binary("max", first, left), between),
            smaller.at(Binary("sub", count, imm(size)), size, [*counts, *below]),
        ]
    )


def _repeatable(s: Stmt, registers: frozenset[Buffer]) -> bool:
    """Whether a tile does the same when done again: it reads nothing that it leaves behind."""
    written = {r.buffer for b in computing(s) for r in b.writes} - registers
    accesses = [a for b in computing(s) for a in accesses_in(b)]
    read = {a.buffer for a in accesses if isinstance(a, Load)}
    return not written & read and not any(symbols_in(b) for b in computing(s))


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
        counts: What says that a row lies inside, for each block; nothing where all do.
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
        return not any(self._stays(loop, s) for s in walk_stmt(loop.body))

    def are_one_with_block(self, loop: For, block: Block) -> bool:
        """Whether a block does."""
        return not self._stays(loop, block)

    def _stays(self, loop: For, s: Stmt) -> bool:
        before = Binary("mul", loop.var, imm(self.size))
        parted: Values = {x.var: Binary("sub", x.var, before) for x in self.loops}
        exprs = list(stmt_exprs(s))
        if isinstance(s, Block):
            exprs = [a.value for a in s.axes] + [p for p in (s.predicate,) if p is not None]
        return any(
            loop.var in variables(simplify(substitute_prim(e, parted)))
            for e in exprs
            if loop.var in variables(e)
        )


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


def _whole_rows(loop: For, above: Path, facts: Sequence[Fact]) -> _Rows | None:
    """The same of tiles that fill every line, so that no block asks whether its row lies inside."""
    sizes = {number(x.extent) for f in facts for x, by in f.inner if _is_row(x, by, f)}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is None or size < 2 or not all(f.is_border for f in facts):
        return None
    loops: list[For] = []
    doing = computing(loop.body)
    for site in sites(loop.body, (*above, loop), lambda b: b in doing):
        driving = [x for x in site.loops if _is_written_out(x) and number(x.extent) == size]
        found = [x for x in driving if _Rows([x], size, []).are_one_with_block(loop, site.block)]
        if not found:
            return None
        loops.append(found[0])
    if any(all(x is not row for x, _ in f.inner for row in loops) for f in facts):
        return None
    return _Rows(loops, size, [])


def _is_row(x: For, by: int, fact: Fact) -> bool:
    """Whether a loop within is over rows of a tile, ``by * (size * tile + row)``."""
    return _is_written_out(x) and by * (number(x.extent) or 0) == fact.step


def _is_written_out(x: For) -> bool:
    return x.kind == "unrolled" and x.begin == imm(0)


def _is_count(fact: Fact) -> bool:
    """Whether it says that a row of a tile lies inside: ``size * tile + row < end``."""
    match fact.inner:
        case ((For(kind="unrolled", begin=Imm(0), extent=Imm(int(size))), -1),):
            return fact.step == -size
        case _:
            return False
