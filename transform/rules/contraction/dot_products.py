"""Reductions along contiguous memory: row sums, and products with a transposed matrix.

Lanes run along the reduced axis: each sum of a register tile is a vector of partial sums, joined at
the end. Few sums have longer vectors, as each addition takes four cycles and two may begin in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, imm
from unity.machine.machine import MACHINE
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
)
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Axis, Nest
from ...roles.lanes import lanes_for
from ...roles.reduction import lanes_along
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.threads import enough_tasks, share
from ...tactics.tile_sizes import even_size
from ..rule import Legal, Neighbourhood, by_steps, worth

CHAINS = MACHINE.fma_in_flight
"""Vectors of partial sums that are added to in turn."""
MOST_LANES = 128
"""Partial sums of one sum, at most: `VectorizeLoops` makes no longer vectors."""
MOST_ROWS = 4
"""Rows of a tile, at most."""


@dataclass(frozen=True, slots=True)
class Dots:
    """A reduction whose reads move along memory, or stand still, along the last reduced axis.

    Attributes:
        written: It as it was written.
        shaped: It over the axes that it is laid out over, parted and joined.
        outer: The axes of neither columns nor rows.
        column: Some reads move along it that stand still along the rows; None where there is none.
        row: Others move along it, likewise.
        lanes: How many elements, or partial sums, a vector has.
    """

    written: Nest
    shaped: Reshaped
    outer: tuple[Axis, ...]
    column: Axis | None
    row: Axis | None
    lanes: int

    @property
    def depth(self) -> Axis:
        """The axis of the lanes."""
        assert self.shaped.nest.reduction is not None
        return self.shaped.nest.reduction.axes[-1]


@dataclass(frozen=True, slots=True)
class DotProductTile:
    """The decisions.

    Attributes:
        columns: Columns of a register tile.
        rows: Its rows.
        lanes: Partial sums of each of its sums.
        grain: Multiply-adds that are worth waking a thread for.
    """

    columns: int
    rows: int
    lanes: int
    grain: int


def dots_of(nest: Nest, target: Target) -> Dots | None:
    """Roles for the axes; None unless reads are contiguous, or still, along the last reduced one.

    Args:
        nest: The stage as it was written.
        target: The machine.
    """
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = collapse(part(as_written(nest)))
    axes, reduction = shaped.nest.axes, shaped.nest.reduction
    assert reduction is not None
    known = known_of(all_axes(shaped.nest))
    if not lanes_along(reduction, known):
        return None
    column, row = _shared_axes(shaped.nest, [place(x, known) for x in reduction.loads()])
    bits = max(x.buffer.dtype.bits for x in reduction.loads())
    extent = reduction.axes[-1].extent
    lanes = lanes_for(max(bits, reduction.value.dtype.bits), target.vector_bits, extent)
    outer = tuple(a for a in axes if a is not column and a is not row)
    return Dots(nest, shaped, outer, column, row, lanes)


def tile_of(dots: Dots, target: Target) -> DotProductTile:
    """A tile whose sums keep the multipliers busy."""
    columns = _tile(dots.column, 4 if target.many_registers else 2)
    rows = _tile(dots.row, MOST_ROWS)
    chains, steps = max(1, CHAINS // (columns * rows)), number(dots.depth.extent)
    while chains > 1 and (
        chains * dots.lanes > MOST_LANES or (steps is not None and steps // dots.lanes < 2 * chains)
    ):
        chains //= 2
    return DotProductTile(columns, rows, chains * dots.lanes, target.machine.grain("multiply_adds"))


def _tile(axis: Axis | None, largest: int) -> int:
    """How many columns or rows are taken together.

    One of those that are joined axes of unknown lengths: which points the last tile has is then
    not known well enough to write them back from it.
    """
    if axis is None or isinstance(axis.extent, Binary):
        return 1
    return even_size(axis.extent, largest)


def _legal(dots: Dots, how: DotProductTile, target: Target) -> Neighbourhood:
    steps = number(dots.depth.extent)
    lanes = [n for n in (1 << k for k in range(1, 8)) if steps is None or n < 2 * steps]
    return {
        "columns": _fitting(dots.column, how.rows, target),
        "rows": _fitting(dots.row, how.columns, target),
        "lanes": Legal(lanes, f"a sum has {'so many' if steps is None else steps} steps"),
        "grain": worth("multiply-adds"),
    }


def _fitting(axis: Axis | None, others: int, target: Target) -> Legal:
    """How many of an axis a tile may have, which has so many of the other one."""
    if axis is None:
        return Legal((1,), "there is no such axis")
    if isinstance(axis.extent, Binary):
        return Legal((1,), "the axis is joined of some of unknown lengths")
    registers = target.vector_registers
    most = max(1, min(number(axis.extent) or registers, registers // others))
    return Legal(range(1, most + 1), f"{registers} registers hold the sums")


def schedule_dots(sch: Schedule, dots: Dots, how: DotProductTile, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    reshape(sch, dots.written, dots.shaped, result)
    tile_dots(sch, dots, how, dots.written.name, result)


def tile_dots(sch: Schedule, dots: Dots, how: DotProductTile, sums: str, result: str) -> None:
    """The same where the blocks are over the axes that they are laid out over."""
    nest, reduction = dots.shaped.nest, dots.shaped.nest.reduction
    assert reduction is not None
    assert sch.target is not None
    at = dict(zip([*nest.axes, *reduction.axes], sch.get_loops(sums), strict=True))
    tasks: list[LoopRef] = [at[a] for a in dots.outer]
    counts = [a.extent for a in dots.outer]
    tile: list[LoopRef] = []
    work = product([a.extent for a in reduction.axes])
    for axis, size in ((dots.column, how.columns), (dots.row, how.rows)):
        if axis is None:
            continue
        several, few = sch.split(at[axis], [None, size])
        tasks.append(several)
        tile.insert(0, few)
        counts.append(ceildiv(axis.extent, imm(size)))
        work = product([work, imm(size)])
    *others, last = reduction.axes
    step, lane = sch.split(at[last], [None, how.lanes])
    steps = [*(at[a] for a in others), step]
    sch.reorder(*tasks, *steps, *tile, lane)
    if tasks:
        sch.reverse_compute_at(result, tasks[-1])
        sch.store_at(sums, 0, tasks[-1])
    sch.vectorize(lane)
    (partial,) = sch.get_child_blocks(lane)
    init = sch.decompose_reduction(partial, steps[0])
    sch.vectorize(sch.get_loops(init)[-1])
    for loop in tile:
        sch.unroll(loop)
    extent = number(last.extent)
    if extent is None or extent % how.lanes:
        sch.peel(step, 0, 1)
    if tasks:
        some = enough_tasks(counts, sch.target.threads)
        work = product([work, *counts[some:]])
        share(sch, tasks[:some], product(counts[:some]), work, how.grain)


def _shared_axes(nest: Nest, reads: Sequence[Poly]) -> tuple[Axis | None, Axis | None]:
    """Two axes such that reads move along one of them but not the other: columns, then rows."""

    def moves(axis: Axis) -> frozenset[int]:
        return frozenset(i for i, index in enumerate(reads) if mentions(index, axis.var))

    long = [a for a in nest.axes if (number(a.extent) or 99) > 1]
    for column in reversed(long):
        for row in reversed(long):
            if row is not column and moves(row) - moves(column) and moves(column) - moves(row):
                return column, row
    return None, (long[-1] if long else None)


DOT_PRODUCTS = by_steps(
    "dot_products", dots_of, tile_of, _legal, nest=lambda dots: dots.written, steps=schedule_dots
)
