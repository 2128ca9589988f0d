"""A product between transforms of tiles, by steps of a schedule: a chunk of tiles at a time.

Lines of tiles and the tiles of a line are one axis, cut in chunks. What lies between stages is
computed for a chunk, in memory that stays in a cache: inputs of all points, products of some
blocks of output channels; transforms leave each other what a single tile needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.marks import ACCUMULATORS, COMPACT, TAIL
from unity.ir.prim_expr import Binary, PrimVar, imm
from unity.ir.stmt import For
from unity.machine.target import Target

from ...blocks.access import all_axes
from ...blocks.extents import number
from ...blocks.nest import Axis
from ...blocks.tree import block_path
from ...roles.winograd import TileGroup, TileStage, tile_group
from ...schedule.index_map import IndexMap
from ...schedule.primitives.loops.unswitch import all_there
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.reshaping import joining
from ..rule import GroupSteps, Results, group_by_steps
from ..stages import Stages
from .plan import TilePlan, legal_plans, plan_for, sharers

UNROLL = 8
"""Steps of the product's innermost loop in a row, at most."""


def _group(stages: Stages, target: Target) -> TileGroup | None:
    """All stages of a kernel, where they are one group."""
    return None if stages.at else tile_group(stages.every, {*stages.temporaries}, target)


def schedule_winograd(sch: Schedule, group: TileGroup, how: TilePlan, results: Results) -> None:
    """Lay out the stages by steps of a schedule."""
    result = results[group.product.name]
    _join_tiles(sch, group, result)
    tasks, block, tile = _last(sch, group, how)
    task = sch.fuse(*tasks) if len(tasks) > 1 else tasks[0]
    _transform(sch, group.after[-1])
    for stage in reversed(group.after[:-1]):
        sch.compute_at(stage.nest.name, tile)
        sch.store_at(stage.nest.name, 0, tile)
        _transform(sch, stage)
    for name in (result, group.product.name):
        sch.compute_at(name, task if how.together else block)
    _transformed(sch, group, how, task)
    _products(sch, group, how, result)
    for name in (result, *([] if how.together else [group.before[-1].nest.name])):
        sch.store_at(name, 0, task)
    sch.parallel(task)
    _apart(sch, group.after[-1], within=3)
    _memory(sch, group, how, result)


def _join_tiles(sch: Schedule, group: TileGroup, result: str) -> None:
    """Lines of tiles and the tiles of a line made one axis, of all stages that have them."""
    product = TileStage(group.product, group.lines, None, None)
    stages = (*group.before, product, *group.after)
    for nest, lines in ((s.nest, s.lines) for s in stages if s.window is None):
        sch.transform_block_layout(nest.name, _joined(all_axes(nest), lines))
        m = _joined(nest.axes, lines)
        sch.transform_layout(nest.name, 0, m)
        if nest is group.product:
            sch.transform_block_layout(result, m)
            sch.transform_layout(result, 0, m)


def _joined(axes: Sequence[Axis], at: int) -> IndexMap:
    """A map that makes two neighbours one."""
    each = [[k] for k in range(len(axes))]
    return joining(axes, [*each[:at], [at, at + 1], *each[at + 2 :]])


def _last(sch: Schedule, group: TileGroup, how: TilePlan) -> tuple[list[LoopRef], LoopRef, LoopRef]:
    """The last stage over chunks of tiles: loops over tasks, groups of blocks, and tiles."""
    last = group.after[-1]
    assert last.window is not None
    every = sch.get_loops(last.nest.name)
    line, pixel, block = every[last.lines], every[last.lines + 1], every[group.last_block]
    *outer, lane = (x for x in every if x not in (line, pixel, block))
    line, row = sch.split(line, [None, last.window])
    pixel, column = sch.split(pixel, [None, last.window])
    sch.reorder(*outer, line, pixel, block, row, column, lane)
    chunk, tile = sch.split(sch.fuse(line, pixel), [None, how.tiles])
    group_, block = sch.split(block, [None, how.columns * how.panels])
    sch.reorder(chunk, group_, block, tile, row, column, lane)
    tasks = [*outer, chunk, *([group_] if how.together else [])]
    return tasks, group_, tile


def _transform(sch: Schedule, stage: TileStage) -> list[LoopRef]:
    """A transform of a tile: all choices in a row, lanes. Its loops as they stand then."""
    nest = stage.nest
    *others, lane = sch.get_loops(nest.name)[-_axes(stage) :]
    if stage.window is not None:
        sch.unroll(others[-1])
    elif stage.chosen is not None:
        k = nest.axes.index(stage.chosen)
        choice = others.pop(k - (k > stage.lines))
        others.append(choice)
        sch.reorder(*others, lane)
        sch.unroll(choice)
    sch.vectorize(lane)
    return [*others, lane]


def _apart(sch: Schedule, stage: TileStage, within: int) -> None:
    """Tiles that lie within the image apart from others, where that can be told.

    Args:
        sch: The schedule.
        stage: A transform.
        within: How many of its loops go through a tile.
    """
    path, _ = block_path(sch.func, stage.nest.name)
    at = [k for k, s in enumerate(path) if isinstance(s, For)][-within]
    loop = path[at]
    assert isinstance(loop, For)
    if all_there(loop, path[: at + 1]) is not None:
        sch.unswitch(sch.get_loops(stage.nest.name)[-within], throughout=True)


def _axes(stage: TileStage) -> int:
    """How many axes a stage has when tiles are one."""
    return len(stage.nest.axes) - (stage.window is None)


def _transformed(sch: Schedule, group: TileGroup, how: TilePlan, task: LoopRef) -> None:
    """The transforms in front of the product: for a task, or all by all threads before it."""
    *firsts, last = group.before
    if not how.together:
        sch.compute_at(last.nest.name, task)
    loops = sch.get_loops(last.nest.name)[-_axes(last) :]
    outer, tile, block = loops[: last.lines], loops[last.lines], loops[_block_in(group)]
    order = _transform(sch, last)
    inner = [x for x in order if x not in (*outer, tile, block)]
    if how.together:
        chunk, tile = sch.split(tile, [None, how.tiles])
        outer = (*outer, chunk)
    sch.reorder(*outer, block, tile, *inner)
    for stage in reversed(firsts):
        sch.compute_at(stage.nest.name, tile)
        sch.store_at(stage.nest.name, 0, tile)
        _transform(sch, stage)
        _apart(sch, stage, within=_axes(stage))
    if how.together:
        sch.parallel(sch.fuse(*outer, block))


def _block_in(group: TileGroup) -> int:
    """Where a block of channels stands among the axes of the last transform, when tiles are one."""
    return group.inputs.indices.index(group.block_in.var) - 1


def _products(sch: Schedule, group: TileGroup, how: TilePlan, result: str) -> None:
    """The product, as register tiles over tiles and blocks of channels, for each point."""
    product, tiles = group.product, group.product.axes[group.lines]
    axes = [a for a in all_axes(product) if a is not product.axes[group.lines + 1]]
    at = dict(zip(axes, sch.get_loops(product.name)[-len(axes) :], strict=True))
    tile, row = sch.split(at.pop(tiles), [None, how.rows])
    panel, column = sch.split(at.pop(group.block_out), [None, how.columns])
    lanes = number(group.lane_in.extent) or 1
    steps = max(u for u in range(1, UNROLL + 1) if lanes % u == 0)
    begin, (step, several) = at.pop(group.block_in), sch.split(at.pop(group.lane_in), [None, steps])
    lane = at.pop(group.lane_out)
    outer = [*at.values()]
    sch.reorder(*outer, panel, tile, begin, step, several, row, column, lane)
    if not group.is_known:
        assert sch.target is not None
        sch.annotate(tile, TAIL, COMPACT)  # else two thirds of the kernel's code
        sch.annotate(several, ACCUMULATORS, sch.target.machine.fma_in_flight)
    sch.reverse_compute_at(result, tile)
    sch.store_at(product.name, 0, tile)
    if how.prefetch:
        _, block = block_path(sch.func, product.name)
        index = next(k for k, r in enumerate(block.reads) if r.buffer is group.weights.buffer)
        following = panel if how.panels > 1 else outer[-1]
        share = sharers(group, how)
        lines = sch.prefetch(
            product.name, index, following, step, tile, all_share=True, sharers=share
        )
        sch.unroll(sch.get_loops(lines)[-1])
    init = sch.decompose_reduction(product.name, begin)
    for loop in (lane, sch.get_loops(init)[-1], sch.get_loops(result)[-1]):
        sch.vectorize(loop)
    for loop in (several, row, column):
        sch.unroll(loop)


def _memory(sch: Schedule, group: TileGroup, how: TilePlan, result: str) -> None:
    """What lies between stages: points outside, and the tiles of a block and a point in a row."""
    last = group.before[-1]
    inputs = _by_block(len(last.nest.axes) - 1, last.lines, _block_in(group))
    if how.together:
        inputs = _by_chunk(inputs, last.lines, how.tiles)
    sch.transform_layout(last.nest.name, 0, inputs)
    axes = [a for a in group.product.axes if a is not group.product.axes[group.lines + 1]]
    products = _by_block(len(axes), group.lines, axes.index(group.block_out))
    sch.transform_layout(result, 0, products)


def _by_block(rank: int, tiles: int, block: int) -> IndexMap:
    """Outer axes, blocks, points, tiles, lanes.

    Not points first: those of a tile, which transforms go through, would be blocks times tiles
    apart, of powers of two, and share a few sets of the first cache.
    """
    *v, lane = (PrimVar(f"i{k}") for k in range(rank))
    points = [e for k, e in enumerate(v) if k > tiles and k != block]
    return IndexMap((*v, lane), (*v[:tiles], v[block], *points, v[tiles], lane))


def _by_chunk(m: IndexMap, tiles: int, each: int) -> IndexMap:
    """The same of each chunk by itself."""
    *outer, tile, lane = m.outputs
    chunk, tile = Binary("floordiv", tile, imm(each)), Binary("floormod", tile, imm(each))
    return IndexMap(m.inputs, (*outer[:tiles], chunk, *outer[tiles:], tile, lane))


WINOGRAD = group_by_steps(
    "winograd",
    _group,
    plan_for,
    legal_plans,
    GroupSteps(nests=lambda g: g.nests, private=lambda g: g.private, take=schedule_winograd),
)
