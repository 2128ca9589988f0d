"""Reductions whose output rows lie contiguous: matrix products, convolutions, column sums, pooling.

Lanes run along the output's innermost axis; a second axis, along which the vector operand does not
move, gives the rows of a register tile. A strip is some columns with all rows; threads share the
strips, and pieces of them where they are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.prim_expr import Compare, PrimVar, imm
from unity.ir.representative import LENGTH, representative_extent
from unity.ir.stmt import IfThen, Stmt
from unity.ir.target import Target

from ..access import collapsed, may_trap
from ..index_map import IndexMap
from ..layout import Layout, columns_of, layout_of, rows_of
from ..loops import ceildiv, number, product, tile_size, tile_tiers
from ..micro_kernel import steps_in_row
from ..nest import Nest, Reduction
from ..packing import REPACK, Packing, packing_of
from ..refs import LoopRef
from ..schedule import Schedule
from ..stage import stage_of
from ..tree import block_path
from .dot_products import dot_products
from .result import GRAIN, PIECES

FEW = 2
"""Steps in a row of an unknown number."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How many of each axis a register tile has.

    Attributes:
        rows: Of the axis of rows.
        beside: Of the second axis of columns.
        vectors: Vectors of the first.
        steps: Steps of the innermost reduced axis in a row.
        piece: Tiles of rows that a task has; None for all.
    """

    rows: int
    beside: int
    vectors: int
    steps: int
    piece: int | None


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
    if joined.axes != nest.axes or layout is None or (packing is not None and not known):
        raise UnityError(
            "the rule joins axes of this kernel first, or lays it out twice, for few and many rows",
            hint="Schedule(func) starts from the kernel as it is",
        )
    result = sch.reindex(nest.name, "write", 0)
    sch.set_scope(nest.name, 0, "local")
    for name in behind:
        sch.reverse_compute_inline(name)
    schedule_contraction(sch, joined, layout, packing, result.name)


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
        _packed(sch, sums, packing, (tasks[-1], tiles[0], each), layout)
    _, wide = sch.split(sch.get_loops(result)[-1], [None, layout.lanes])
    for loop in (wide, lane):
        sch.vectorize(loop)
    for loop in (*inner, vector):
        sch.unroll(loop)
    _on_threads(sch, tasks, layout, tiling, reduction)


def _packed(
    sch: Schedule, sums: str, packing: Packing, at: tuple[LoopRef, LoopRef, LoopRef], layout: Layout
) -> None:
    """The columns of a task in a panel, in the order of steps.

    Args:
        sch: The schedule.
        sums: The block that reads them.
        packing: What they are.
        at: The loops over tasks, tiles of rows, and steps.
        layout: The roles of the axes.
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
    sch.vectorize(lane)


def tiling_of(
    layout: Layout, reduction: Reduction, target: Target, packing: Packing | None
) -> Tiling:
    """The tile that keeps the multipliers busy, from registers and extents."""
    most = 2 * columns_of(target) if layout.row is None else columns_of(target)
    vectors = tile_size(ceildiv(layout.column.extent, imm(layout.lanes)), most)
    beside = 1
    if layout.beside is not None:
        beside = tile_size(layout.beside.extent, max(1, most // vectors))
    width, rows = vectors * beside, 1
    if layout.row is not None:
        rows = tile_tiers(layout.row.extent, max(1, min(8, rows_of(width, target))), width)[0].size
    axes = tuple(a for a in (layout.row, layout.beside) if a is not None)
    steps = steps_in_row(reduction, axes)
    if number(reduction.axes[-1].extent) is None:
        steps = min(steps, FEW)  # each tile is written twice, also for the rest
    piece = _piece(layout, reduction, target, packing, rows, beside, vectors)
    return Tiling(rows, beside, vectors, steps, piece)


def _piece(
    layout: Layout,
    reduction: Reduction,
    target: Target,
    packing: Packing | None,
    rows: int,
    beside: int,
    vectors: int,
) -> int | None:
    """How many tiles of rows make a piece of a strip; None for all of them."""
    tasks = -(-(number(layout.column.extent) or 1) // (vectors * layout.lanes))
    if layout.beside is not None:
        tasks *= -(-(number(layout.beside.extent) or 1) // beside)
    for axis in layout.outer:
        tasks *= number(axis.extent) or 1
    wanted = PIECES * target.threads
    if layout.row is None or target.threads == 1 or tasks >= wanted:
        return None
    least = 1 if packing is None else -(-REPACK // rows)
    known = number(layout.row.extent)
    if known is None:
        steps = representative_extent(product([a.extent for a in reduction.axes])) or LENGTH
        return max(least, -(-GRAIN // (steps * rows * vectors * beside * layout.lanes)))
    whole = -(-known // rows)
    pieces = -(-whole // max(least, -(-whole * tasks // wanted)))
    return -(-whole // pieces) if pieces > 1 else None  # even ones


def _on_threads(
    sch: Schedule, tasks: Sequence[LoopRef], layout: Layout, tiling: Tiling, reduction: Reduction
) -> None:
    """Tasks shared among the threads where there is more than `GRAIN` multiply-adds to do."""
    every = (*layout.outer, *layout.columns, *reduction.axes)
    work = number(product([a.extent for a in every]))
    rows = 1 if layout.row is None else number(layout.row.extent)
    if work is not None and rows is not None and work * rows <= GRAIN:
        return
    sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])
