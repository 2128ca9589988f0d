"""Products whose vector operand lies in panels: weights packed at compile time.

A task takes a panel and some rows: the panel stays in the second cache while tiles of rows pass
over it, each tile reading it once from its first step to its last; of a long panel a run of steps
stays, and accumulators are kept between runs. No tile has less than its share of rows where they
are known; of unknown ones, a last tile of fitting size takes what is left.

It writes its loops at once, as three things have no primitive: sums that wait in memory between
runs of steps while other tiles take theirs (`cache_write` keeps a sum for its whole reduction),
several sums of one element side by side whose number depends on the tile (`rfactor` would make
another block), and fetches shared by an unknown number of tiles that stop where rows are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.representative import LENGTH, representative_extent
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Stmt
from unity.machine.target import Target

from ...blocks.access import collapsed, may_trap
from ...blocks.extents import number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.tree import sequence
from ...roles.chunked_columns import ChunkedColumns, chunked_columns, with_readers
from ...roles.panels import PanelLayout, panel_layout
from ...roles.reduction import rows_of
from ...tactics.panel_prefetch import LEAST_ROWS, PanelAhead, panel_ahead
from ...tactics.panel_tile import PanelTile, Run, micro_kernel
from ...tactics.register_tile import Values
from ...tactics.result import with_init
from ...tactics.row_blocks import RowBlocks, row_blocks
from ...tactics.threads import parallel
from ...tactics.unrolling import UNROLL

MOST_ROWS = 14
"""Rows of a tile, at most."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some panels of one kind.

    Attributes:
        begin: The first.
        count: How many.
        vectors: How many of a panel's vectors hold columns, of each chunk.
        masked: Whether the last one does so only in part.
    """

    begin: int
    count: int
    vectors: int
    masked: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is computed, in what runs of steps.

    Attributes:
        layout: The roles of the axes.
        reduction: What is reduced, over the layout's variables.
        finish: The stores.
        runs: How many runs the steps are taken in.
    """

    layout: PanelLayout
    reduction: Reduction
    finish: Stmt
    runs: int


def panels(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the one operand that moves along the columns lies in panels."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    return _laid_out(chunked_columns(nest), target)


def panels_read(
    nest: Nest, readers: Sequence[Nest], private: AbstractSet[Buffer], target: Target
) -> Stmt | None:
    """The same, with stages that read the result point by point done where it is made.

    Args:
        nest: The product; nothing but the readers reads its result.
        readers: The stages after it.
        private: Buffers that nothing but these stages uses.
        target: The machine.
    """
    if nest.reduction is None or may_trap(nest.reduction.value) or not readers:
        return None
    joined = with_readers(nest, readers, private)
    return None if joined is None else _laid_out(joined, target)


def _laid_out(chunked: ChunkedColumns, target: Target) -> Stmt | None:
    chunked = replace(chunked, nest=collapsed(chunked.nest))
    reduction = chunked.nest.reduction
    assert reduction is not None
    layout = panel_layout(chunked, reduction, target)
    if layout is None:
        return None
    moved, finish = replace(reduction, value=layout.value, init=layout.init), layout.finish
    for result in layout.results:
        finish = with_init(replace(moved, result=result), finish)
    plan = _Plan(layout, moved, finish, _runs(layout, target))
    return sequence([_tasks(plan, p, target) for p in _parts(layout)])


def _parts(layout: PanelLayout) -> list[_Part]:
    """Whole panels, then the last one where it is not."""
    whole, rest = divmod(layout.columns, layout.width)
    parts = [_Part(0, whole, layout.width // layout.lanes)] if whole else []
    if rest:
        parts.append(_Part(whole, 1, -(-rest // layout.lanes), rest % layout.lanes != 0))
    return parts


def _runs(layout: PanelLayout, target: Target) -> int:
    """How many equal runs of steps a panel is taken in.

    While one stays in the second cache the rows pass through it and the next run is fetched.
    """
    steps = number(layout.depth.extent)
    if steps is None or layout.sums:
        return 1
    size = steps * layout.stride * layout.load.dtype.bytes
    if size <= target.l2_bytes // 8:
        return 1
    least = -(-size // (target.l2_bytes // 16))
    fitting = (n for n in range(least, 2 * least) if steps % (n * UNROLL) == 0)
    return next(fitting, 1)


def _tasks(plan: _Plan, part: _Part, target: Target) -> Stmt:
    """The tiles of some panels, shared among threads by panel and block of rows."""
    layout = plan.layout
    most = max(1, min(rows_of(part.vectors * layout.chunks, target), MOST_ROWS))
    extent = imm(1) if layout.row is None else layout.row.extent
    others = part.count * math.prod(representative_extent(a.extent) or LENGTH for a in layout.outer)
    blocks = row_blocks(extent, most, others, target.threads)
    ahead = panel_ahead(layout, part.count, blocks.total, extent, target)
    names = [a.var.name.removeprefix("v") for a in layout.outer]
    extents = [a.extent for a in layout.outer]
    domain = [
        *zip(names, extents, strict=True),
        ("panel", imm(part.count)),
        ("block", blocks.count),
    ]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        outer[layout.panel] = add(imm(part.begin), coordinate(imm(part.count)))
        tiles = _block(plan, part, blocks, coordinate(blocks.count), outer, ahead)
        return tiles if ahead is None else ahead.around(tiles)

    height = simplify(Binary("min", extent, imm(blocks.tiles * blocks.size)))
    steps = [a.extent for a in (*layout.sums, layout.depth)]
    work = product([*steps, height, imm(part.vectors * layout.chunks * layout.lanes)])
    return parallel(domain, work, target.machine.grain("multiply_adds"), body)


def _block(
    plan: _Plan,
    part: _Part,
    blocks: RowBlocks,
    block: PrimExpr,
    outer: Values,
    ahead: PanelAhead | None,
) -> Stmt:
    """The tiles of a block of rows, run of steps after run of steps."""
    layout, steps = plan.layout, number(plan.layout.depth.extent)
    each = blocks.size * part.vectors * layout.chunks * layout.lanes
    dtype = plan.reduction.value.dtype
    kept = Buffer("kept", (imm(blocks.tiles * each),), dtype, scope="local")
    nth = PrimVar("run")

    def tile(first: PrimExpr, size: int, index: PrimExpr) -> Stmt:
        run, taken = None, steps
        begin: PrimExpr = imm(0)
        if plan.runs > 1:
            assert steps is not None
            here = add(index, multiply(block, imm(-blocks.tiles)))
            taken = steps // plan.runs
            run = Run(nth, plan.runs, taken, kept, multiply(here, imm(each)))
            begin = run.begin
        fetch = None
        if ahead is not None and taken is not None:
            fetch = ahead.of(index, outer, begin, taken)
        rows = [add(first, imm(r)) for r in range(size)]
        at = PanelTile(outer, rows, part.vectors, part.masked, fetch, run)
        done = micro_kernel(layout, plan.reduction, plan.finish, at)
        if ahead is None or fetch is None or size >= LEAST_ROWS or number(ahead.rows) is not None:
            return done
        # Alone, so few rows fetch nothing: asking before each step would cost a twentieth of it.
        alone = micro_kernel(layout, plan.reduction, plan.finish, replace(at, ahead=None))
        return IfThen(Compare("lt", ahead.rows, imm(LEAST_ROWS)), alone, done)

    tiles = blocks.at(block, tile)
    if plan.runs == 1:
        return tiles
    return Allocate(kept, For(nth, imm(0), imm(plan.runs), tiles))
