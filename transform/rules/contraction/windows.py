"""Sums over windows in the plain layout: depthwise convolutions and pools, several lines in a tile.

No sum shares anything with its neighbours but what their windows have in common. Lanes run along a
line; a register tile has some vectors of some lines, and the taps across the lines stand in a row
in it, so that a line that several windows see is loaded once for all of them, and a weight once for
all lines. The other taps are loops that stay loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeAlias

from unity.arith.polynomial import Poly, scale
from unity.ir.prim_expr import imm
from unity.ir.symbols.representative import IMAGE, representative_extent
from unity.machine.target import Target

from ...blocks.access import (
    Reshaped,
    all_axes,
    as_written,
    collapse,
    known_of,
    may_trap,
    mentions,
    part,
    place,
    stride,
)
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...roles.reduction import Layout, layout_of
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.threads import share
from ...tactics.tile_sizes import counts
from ..rule import Legal, Neighbourhood, by_steps, worth

Paces: TypeAlias = tuple[int, int]
MOST_TAPS = 128
"""Taps of a window, at most: longer sums have rules of their own."""
MOST_ROW = 8
"""Taps that stand in a row, at most."""
MOST_LINES = 8
"""Lines of a tile, at most."""
MOST_VECTORS = 4
"""Vectors of a tile's line, at most."""


@dataclass(frozen=True, slots=True)
class Windows:
    """What a stage of windows is.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes parted and joined.
        layout: The roles of its axes; none is a row's.
        line: The axis of the lines.
        tap: The reduced axis across lines.
        paces: Places from a line to the next and from a tap to the next, in lowest terms; None
            where no tap sees what another one sees of another line.
        weighs: Whether what is seen is multiplied.
    """

    written: Nest
    shaped: Reshaped
    layout: Layout
    line: Axis
    tap: Axis
    paces: Paces | None
    weighs: bool

    @property
    def reduction(self) -> Reduction:
        """What is summed."""
        assert self.shaped.nest.reduction is not None
        return self.shaped.nest.reduction

    @property
    def steps(self) -> int:
        """Taps of a window."""
        return prod(a.length for a in self.reduction.axes)

    @property
    def taps(self) -> int:
        """How many there are across lines."""
        return number(self.tap.extent) or 1

    @property
    def vectors(self) -> int:
        """Registers of a line; one where that is unknown: none is computed for nothing."""
        return -(-(number(self.layout.column.extent) or 1) // self.layout.lanes)

    @property
    def outer(self) -> tuple[Axis, ...]:
        """The axes around lines."""
        return tuple(a for a in self.layout.outer if a is not self.line)

    def sizes(self, target: Target) -> Iterator[WindowTile]:
        """The tiles that there are registers for."""
        grain = target.machine.grain("multiply_adds")
        count = number(self.line.extent) if self.paces else 1
        most = MOST_VECTORS if self.paces else 2 * MOST_VECTORS  # one line, then
        for row in dict.fromkeys((min(self.taps, MOST_ROW), 1)):
            held = row * (1 + self.weighs) + 1
            for lines in range(1, min(MOST_LINES, count or MOST_LINES) + 1):
                for vectors in range(1, min(most, self.vectors) + 1):
                    if lines * vectors == 1 or lines * vectors + held <= target.vector_registers:
                        yield WindowTile(lines, vectors, row, grain)

    def cost(self, how: WindowTile, target: Target) -> float:
        """Cycles of all lines of an image for the taps across them."""
        steps = -(-self.taps // how.row)
        count = representative_extent(self.line.extent, IMAGE) or 1
        total = 0.0
        for n, lines in counts(count, how.lines):
            for m, vectors in counts(self.vectors, how.vectors):
                loads = _seen(self.paces, lines, how.row) * vectors + how.row * self.weighs
                sums = lines * vectors * how.row
                total += n * m * steps * target.machine.step_cycles(sums, loads, chain=how.row)
        return total


@dataclass(frozen=True, slots=True)
class WindowTile:
    """The decisions.

    Attributes:
        lines: Lines of a tile.
        vectors: Vectors of a line in a tile.
        row: Taps across lines in a row.
        grain: Multiply-adds that a task has at least.
    """

    lines: int
    vectors: int
    row: int
    grain: int


def _match(nest: Nest, target: Target) -> Windows | None:
    """A sum over a known window, of which neighbours across its columns have their own."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    taps = number(product([a.extent for a in nest.reduction.axes]))
    if taps is None or not 1 < taps <= MOST_TAPS:
        return None
    shaped = collapse(part(as_written(nest)))
    reduction = shaped.nest.reduction
    assert reduction is not None
    layout = layout_of(shaped.nest, reduction, target)
    if layout is None or layout.row is not None or layout.lanes == 1:
        return None
    line, tap, paces = _across(shaped.nest, reduction, layout)
    if line is None or tap is None:
        return None
    return Windows(nest, shaped, layout, line, tap, paces, len(reduction.loads()) > 1)


def _across(
    nest: Nest, reduction: Reduction, layout: Layout
) -> tuple[Axis | None, Axis | None, Paces | None]:
    """The lines and the taps across them, such that neighbours see most in common.

    With them what `Windows.paces` says.
    """
    known = known_of(all_axes(nest))
    places = [place(x, known) for x in reduction.loads()]
    places = [p for p in places if mentions(p, layout.column.var)]
    found: list[tuple[Axis, Axis, Paces | None]] = []
    for line in reversed(layout.outer):
        for tap in reversed(reduction.axes):
            for seen in places:
                far, near = stride(seen, line.var), stride(seen, tap.var)
                if far and near and number(line.extent) != 1:
                    found.append((line, tap, _paces(far, near, tap.length)))

    def alone(each: tuple[Axis, Axis, Paces | None]) -> float:
        """The share of what eight lines see that no two of them do."""
        taps = each[1].length
        return _seen(each[2], MOST_LINES, taps) / (MOST_LINES * taps)

    return min(found, key=alone, default=(None, None, None))


def _paces(far: Poly, near: Poly, taps: int) -> Paces | None:
    """How far lines and taps lie apart, in lowest terms; None where no two see the same."""
    one, other = gcd(*far.values()), gcd(*near.values())
    paces = one // gcd(one, other), other // gcd(one, other)
    if scale(near, paces[0]) != scale(far, paces[1]):
        return None
    return paces if _seen(paces, MOST_LINES, taps) < MOST_LINES * taps else None


def _seen(paces: Paces | None, lines: int, taps: int) -> int:
    """Lines that some neighbours see by some taps."""
    if paces is None:
        return lines * taps
    far, near = paces
    return len({line * far + tap * near for line in range(lines) for tap in range(taps)})


def _decide(found: Windows, target: Target) -> WindowTile:
    return min(found.sizes(target), key=lambda how: found.cost(how, target))


def _legal(found: Windows, how: WindowTile, target: Target) -> Neighbourhood:
    registers = f"{target.vector_registers} registers hold the sums and what they are made of"
    sizes = list(found.sizes(target))

    def values(name: str) -> Legal:
        others = {"lines", "vectors", "row"} - {name}
        alike = (s for s in sizes if all(getattr(s, o) == getattr(how, o) for o in others))
        return Legal(sorted({getattr(s, name) for s in alike} | {getattr(how, name)}), registers)

    return {
        "lines": values("lines"),
        "vectors": values("vectors"),
        "row": values("row"),
        "grain": worth("multiply-adds"),
    }


def schedule_windows(sch: Schedule, found: Windows, how: WindowTile, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    sums, layout, nest, reduction = (
        found.written.name,
        found.layout,
        found.shaped.nest,
        found.reduction,
    )
    reshape(sch, found.written, found.shaped, result)
    at = dict(zip([*nest.axes, *reduction.axes], sch.get_loops(sums), strict=True))
    columns, vector, lane = sch.split(at[layout.column], [None, how.vectors, layout.lanes])
    several, line = sch.split(at[found.line], [None, how.lines])
    steps, tap = [at[a] for a in reduction.axes if a is not found.tap], at[found.tap]
    inner = [vector, line]
    if how.row == found.taps:
        inner.append(tap)
    elif how.row == 1:
        steps.append(tap)
    else:
        several_taps, row = sch.split(tap, [None, how.row])
        steps.append(several_taps)
        inner.append(row)
    tasks = [*(at[a] for a in found.outer), several, columns]
    sch.reorder(*tasks, *steps, *inner, lane)
    sch.reverse_compute_at(result, columns)
    sch.store_at(sums, 0, columns)
    init = sch.decompose_reduction(sums, [*steps, *inner][0])
    _, wide = sch.split(sch.get_loops(result)[-1], [None, layout.lanes])
    for loop in (sch.get_loops(init)[-1], wide, lane):
        sch.vectorize(loop)
    for loop in inner:
        sch.unroll(loop)
    lines = ceildiv(found.line.extent, imm(how.lines))
    points = product([*(a.extent for a in found.outer), lines])
    work = how.lines * (representative_extent(layout.column.extent, IMAGE) or 1) * found.steps
    share(sch, tasks[:-1], points, imm(work), how.grain)


WINDOWS = by_steps(
    "windows", _match, _decide, _legal, nest=lambda found: found.written, steps=schedule_windows
)
