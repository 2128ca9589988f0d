"""Reductions whose output rows lie contiguous: matrix products, convolutions, column sums, pooling.

Lanes run along the output's innermost axis; a second axis, along which the vector operand does not
move, gives the rows of a register tile. A strip is some columns with all rows; threads share the
strips, and pieces of them where they are few. Columns that lie far apart are copied to a panel by
the first tile of rows; the others read it in order and, where columns come from behind the second
cache, ask for those of the next strip: no one else would, as each line of memory is read once (64 x
256 by 256 x 3136 floats, a convolution of single pixels, take 670 us without and 620 so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import bounds
from unity.errors import UnityError
from unity.ir.prim_expr import Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import IfThen, Stmt
from unity.machine.target import Target
from unity.script.printer import text

from ...blocks.access import Reshaped, as_written, collapse, may_trap, part
from ...blocks.extents import number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.stage import stage_of
from ...blocks.tree import block_path
from ...roles.reduction import Layout, layout_of
from ...schedule.index_map import IndexMap
from ...schedule.refs import BlockRef, LoopRef
from ...schedule.schedule import Schedule
from ...tactics.packing import Packing, packing_of
from ...tactics.reshaping import reshape
from ...tactics.result import with_result
from ...tactics.tiling import Tiling, tiling_of
from .dot_products import dot_products

ON_STACK = 128 << 10
"""Bytes of a panel up to which it lies on the stack where columns may end within a register.

Lanes past the end are set there. What else lies in memory is computed with, though nobody looks at
the results, and old numbers that are tiny as floats take a hundred times as long.
"""


@dataclass(frozen=True, slots=True)
class Contraction:
    """A stage that is laid out as a contraction.

    Attributes:
        written: It as it was written.
        shaped: It over the axes that it is laid out over, parted and joined.
        layout: Their roles.
        packing: The columns that are copied; None where that would not pay.
        is_plain: Whether lanes need no copy of the columns.
    """

    written: Nest
    shaped: Reshaped
    layout: Layout
    packing: Packing | None
    is_plain: bool

    @property
    def enough_rows(self) -> PrimExpr | None:
        """When a copy pays, where that is known at run time only."""
        row = self.layout.row
        if self.packing is None or row is None or (bounds(row.extent)[0] or 0) >= self.packing.rows:
            return None
        return Compare("ge", row.extent, imm(self.packing.rows))


def matched(nest: Nest, target: Target) -> Contraction | None:
    """The roles of a stage's axes; None where the rule does not apply."""
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
    return Contraction(nest, shaped, layout, packing, is_plain)


def contraction(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the innermost spatial axis is contiguous in the output and in what is read."""
    found = matched(nest, target)
    if found is None:
        return None
    few = replace(found, packing=None)
    enough = found.enough_rows
    if found.is_plain:
        done = _laid_out(found, target)
        return _laid_out(few, target) if done is None and found.packing is not None else done
    done = _laid_out(found, target)
    if enough is None:
        return done
    otherwise = dot_products(found.shaped.nest, target)
    if done is None or otherwise is None:
        return done or otherwise
    return IfThen(enough, done, otherwise)


def _laid_out(found: Contraction, target: Target) -> Stmt | None:
    """The stage by steps of a schedule; None where one of them is not known to be legal."""
    stage = stage_of(found.written)
    sch = Schedule(stage.func, target)
    try:
        schedule_contraction(sch, found, f"{found.written.name}_result")
    except UnityError:
        return None
    return stage.around(sch.func.body)


def steps_of_contraction(sch: Schedule, nest: Nest, behind: Sequence[str]) -> None:
    """Lay out a block as it was written, and those behind it that transform its result.

    Args:
        sch: A schedule for a target.
        nest: The stage that they are.
        behind: The names of the blocks behind.

    Raises:
        UnityError: There are two versions, of which one is of no steps.
    """
    target = sch.target
    assert target is not None
    found = matched(nest, target)
    assert found is not None
    if found.enough_rows is not None and not found.is_plain:
        raise UnityError(f"where {text(found.enough_rows)} does not hold, it sums along lanes")
    schedule_contraction(sch, found, with_result(sch, nest.name, behind))


def schedule_contraction(sch: Schedule, found: Contraction, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule.

    Where it is known at run time only whether there are rows enough to copy columns, both ways.
    """
    sums = found.written.name
    reshape(sch, found.written, found.shaped, result)
    if found.enough_rows is not None and found.is_plain:
        few, few_result = sch.specialize_when(found.enough_rows, sums, result)
        _tiled(sch, replace(found, packing=None), few.name, few_result.name)
    _tiled(sch, found, sums, result)


def _tiled(sch: Schedule, found: Contraction, sums: str, result: str) -> None:
    """The blocks of one version."""
    nest, layout, packing = found.shaped.nest, found.layout, found.packing
    target, reduction = sch.target, nest.reduction
    assert target is not None
    assert reduction is not None
    tiling = tiling_of(layout, reduction, target, packing)
    at = dict(zip([*nest.axes, *reduction.axes], sch.get_loops(sums), strict=True))
    inner: list[LoopRef] = []
    tasks: list[LoopRef] = [at[a] for a in layout.outer]
    strip, vector, lane = sch.split(at[layout.column], [None, tiling.vectors, layout.lanes])
    tasks.append(strip)
    if layout.beside is not None:
        several, line = sch.split(at[layout.beside], [None, tiling.beside])
        tasks.append(several)
        inner.append(line)
    tiles: list[LoopRef] = []
    if layout.row is not None:
        piece = [] if tiling.piece is None else [tiling.piece]
        *outside, tile, row = sch.split(at[layout.row], [None, *piece, tiling.rows])
        tasks += outside
        tiles = [tile]
        inner.insert(0, row)
    *others, last = [at[a] for a in reduction.axes]
    steps, each = [*others, last], last
    if tiling.steps > 1:
        step, each = sch.split(last, [None, tiling.steps])
        steps = [*others, step]
        inner.insert(0, each)
    sch.reorder(*tasks, *tiles, *steps, *inner, vector, lane)
    sch.reverse_compute_at(result, [*tasks, *tiles][-1])
    sch.store_at(sums, 0, [*tasks, *tiles][-1])
    init = sch.decompose_reduction(sums, steps[0])
    sch.vectorize(sch.get_loops(init)[-1])
    if packing is not None:
        width = tiling.vectors * layout.lanes
        panel = _packed(sch, sums, packing, (tasks[-1], tiles[0], each), layout, width)
        if tiling.ahead and not packing.transposed:
            lines = sch.prefetch(panel, 0, strip, each, tiles[0])
            sch.unroll(sch.get_loops(lines)[-1])
    _, wide = sch.split(sch.get_loops(result)[-1], [None, layout.lanes])
    for loop in (wide, lane):
        sch.vectorize(loop)
    for loop in (*inner, vector):
        sch.unroll(loop)
    _on_threads(sch, tasks, layout, tiling, reduction)


def _packed(
    sch: Schedule,
    sums: str,
    packing: Packing,
    at: tuple[LoopRef, LoopRef, LoopRef],
    layout: Layout,
    width: int,
) -> BlockRef:
    """The columns of a task in a panel, in the order of steps; gives the block that copies them.

    Args:
        sch: The schedule.
        sums: The block that reads them.
        packing: What they are.
        at: The loops over tasks, tiles of rows, and steps.
        layout: The roles of the axes.
        width: The columns of a task.
    """
    task, tile, steps = at
    fused = (
        not packing.transposed and layout.row is not None and number(layout.row.extent) is not None
    )
    lanes = layout.lanes
    _, block = block_path(sch.func, sums)
    index = next(i for i, r in enumerate(block.reads) if r.buffer is packing.load.buffer)
    panel = sch.reindex(sums, "read", index)
    axes = [PrimVar(f"x{k}") for k in range(len(sch.get_loops(panel)))]
    sch.transform_layout(panel, 0, IndexMap(tuple(axes), (*axes[:-2], axes[-1], axes[-2])))
    known = [number(a.extent) for a in (*layout.outer, layout.column, packing.depth)]
    steps_known, columns = number(packing.depth.extent), number(layout.column.extent)
    partial = columns is None or columns % lanes != 0
    if partial and steps_known and steps_known * width * packing.load.dtype.bytes <= ON_STACK:
        sch.set_scope(panel, 0, "local")
    elif all(known) and (number(layout.column.extent) or 0) <= width:  # whole registers in a row
        sch.storage_align(panel, 0, len(axes) - 2, lanes, 0)
    if fused:  # the first tile leaves what it reads in the panel
        sch.compute_at(panel, steps, tile)
    else:
        sch.compute_at(panel, task)
    sch.store_at(panel, 0, task)
    *_, column, step = sch.get_loops(panel)
    strip, lane = sch.split(column, [None, lanes])
    if not packing.transposed:
        sch.reorder(step, strip, lane)
        sch.unroll(strip)
    else:  # squares, which are turned in registers
        several, few = sch.split(step, [None, lanes])
        sch.reorder(several, strip, few, lane)
        sch.unroll(few)
        if columns is None:  # no strip of the panel is left out, where all is past the end
            sch.unroll(strip)
    sch.vectorize(lane)
    return panel


def _on_threads(
    sch: Schedule, tasks: Sequence[LoopRef], layout: Layout, tiling: Tiling, reduction: Reduction
) -> None:
    """Tasks shared among the threads where there is more than a grain of work."""
    assert sch.target is not None
    every = (*layout.outer, *layout.columns, *reduction.axes)
    work = number(product([a.extent for a in every]))
    rows = 1 if layout.row is None else number(layout.row.extent)
    grain = sch.target.machine.grain("multiply_adds")
    if work is not None and rows is not None and work * rows <= grain:
        return
    sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])
