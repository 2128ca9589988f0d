"""Blocks that read across what they write: rectangles of a register by a line, turned in registers.

Lanes run along what is written; lowering turns a rectangle whose lines are written out where what
is read lies along them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from unity.errors import UnityError
from unity.ir.prim_expr import Binary, PrimVar
from unity.ir.stmt import Block, Region
from unity.transform.blocks.tree import block_path
from unity.transform.schedule.refs import AnyBlock, LoopRef
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.state import name_of

_LINES = 16
"""Lines of a rectangle: so many lie in registers."""


def lay_out_copy(sch: Schedule, block: AnyBlock, lanes: int) -> None:
    """A block that makes one element from another: threads outside, lanes along what is written.

    Args:
        sch: The schedule.
        block: The block, a loop for each of its axes; nothing is summed.
        lanes: How many a register has.

    Raises:
        UnityError: Its loops are no axes of its.
    """
    found, loops = block_path(sch.func, name_of(block))[1], list(sch.get_loops(block))
    (write,) = found.writes
    across = axis_along(found, write)
    if across is None or len(loops) != len(found.axes):
        raise UnityError(f"{found.name}: nothing runs along what it writes")
    along = read_along(found, across)
    outer = [loop for k, loop in enumerate(loops) if k not in (across, along)]
    tile: list[LoopRef] = []
    if along is not None:
        part, row = sch.split(loops[along], [None, _LINES])
        outer.append(part)
        tile.append(row)
    part, lane = sch.split(loops[across], [None, lanes])
    outer.append(part)
    sch.reorder(*outer, *tile, lane)
    sch.vectorize(lane)
    for row in tile:
        sch.unroll(row)
    _on_threads(sch, outer if tile else outer[:-1] or outer)


def reads_across(sch: Schedule, block: AnyBlock) -> bool:
    """Whether a block makes one element from another that lies along another axis."""
    found = block_path(sch.func, name_of(block))[1]
    if found.init is not None or len(found.writes) != 1:
        return False
    across = axis_along(found, found.writes[0])
    return across is not None and read_along(found, across) is not None


def axis_along(block: Block, region: Region) -> int | None:
    """Which axis a buffer's last dim is indexed by; None where it is no axis alone.

    Of a panel it is what is left of an axis by the panel's columns.
    """
    last = region.ranges[-1].begin
    if isinstance(last, Binary) and last.op == "floormod":
        last = last.a
    axes = [a.var for a in block.axes]
    return axes.index(last) if isinstance(last, PrimVar) and last in axes else None


def read_along(block: Block, across: int) -> int | None:
    """The axis that what is read runs along, if it is another than what is written runs along.

    Args:
        block: The block.
        across: The axis that what is written runs along.
    """
    found = (axis_along(block, read) for read in block.reads)
    return next((k for k in found if k is not None and k != across), None)


def _on_threads(sch: Schedule, loops: Sequence[LoopRef]) -> None:
    with suppress(UnityError):
        sch.parallel(sch.fuse(*loops) if len(loops) > 1 else loops[0])
