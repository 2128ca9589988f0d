"""Pixels at the borders of a line in runs of those that see the same taps.

Of a dilated convolution many neighbours do: with taps `gap` pixels apart, what a pixel sees changes
where the first of them comes into the line and where the last of them leaves it, and every `gap`
pixels from there. Such a run is whole tiles, which see what their first rows see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import For, Let, Stmt

from ...blocks.extents import number
from ...blocks.tree import sequence
from .border_loops import Fact
from .tail_tiles import SmallerTiles, halves


@dataclass(frozen=True, slots=True)
class Runs:
    """Where the taps change that pixels see.

    Attributes:
        gap: The pixels between two changes at one end of the line.
        begins: A pixel from which on there is one tap more, of those that come into the line.
        ends: One from which on there is one less, of those that leave it.
        parts: The parts of predicates that say so.
    """

    gap: int
    begins: PrimExpr
    ends: PrimExpr
    parts: tuple[PrimExpr, ...]

    def sizes(self, rows: int) -> list[int]:
        """Of tiles, the largest first: no larger than a run."""
        whole = min(rows, self.gap)
        return [whole, *halves(whole)]


def gap_of(facts: Sequence[Fact], rows: Sequence[For]) -> int | None:
    """The pixels between two changes of what pixels see, where that is the same for all facts.

    Args:
        facts: What says which rows see a border.
        rows: The loops over rows.

    Returns:
        None where taps are no equal number of pixels apart.
    """
    gaps: set[int] = set()
    for fact in facts:
        moving = [(x, by) for x, by in fact.inner if number(x.extent) != 1]
        taps = [by for x, by in moving if all(x is not row for row in rows)]
        pixel = next((by for x, by in moving if any(x is row for row in rows)), None)
        if len(taps) != 1 or pixel is None or taps[0] % pixel:
            return None
        gaps.add(abs(taps[0] // pixel))
    return gaps.pop() if len(gaps) == 1 else None


def in_runs(
    smaller: SmallerTiles,
    runs: Runs,
    line: tuple[PrimVar, PrimVar, PrimVar],
    narrow: PrimExpr,
    rows: int,
) -> Stmt:
    """The pixels before `first` and from `end` on, of a narrow line all, in tiles.

    Both ends are iterations of one loop, so that the code stands once. At an end only one of the
    two kinds of changes counts, in a narrow line, between whose ends nothing lies, both do.

    Args:
        smaller: Tiles of these rows.
        runs: Where what pixels see changes.
        line: How many pixels there are, the first that sees all taps, and the one behind the last.
        narrow: Whether some tap leaves the line before another has come into it.
        rows: How many a whole tile has.
    """
    pixels, first, end = line
    side, nth = PrimVar("side"), PrimVar("run")
    begin, behind, low, high, here, there = (
        PrimVar(n) for n in ("begin", "behind", "low", "high", "here", "there")
    )
    gap = imm(runs.gap)
    phases = [Binary("floormod", e, gap) for e in (runs.begins, runs.ends)]
    left = Compare("eq", side, imm(0))

    def phase(own: int) -> PrimExpr:
        """Where changes are at this end, of one of both kinds: of the other where it is not."""
        at_end = Select(left, phases[0], phases[1])
        return Select(narrow, phases[own], at_end)

    def place(k: PrimExpr) -> PrimExpr:
        """The change that is the k-th from the first one before `begin` on."""
        base = Binary("sub", begin, Binary("floormod", Binary("sub", begin, low), gap))
        whole = Binary("mul", Binary("floordiv", k, imm(2)), gap)
        half = Binary("mul", Binary("floormod", k, imm(2)), Binary("sub", high, low))
        return Binary("add", base, Binary("add", whole, half))

    many = Binary("floordiv", Binary("sub", behind, begin), gap)
    many = Binary("mul", Binary("add", many, imm(2)), imm(2))
    many = Select(Compare("lt", begin, behind), many, imm(0))
    upto = Binary("max", here, Binary("min", place(Binary("add", nth, imm(1))), behind))
    tiles = smaller.of(here, there, runs.sizes(rows), (), alike=runs.parts)
    made: Stmt = Let(there, upto, sequence(tiles))
    made = For(nth, imm(0), many, Let(here, Binary("max", place(nth), begin), made))
    lets = [
        (begin, Select(left, imm(0), Select(narrow, pixels, end))),
        (behind, Select(left, Select(narrow, pixels, first), pixels)),
        (low, Binary("min", phase(0), phase(1))),
        (high, Binary("max", phase(0), phase(1))),
    ]
    for var, value in reversed(lets):
        made = Let(var, value, made)
    return For(side, imm(0), imm(2), made)
