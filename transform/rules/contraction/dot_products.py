"""Reductions along contiguous memory: row sums, and products with a transposed matrix.

Lanes run along the reduced axis: each sum of a register tile is a vector of partial sums, joined at
the end. Few sums have longer vectors, as each addition takes four cycles and two may begin in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith.polynomial import Poly
from unity.errors import UnityError
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.stmt import Stmt
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
from ...blocks.stage import stage_of
from ...roles.lanes import lanes_for
from ...roles.reduction import lanes_along
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.result import with_result
from ...tactics.threads import share
from ...tactics.tile_sizes import row_tiers

CHAINS = MACHINE.fma_in_flight
"""Vectors of partial sums that are added to in turn."""
MOST_LANES = 128
"""Partial sums of one sum, at most: `VectorizeLoops` makes no longer vectors."""


TASKS = 8
"""Tasks for each thread, so that none has much more to do than another."""


@dataclass(frozen=True, slots=True)
class Dots:
    """Which axis is which, and how large a tile is.

    Attributes:
        outer: The axes of neither columns nor rows.
        column: Some reads move along it that stand still along the rows, and how many are taken
            together; None where there is none.
        row: Others move along it, likewise.
        lanes: How many partial sums a sum has.
    """

    outer: tuple[Axis, ...]
    column: tuple[Axis, int] | None
    row: tuple[Axis, int] | None
    lanes: int


def dots_of(nest: Nest, target: Target) -> Dots | None:
    """Roles for the axes; None unless reads are contiguous, or still, along the last reduced one.

    Args:
        nest: The stage, its axes joined where they can be.
        target: The machine.
    """
    reduction = nest.reduction
    if reduction is None or may_trap(reduction.value):
        return None
    known = known_of(all_axes(nest))
    if not lanes_along(reduction, known):
        return None
    column, row = _shared_axes(nest, [place(x, known) for x in reduction.loads()])
    largest = 4 if target.vector_registers >= 32 else 2
    columns = None if column is None else (column, _tile(column, largest))
    rows = None if row is None else (row, _tile(row, 4))
    last = reduction.axes[-1]
    bits = max(x.buffer.dtype.bits for x in reduction.loads())
    lanes = lanes_for(max(bits, reduction.value.dtype.bits), target.vector_bits, last.extent)
    sums = (1 if columns is None else columns[1]) * (1 if rows is None else rows[1])
    chains, steps = max(1, CHAINS // sums), number(last.extent)
    while chains > 1 and (
        chains * lanes > MOST_LANES or (steps is not None and steps // lanes < 2 * chains)
    ):
        chains //= 2
    outer = tuple(a for a in nest.axes if a is not column and a is not row)
    return Dots(outer, columns, rows, lanes * chains)


def _tile(axis: Axis, largest: int) -> int:
    """How many columns or rows are taken together.

    One of those that are joined axes of unknown lengths: which points the last tile has is then
    not known well enough to write them back from it.
    """
    if isinstance(axis.extent, Binary):
        return 1
    return row_tiers(axis.extent, largest)[0].size


def matched(nest: Nest, target: Target) -> tuple[Reshaped, Dots] | None:
    """A stage over the axes that it is laid out over, and their roles; None if not for the rule."""
    if nest.reduction is None:
        return None
    shaped = collapse(part(as_written(nest)))
    dots = dots_of(shaped.nest, target)
    return None if dots is None else (shaped, dots)


def dot_products(nest: Nest, target: Target) -> Stmt | None:
    """Applies where every read is contiguous, or still, along the innermost reduced axis."""
    found = matched(nest, target)
    if found is None:
        return None
    shaped, dots = found
    stage = stage_of(shaped.nest, named=True)
    sch = Schedule(stage.func, target)
    try:
        schedule_dots(sch, shaped.nest, dots, f"{nest.name}_result")
    except UnityError:
        return None
    return stage.around(sch.func.body)


def steps_of_dots(sch: Schedule, nest: Nest, behind: Sequence[str]) -> None:
    """Lay out a block as it was written, and those behind it that transform its result.

    Args:
        sch: A schedule for a target.
        nest: The stage that they are.
        behind: The names of the blocks behind.

    Raises:
        UnityError: A step is not known to be legal.
    """
    assert sch.target is not None
    found = matched(nest, sch.target)
    assert found is not None
    shaped, dots = found
    result = with_result(sch, nest.name, behind)
    reshape(sch, nest, shaped, result)
    schedule_dots(sch, shaped.nest, dots, result)


def schedule_dots(sch: Schedule, nest: Nest, dots: Dots, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    reduction, sums = nest.reduction, nest.name
    assert reduction is not None
    assert sch.target is not None
    at = dict(zip([*nest.axes, *reduction.axes], sch.get_loops(sums), strict=True))
    tasks: list[LoopRef] = [at[a] for a in dots.outer]
    counts = [a.extent for a in dots.outer]
    tile: list[LoopRef] = []
    work = product([a.extent for a in reduction.axes])
    for axis, size in (x for x in (dots.column, dots.row) if x is not None):
        several, few = sch.split(at[axis], [None, size])
        tasks.append(several)
        tile.insert(0, few)
        counts.append(ceildiv(axis.extent, imm(size)))
        work = product([work, imm(size)])
    *others, last = reduction.axes
    step, lane = sch.split(at[last], [None, dots.lanes])
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
    if extent is None or extent % dots.lanes:
        sch.peel(step, 0, 1)
    if tasks:
        some = _enough(counts, sch.target.threads)
        work = product([work, *counts[some:]])
        share(sch, tasks[:some], product(counts[:some]), work, "multiply_adds")


def _enough(counts: Sequence[PrimExpr], threads: int) -> int:
    """How many of the loops over tiles, from the outermost, have work for all threads.

    No more of them are joined than need be: their index is divided in each iteration.
    """
    total = 1
    for k, count in enumerate(counts, 1):
        known = number(count)
        total *= known or 0
        if total >= TASKS * threads:
            return k
    return len(counts)


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
