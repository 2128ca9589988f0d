"""A register tile of dot products: steps that put a block that sums up in vector registers.

Each step takes a group of neighbours in depth of a row, which all lanes share, and those of a
register of columns: one instruction adds the group's products to a register of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.machine.dot_units import DotUnit
from unity.machine.target import Target

from ..schedule.dots import intrinsic_of
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule

MOST_ROWS = {16: 14, 32: 12}
"""Rows of a tile, at most, by the registers there are."""


def rows_in_registers(vectors: int, target: Target) -> int:
    """Rows of a tile whose sums, with a step's columns and one row, fit the registers."""
    registers = target.vector_registers
    return max(1, min(MOST_ROWS.get(registers, 12), (registers - 1 - vectors) // vectors))


@dataclass(frozen=True, slots=True)
class DotTile:
    """The loops of a tile.

    Attributes:
        at: The innermost one around it.
        steps: Those of the sum over groups, outermost first.
        rows: The rows, if there are several.
        vector: The registers of columns.
        lane: The columns of a register.
        group: The numbers of a group.
    """

    at: LoopRef
    steps: Sequence[LoopRef]
    rows: Sequence[LoopRef]
    vector: LoopRef
    lane: LoopRef
    group: LoopRef


def dot_tile(
    sch: Schedule, sums: str, result: str, loops: DotTile, unit: DotUnit, lanes: int
) -> None:
    """A block that sums up, in registers, and the one that takes the sums, behind it.

    Args:
        sch: The schedule; the loops around the tile are in order.
        sums: The block that sums up.
        result: The one that takes the sums.
        loops: Of the tile.
        unit: What adds up dot products.
        lanes: Sums of a register.
    """
    sch.reorder(*loops.steps, *loops.rows, loops.vector, loops.lane, loops.group)
    sch.reverse_compute_at(result, loops.at)
    sch.store_at(sums, 0, loops.at)
    init = sch.decompose_reduction(sums, loops.steps[0])
    for name in (init, result):
        _, wide = sch.split(sch.get_loops(name)[-1], [None, lanes])
        sch.vectorize(wide)
    sch.tensorize(loops.lane, intrinsic_of(unit, lanes))
    for loop in (*loops.rows, loops.vector):
        sch.unroll(loop)
