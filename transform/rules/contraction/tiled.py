"""Reductions whose output rows lie contiguous: matrix products, convolutions, column sums, pooling.

Lanes run along the output's innermost axis; a second axis, along which the vector operand does not
move, gives the rows of a register tile. Threads share the columns, a tile's with all rows,
and chunks of rows where there are few of them. A result that is larger than the second cache and
all that is multiplied is passed along its rows instead: else each task would write a few lines of
every page of it (512 filters of 10 taps over 3,201 frames, on a Xeon without AMX: 770 us, now 465;
1,700 and 635 where caches are cold). Columns that lie far apart are copied to a panel by
the first tile of rows; the others read it in order and, where columns come from behind the second
cache, ask for those of the next tile: no one else would, as each line of memory is read once (64 x
256 by 256 x 3136 floats, a convolution of single pixels, take 670 us without and 620 so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import bounds
from unity.ir.prim_expr import Compare, PrimExpr, PrimVar, imm
from unity.machine.stack import ROW_BYTES
from unity.machine.target import Target

from ...blocks.access import Reshaped, as_written, collapse, may_trap, part
from ...blocks.extents import number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.tree import block_path
from ...roles.reduction import Layout, layout_of
from ...schedule.index_map import IndexMap
from ...schedule.refs import BlockRef, LoopRef
from ...schedule.schedule import Schedule
from ...tactics.packing import Packing, packing_of
from ...tactics.reshaping import reshape
from ...tactics.tiling import Tiling, tiling_of
from ..rule import EITHER, Legal, Neighbourhood, by_steps, worth
from .dot_products import Dots, dots_of, tile_dots, tile_of

MOST_STEPS = 8
"""Steps in a row, at most."""
MOST_CHUNK = 1 << 16
"""Tiles of rows that a chunk has, at most."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """A stage that is laid out as a contraction.

    Attributes:
        written: It as it was written.
        shaped: It over the axes that it is laid out over, parted and joined.
        layout: Their roles.
        packing: The columns that may be copied; None where that would not pay.
        is_plain: Whether lanes need no copy of the columns.
        dots: The sums along lanes, of few rows of which columns would have to be copied.
    """

    written: Nest
    shaped: Reshaped
    layout: Layout
    packing: Packing | None
    is_plain: bool
    dots: Dots | None

    @property
    def reduction(self) -> Reduction:
        """What is summed."""
        assert self.shaped.nest.reduction is not None
        return self.shaped.nest.reduction

    @property
    def copied_by_tile(self) -> bool:
        """Whether the first tile of rows copies columns while it reads them."""
        row, packing = self.layout.row, self.packing
        if row is None or packing is None or packing.transposed:
            return False
        return number(row.extent) is not None

    def enough_rows(self, tile: int) -> PrimExpr | None:
        """When a copy pays, where that is known at run time only, and there is another way.

        None where it pays for a single tile of so many rows: fewer are the tail of one.
        """
        row = self.layout.row
        if self.packing is None or row is None or (bounds(row.extent)[0] or 0) >= self.packing.rows:
            return None
        if self.dots is None and (self.packing.rows <= tile or not self.is_plain):
            return None
        return Compare("ge", row.extent, imm(self.packing.rows))


def _match(nest: Nest, target: Target) -> Contraction | None:
    """A reduction whose innermost spatial axis is contiguous in the output and in what is read."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = collapse(part(as_written(nest)))
    reduction = shaped.nest.reduction
    assert reduction is not None
    layout = layout_of(shaped.nest, reduction, target, strided=True)
    if layout is None:
        return None
    packing = packing_of(reduction, layout)
    most = None if layout.row is None else bounds(layout.row.extent)[1]
    if packing is not None and most is not None and most < packing.rows:
        packing = None
    is_plain = layout_of(shaped.nest, reduction, target) is not None
    if packing is None and not is_plain:
        return None
    dots = None if is_plain else dots_of(nest, target)
    return Contraction(nest, shaped, layout, packing, is_plain, dots)


def _decide(found: Contraction, target: Target) -> Tiling:
    return tiling_of(found.layout, found.reduction, target, found.packing)


def _legal(found: Contraction, how: Tiling, target: Target) -> Neighbourhood:
    layout, registers = found.layout, target.vector_registers
    columns, row = number(layout.column.extent), layout.row
    vectors = registers if columns is None else -(-columns // layout.lanes)
    rows = 1 if row is None else number(row.extent)
    beside = 1 if layout.beside is None else number(layout.beside.extent)
    steps = number(found.reduction.axes[-1].extent) or MOST_STEPS
    chunks = MOST_CHUNK if rows is None else min(MOST_CHUNK, -(-rows // how.rows) - 1)

    def upto(extent: int | None, others: int) -> Legal:
        most = min(registers // others, registers if extent is None else extent)
        return Legal(range(1, max(1, most) + 1), f"{registers} registers hold the sums")

    ahead = Legal((False,), "no other columns are copied behind these")
    if how.copied and found.copied_by_tile and vectors > how.vectors:
        ahead = EITHER
    by_rows = Legal((False,), "tasks have all rows, a chunk of them, or a panel")
    if row is not None and not how.chunk and not how.copied:
        by_rows = EITHER
    return {
        "rows": upto(rows, how.vectors * how.beside),
        "beside": upto(beside, how.vectors * how.rows),
        "vectors": upto(vectors, how.rows * how.beside),
        "steps": Legal(range(1, max(1, min(steps, MOST_STEPS)) + 1), f"{MOST_STEPS} at most"),
        "chunk": Legal(range(chunks + 1), "a task has some of the tiles of rows, or, of 0, all"),
        "by_rows": by_rows,
        "ahead": ahead,
        "copied": _copies(found),
        "grain": worth("multiply-adds"),
    }


def _copies(found: Contraction) -> Legal:
    if found.packing is None:
        return Legal((False,), "no copy of columns would be used again")
    return EITHER if found.is_plain else Legal((True,), "columns lie far apart")


def schedule_contraction(sch: Schedule, found: Contraction, how: Tiling, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule.

    Where it is known at run time only whether there are rows enough to copy columns, both ways.
    """
    sums, target = found.written.name, sch.target
    assert target is not None
    reshape(sch, found.written, found.shaped, result)
    bare = replace(found, packing=None)
    if not how.copied:
        _tiled(sch, bare, how, sums, result)
        return
    enough = found.enough_rows(how.rows)
    if enough is not None:
        few, few_result = sch.specialize_when(enough, sums, result)
        if found.dots is None:
            tiling = tiling_of(found.layout, found.reduction, target, None)
            _tiled(sch, bare, tiling, few.name, few_result.name)
        else:
            tile = tile_of(found.dots, target)
            tile_dots(sch, found.dots, tile, few.name, few_result.name)
    _tiled(sch, found, how, sums, result)


def _tiled(sch: Schedule, found: Contraction, tiling: Tiling, sums: str, result: str) -> None:
    """The blocks of one version."""
    nest, layout, packing, reduction = (
        found.shaped.nest,
        found.layout,
        found.packing,
        found.reduction,
    )
    at = dict(zip([*nest.axes, *reduction.axes], sch.get_loops(sums), strict=True))
    inner: list[LoopRef] = []
    tasks: list[LoopRef] = [at[a] for a in layout.outer]
    columns, vector, lane = sch.split(at[layout.column], [None, tiling.vectors, layout.lanes])
    tasks.append(columns)
    beside: list[LoopRef] = []
    if layout.beside is not None:
        several, line = sch.split(at[layout.beside], [None, tiling.beside])
        # Of unknown number they are a loop of their own: it is parted where the last ones are few.
        (tasks if number(layout.beside.extent) else beside).append(several)
        inner.append(line)
    tiles: list[LoopRef] = []
    if layout.row is not None:
        chunk = [tiling.chunk] if tiling.chunk else []
        *outside, tile, row = sch.split(at[layout.row], [None, *chunk, tiling.rows])
        if tiling.by_rows:
            tasks.insert(tasks.index(columns), tile)
        else:
            tasks += outside
            tiles = [tile]
        inner.insert(0, row)
    *others, last = [at[a] for a in reduction.axes]
    steps, each = [*others, last], last
    if tiling.steps > 1:
        step, each = sch.split(last, [None, tiling.steps])
        steps = [*others, step]
        inner.insert(0, each)
    sch.reorder(*tasks, *beside, *tiles, *steps, *inner, vector, lane)
    sch.reverse_compute_at(result, [*tasks, *beside, *tiles][-1])
    sch.store_at(sums, 0, [*tasks, *beside, *tiles][-1])
    init = sch.decompose_reduction(sums, steps[0])
    sch.vectorize(sch.get_loops(init)[-1])
    if packing is not None:
        width = tiling.vectors * layout.lanes
        panel = _packed(sch, found, packing, (tasks[-1], tiles[0], each), width)
        if tiling.ahead:
            lines = sch.prefetch(panel, 0, columns, each, tiles[0])
            sch.unroll(sch.get_loops(lines)[-1])
    _, wide = sch.split(sch.get_loops(result)[-1], [None, layout.lanes])
    for loop in (wide, lane):
        sch.vectorize(loop)
    for loop in (*inner, vector):
        sch.unroll(loop)
    _on_threads(sch, tasks, layout, tiling.grain, reduction)


def _packed(
    sch: Schedule,
    found: Contraction,
    packing: Packing,
    at: tuple[LoopRef, LoopRef, LoopRef],
    width: int,
) -> BlockRef:
    """The columns of a task in a panel, in the order of steps; gives the block that copies them.

    Args:
        sch: The schedule.
        found: What reads them.
        packing: What they are.
        at: The loops over tasks, tiles of rows, and steps.
        width: The columns of a task.
    """
    task, tile, steps = at
    layout, sums = found.layout, found.written.name
    lanes = layout.lanes
    _, block = block_path(sch.func, sums)
    index = next(i for i, r in enumerate(block.reads) if r.buffer is packing.load.buffer)
    panel = sch.reindex(sums, "read", index)
    axes = [PrimVar(f"x{k}") for k in range(len(sch.get_loops(panel)))]
    at_column = -1 - len(packing.axes)
    ordered = (*axes[:at_column], *axes[at_column + 1 :], axes[at_column])
    sch.transform_layout(panel, 0, IndexMap(tuple(axes), ordered))
    known = [number(a.extent) for a in (*layout.outer, layout.column, *packing.axes)]
    steps_known, columns = packing.depth, number(layout.column.extent)
    # On the stack lanes past the end are set. What else lies in memory is computed with, though
    # nobody looks at it, and old numbers that are tiny as floats take a hundred times as long.
    partial = columns is None or columns % lanes != 0
    if partial and steps_known and steps_known * width * packing.load.dtype.bytes <= ROW_BYTES:
        sch.set_scope(panel, 0, "local")
    elif all(known) and (number(layout.column.extent) or 0) <= width:  # whole registers in a row
        sch.storage_align(panel, 0, len(axes) - 2, lanes, 0)
    if found.copied_by_tile:  # the first tile leaves what it reads in the panel
        sch.compute_at(panel, steps, tile)
    else:
        sch.compute_at(panel, task)
    sch.store_at(panel, 0, task)
    column, *steps_of_panel = sch.get_loops(panel)[at_column:]
    step = steps_of_panel[-1]
    vector, lane = sch.split(column, [None, lanes])
    if not packing.transposed:
        sch.reorder(*steps_of_panel, vector, lane)
        sch.unroll(vector)
    else:  # squares, which are turned in registers
        several, few = sch.split(step, [None, lanes])
        sch.reorder(several, vector, few, lane)
        sch.unroll(few)
        if columns is None:  # no vector of the panel is left out, where all is past the end
            sch.unroll(vector)
    sch.vectorize(lane)
    return panel


def _on_threads(
    sch: Schedule, tasks: Sequence[LoopRef], layout: Layout, grain: int, reduction: Reduction
) -> None:
    """Tasks shared among the threads where there is more than a grain of work."""
    every = (*layout.outer, *layout.columns, *reduction.axes)
    work = number(product([a.extent for a in every]))
    rows = 1 if layout.row is None else number(layout.row.extent)
    if work is not None and rows is not None and work * rows <= grain:
        return
    sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])


CONTRACTION = by_steps(
    "contraction",
    _match,
    _decide,
    _legal,
    nest=lambda found: found.written,
    steps=schedule_contraction,
)
