"""Lines of memory that a block reads while loops run, each told by values of the loops.

Loops that walk through memory without a gap make a run, of which one element a line is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith.polynomial import from_expr
from unity.ir.arrays.aligned import LINE
from unity.ir.flat_index import flat_index
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.stmt import BlockAxis, Range, Region
from unity.ir.visit import variables

from .access import step
from .site import Site
from .tree import Values, bound_to


@dataclass(frozen=True, slots=True)
class _Digit:
    """A loop, or a dimension of which the block reads a range.

    Attributes:
        var: Its variable.
        begin: The first value.
        extent: How many values there are.
        step: Elements between two of them; None where that is no number.
    """

    var: PrimVar
    begin: PrimExpr
    extent: int
    step: int | None


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines, counted from 0.

    Attributes:
        axes: The block's axes that what is read depends on, and those for ranges.
        indices: What is read, over the axes.
        gaps: Digits between whose values there are gaps, outermost first.
        run: Digits of a run, outermost first.
        each: Elements of a line in a run.
    """

    axes: tuple[BlockAxis, ...]
    indices: tuple[PrimExpr, ...]
    gaps: tuple[_Digit, ...]
    run: tuple[_Digit, ...]
    each: int

    @property
    def count(self) -> int:
        """How many there are."""
        return math.prod(d.extent for d in self.gaps) * -(-self._span // self.each)

    @property
    def _span(self) -> int:
        return math.prod(d.extent for d in self.run)

    def at(self, nth: PrimExpr) -> Values:
        """A line's last element: the first line may begin before what is read does."""
        per_run = imm(-(-self._span // self.each))
        behind = Binary(
            "mul", Binary("add", Binary("floormod", nth, per_run), imm(1)), imm(self.each)
        )
        element = Binary("sub", Binary("min", behind, imm(self._span)), imm(1))
        values = _digits(Binary("floordiv", nth, per_run), self.gaps)
        return values | _digits(element, self.run)


def _digits(n: PrimExpr, digits: Sequence[_Digit]) -> Values:
    values: Values = {}
    for d in reversed(digits):
        values[d.var] = Binary("add", d.begin, Binary("floormod", n, imm(d.extent)))
        n = Binary("floordiv", n, imm(d.extent))
    return values


def lines_of(site: Site, read: Region) -> Lines | None:
    """The lines of a region; None where it is not known how many there are.

    Args:
        site: The block and the loops.
        read: What the block reads, over its axes.
    """
    known, axes = site.known, list(site.block.axes)
    indices: list[PrimExpr] = []
    ranged: list[tuple[PrimVar, PrimExpr, PrimExpr]] = []
    for k, r in enumerate(read.ranges):
        if r.extent == imm(1):
            indices.append(r.begin)
            continue
        part = PrimVar(f"part{k}")
        indices.append(Binary("add", r.begin, part))
        ranged.append((part, imm(0), bound_to(r.extent, axes)))
    over = tuple(bound_to(i, axes) for i in indices)
    for part, _, extent in ranged:
        known = known.with_extent(part, imm(0), extent)
    flat = from_expr(known.simplify(flat_index(read.buffer, over)))
    digits: list[_Digit] = []
    for var, begin, extent in (*((x.var, x.begin, x.extent) for x in site.loops), *ranged):
        if not any(var in variables(i) for i in over):
            continue
        _, most = known.bounds(extent)
        if most is None or variables(begin) & {x.var for x in site.loops}:
            return None
        digits.append(_Digit(var, begin, max(1, most), step(flat, var)))
    run, span = list[_Digit](), 1
    while True:
        following = next((d for d in digits if d.step == span and d not in run), None)
        if following is None:
            break
        run.insert(0, following)
        span *= following.extent
    gaps = tuple(d for d in digits if d not in run)
    used = [a for a in axes if any(a.var in variables(i) for i in indices)]
    for part, begin, _ in ranged:
        (whole,) = (imm(d.extent) for d in digits if d.var is part)
        used.append(BlockAxis(part, "S", Range(begin, whole), part))
    return Lines(
        tuple(used), tuple(indices), gaps, tuple(run), max(1, LINE // read.buffer.dtype.bytes)
    )
