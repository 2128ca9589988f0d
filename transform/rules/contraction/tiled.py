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

from unity.errors import UnityError
from unity.ir.prim_expr import Compare, PrimVar, imm
from unity.ir.stmt import IfThen, Stmt
from unity.machine.target import Target

from ...blocks.access import all_axes, collapsed, may_trap
from ...blocks.extents import number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.stage import stage_of
from ...blocks.tree import block_path
from ...roles.reduction import Layout, layout_of
from ...schedule.index_map import IndexMap
from ...schedule.refs import BlockRef, LoopRef
from ...schedule.schedule import Schedule
from ...tactics.packing import Packing, packing_of
from ...tactics.tiling import Tiling, tiling_of
from .dot_products import dot_products

ON_STACK = 128 << 10
"""Bytes of a panel up to which it lies on the stack where columns may end within a register.

Lanes past the end are set there. What else lies in memory is computed with, though nobody looks at
the results, and old numbers that are tiny as floats take a hundred times as long.
"""


def contraction(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the innermost spatial axis is contiguous in the output and in what is read."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = layout_of(nest, reduction, target, strided=True)
    if layout is None:
        return None
    packing = packing_of(reduction, layout)
    plain = layout_of(nest, reduction, target) is not None
    if packing is None or layout.row is None:
        return _laid_out(nest, layout, None, target) if plain else None
    packed = _laid_out(nest, layout, packing, target)
    if number(layout.row.extent) is not None:
        return packed
    few = _laid_out(nest, layout, None, target) if plain else dot_products(nest, target)
    if few is None or packed is None:
        return packed or few
    return IfThen(Compare("ge", layout.row.extent, imm(packing.rows)), packed, few)


def _laid_out(nest: Nest, layout: Layout, packing: Packing | None, target: Target) -> Stmt | None:
    """The stage by steps of a schedule; None where one of them is not known to be legal."""
    stage = stage_of(nest)
    sch = Schedule(stage.func, target)
    try:
        schedule_contraction(sch, nest, layout, packing, f"{nest.name}_result")
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
        UnityError: The rule joins axes first, or lays out twice what a size decides at run time.
    """
    target, reduction = sch.target, nest.reduction
    assert target is not None
    assert reduction is not None
    joined = collapsed(nest)
    packing, layout = None, layout_of(joined, reduction, target, strided=True)
    if layout is not None:
        packing = packing_of(reduction, layout)
    known = layout is not None and layout.row is not None and number(layout.row.extent) is not None
    if all_axes(joined) != all_axes(nest) or layout is None or (packing is not None and not known):
        raise UnityError(
            "the rule joins axes of this kernel first, or lays it out twice, for few and many rows",
            hint="Schedule(func) starts from the kernel as it is",
        )
    schedule_contraction(sch, joined, layout, packing, with_result(sch, nest.name, behind))


def with_result(sch: Schedule, sums: str, behind: Sequence[str]) -> str:
    """Part a block that sums up from one that takes the sums, and does what stood behind it.

    Args:
        sch: A schedule.
        sums: The block that sums up; its sums are local from now on.
        behind: The names of the blocks behind that transform its result.

    Returns:
        The name of the block that takes the sums.
    """
    result = sch.reindex(sums, "write", 0)
    sch.set_scope(sums, 0, "local")
    for name in behind:
        sch.reverse_compute_inline(name)
    return result.name


def schedule_contraction(
    sch: Schedule, nest: Nest, layout: Layout, packing: Packing | None, result: str
) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    target, reduction, sums = sch.target, nest.reduction, nest.name
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
