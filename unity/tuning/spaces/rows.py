"""A space for kernels of several sums over the same rows, from their structure alone.

Normalizations, softmax, attention and what is like them: the blocks share their outer axes. They
are done row by row, or some rows at a time, so that what one of them makes is still in registers or
in the first cache when the next one reads it. Sums along a row are as many sums as a few registers
have lanes; products within the rows are tiled for registers. How many rows are done together, which
axis they run along, and how many registers a step has, is left open.
"""

from __future__ import annotations

from contextlib import suppress

from unity.errors import UnityError
from unity.ir.prim_expr import PrimVar
from unity.ir.visit import variables
from unity.transform.blocks.tree import block_path
from unity.transform.schedule.refs import BlockRef, LoopRef
from unity.transform.schedule.schedule import Schedule

from .panels import factors, lane_axis, panels
from .tiles import (
    VECTORS,
    along,
    columns_of,
    factor_of,
    lanes_of,
    multiplies,
    tile,
    written_out,
)
from .turned import lay_out_copy

_ROWS = (8, 16, 32, 64)
"""Rows that are done together where they are multiplied by something."""


def rows_together(sch: Schedule) -> None:
    """Lay a kernel out row by row; what is open is drawn.

    Raises:
        UnityError: Its blocks share no rows, or can't be laid out so.
    """
    if not any("R" in sch.axis_kinds(b) for b in sch.get_blocks()[:-1]):
        raise UnityError("nothing is summed before the last block")
    products = [b for b in sch.get_blocks() if "R" in sch.axis_kinds(b) and multiplies(sch, b)]
    columns = {block.name: columns_of(sch, block) for block in products}
    packed = {name for block in products for name in _pack(sch, block, columns[block.name])}
    copies = {block.name: written_out(sch, block) for block in products}
    for block in sch.get_blocks()[:-1]:
        if "R" not in sch.axis_kinds(block) and block.name not in packed:
            with suppress(UnityError):
                sch.reverse_compute_inline(block)
    *_, last = sch.get_blocks()
    if "R" in sch.axis_kinds(last):
        raise UnityError("the last block is a sum")
    row = _row(sch, last, together=bool(products))
    for block in reversed(sch.get_blocks()[:-1]):
        if block.name not in packed:
            sch.compute_at(block, row)
    laid = {*packed, *(copy.name for copy in copies.values())}
    for block in sch.get_blocks():
        if block.name in packed:
            lay_out_copy(sch, block, lanes_of(sch))
        elif block.name in copies:
            tile(sch, block, copies[block.name], _own(sch, block), columns[block.name], cuts=(1,))
        elif block.name not in laid:
            inner = sch.get_loops(block)[-1]
            if inner != row and sch.extent(inner) != 1:
                along(sch, block, VECTORS)
    sch.parallel(row)


def _pack(sch: Schedule, block: BlockRef, columns: int) -> list[str]:
    """Factors of a product that are copied first, in panels that lanes and steps read in order.

    One along whose rows lanes don't run is; whether another one is, is drawn.
    """
    made: list[str] = []
    found = block_path(sch.func, block.name)[1]
    for k, axes in factors(found):
        if axes[-1] is not lane_axis(found) or _drawn(sch):
            layout = panels(found, axes, columns)
            made.append(sch.reindex_cache_read(block, k, "global", layout).name)
    return made


def _drawn(sch: Schedule) -> bool:
    return bool(sch.sample_categorical([0, 1], [0.5, 0.5]))


def _row(sch: Schedule, block: BlockRef, *, together: bool) -> LoopRef:
    """The loop over rows, or over groups of them, outermost around the last block."""
    loops = list(sch.get_loops(block))
    rows = _rows(sch, block)
    if not rows or len(rows) == len(loops):
        raise UnityError("its blocks share no rows")
    if together:  # those that are done together are neighbours along one of the axes
        long = [k for k in rows if (sch.extent(loops[k]) or _ROWS[-1]) >= _ROWS[-1]]
        if not long:
            raise UnityError("too few rows")
        inner = long[sch.sample_categorical([*range(len(long))], [1 / len(long)] * len(long))]
        rows = [*(k for k in rows if k != inner), inner]
    rest = [x for k, x in enumerate(loops) if k not in rows]
    outer = [loops[k] for k in rows]
    inside: list[LoopRef] = []
    if together:
        outer[-1], part = sch.split(outer[-1], [None, factor_of(sch, outer[-1], _ROWS)])
        inside = [part]
    sch.reorder(*outer, *inside, *rest)
    return sch.fuse(*outer) if len(outer) > 1 else outer[0]


def _rows(sch: Schedule, block: BlockRef) -> list[int]:
    """Which axes of a block all temporaries that it reads are indexed by."""
    found = block_path(sch.func, block.name)[1]
    made = {w.buffer for b in sch.get_blocks() for w in block_path(sch.func, b.name)[1].writes}
    sets: list[set[PrimVar]] = [
        {v for r in read.ranges for v in variables(r.begin)}
        for read in found.reads
        if read.buffer in made and read.buffer not in {w.buffer for w in found.writes}
    ]
    if not sets:
        return []
    shared = set.intersection(*sets)
    return [k for k, axis in enumerate(found.axes) if axis.var in shared]


def _own(sch: Schedule, block: BlockRef) -> tuple[LoopRef, ...]:
    """The loops of a block's axes within the rows."""
    return sch.get_loops(block)[-len(sch.axis_kinds(block)) :]
