"""Pixels at the borders of a line in runs of those that see the same taps.

Of a dilated convolution many neighbours do: with taps `gap` pixels apart, what a pixel sees changes
where the first of them comes into the line and where the last of them leaves it, and every `gap`
pixels from there. Such a run is whole tiles, which see what its first pixel sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import For, Let, Stmt

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
        facts: What says so.
    """

    gap: int
    begins: PrimExpr
    ends: PrimExpr
    facts: tuple[Fact, ...]

    @property
    def parts(self) -> tuple[PrimExpr, ...]:
        """The parts of predicates that hold for all pixels of a run or for none."""
        return tuple(f.part for f in self.facts)

    def sizes(self, rows: int) -> list[int]:
        """Of tiles, the largest first: no larger than a run."""
        whole = min(rows, self.gap)
        return [whole, *halves(whole)]


def runs_of(
    facts: Sequence[Fact],
    rows: Sequence[For],
    begins: Sequence[PrimExpr],
    ends: Sequence[PrimExpr],
) -> Runs | None:
    """Where the taps change that pixels see.

    Args:
        facts: What says which rows see a border.
        rows: The loops over rows.
        begins: The pixels from which on all taps have come into the line, by one of the facts each.
        ends: Those from which on one of them has left it.

    Returns:
        None where neighbours see others, where there is one tap, or where more than two facts tell.
    """
    gaps = {_gap(fact, rows) for fact in facts}
    gap = gaps.pop() if len(gaps) == 1 else None
    if gap is None or gap < 2 or max(len(begins), len(ends)) > 1:
        return None
    begin, end = [*begins, *ends][0], [*begins, *ends][-1]
    return Runs(gap, begin, end, tuple(facts))


def _gap(fact: Fact, rows: Sequence[For]) -> int | None:
    """The pixels from one tap to the next, where that is a number of them."""
    pixel = [by for x, by in fact.inner if any(x is row for row in rows)]
    taps = [by for x, by in fact.inner if all(x is not row for row in rows)]
    if len(pixel) != 1 or len(taps) != 1 or taps[0] % pixel[0]:
        return None
    return abs(taps[0] // pixel[0])


def in_runs(
    smaller: SmallerTiles,
    runs: Runs,
    line: tuple[PrimVar, PrimVar, PrimVar],
    narrow: PrimExpr,
) -> Stmt:
    """The pixels before `first` and from `end` on, of a narrow line all, in tiles.

    Both ends are iterations of one loop, so that the code stands once. At an end only one of the
    two kinds of changes counts, in a narrow line, between whose ends nothing lies, both do.

    Args:
        smaller: Tiles of these rows.
        runs: Where what pixels see changes.
        line: How many pixels there are, the first that sees all taps, and the one behind the last.
        narrow: Whether some tap leaves the line before another has come into it.
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

    gaps = Binary("floordiv", Binary("sub", behind, begin), gap)
    changes = Binary("mul", Binary("add", gaps, imm(2)), imm(2))
    many = Select(Compare("lt", begin, behind), changes, imm(0))
    upto = Binary("max", here, Binary("min", place(Binary("add", nth, imm(1))), behind))
    sizes, counts = runs.sizes(smaller.tail.size), smaller.tail.parts
    tiles = smaller.of(here, there, sizes, counts, alike=runs.parts)
    made: Stmt = Let(there, upto, sequence(tiles))
    made = For(nth, imm(0), many, Let(here, Binary("max", place(nth), begin), made))
    lets: list[tuple[PrimVar, PrimExpr]] = [
        (begin, Select(left, imm(0), Select(narrow, pixels, end))),
        (behind, Select(left, Select(narrow, pixels, first), pixels)),
        (low, Binary("min", phase(0), phase(1))),
        (high, Binary("max", phase(0), phase(1))),
    ]
    for var, value in reversed(lets):
        made = Let(var, value, made)
    return For(side, imm(0), imm(2), made)
