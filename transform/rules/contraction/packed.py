"""Products of known rows with weights packed at compile time, by steps of a schedule.

A task takes a panel and some rows: the panel stays in the second cache while tiles of rows pass
over it, each tile reading it once from its first step to its last, and asking for a share of what
the next panel has. A tile of few sums has each of them several times, for every so many-th step:
they wait for one another less, and are added up at the end.

What `panels` does for the rest (rows of unknown number or such as fit no even tiles, columns in
chunks, steps taken in runs) it writes as loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.machine.target import Target

from ...blocks.access import Reshaped, as_written, collapse, may_trap
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path
from ...roles.chunked_columns import chunked_columns
from ...roles.panels import PanelLayout, panel_layout
from ...roles.reduction import rows_of
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.panel_prefetch import LEAST_ROWS, STREAM
from ...tactics.panel_tile import IN_FLIGHT
from ...tactics.reshaping import reshape
from ...tactics.row_blocks import MOST, row_blocks
from ...tactics.tile_sizes import tile_tiers
from ...tactics.unrolling import UNROLL
from ..rule import EITHER, Legal, Neighbourhood, by_steps, worth
from .panels import MOST_ROWS, MOST_RUNS, runs_of

MOST_STEPS = 16
"""Steps in a row, at most."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product, one operand of which lies in panels.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes joined.
        layout: The roles of the axes.
        rows: How many rows there are.
        depth: How many steps.
    """

    written: Nest
    shaped: Reshaped
    layout: PanelLayout
    rows: int
    depth: int

    @property
    def column(self) -> Axis:
        """The axis over columns."""
        return self.shaped.nest.axes[-1]

    @property
    def vectors(self) -> int:
        """Vectors of a panel."""
        return self.layout.width // self.layout.lanes

    @property
    def panels(self) -> int:
        """How many panels there are, of all matrices."""
        outer = math.prod(number(a.extent) or 1 for a in self.layout.outer)
        return outer * -(-self.layout.columns // self.layout.width)


@dataclass(frozen=True, slots=True)
class PackedTiles:
    """The decisions.

    Attributes:
        rows: Rows of a register tile.
        tiles: Tiles of rows that a task takes.
        steps: Steps of the sum in a row.
        sums: How many times each sum is had, each for every so many-th step.
        runs: How many runs the steps are taken in, sums being kept between them.
        ahead: Whether the next panel is asked for.
        grain: Multiply-adds from which on threads share the tasks.
    """

    rows: int
    tiles: int
    steps: int
    sums: int
    runs: int
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> Product | None:
    """A product of known rows over panels, where tiles of rows are even."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    chunked = chunked_columns(nest)
    if chunked.chunk is not None:
        return None
    shaped = collapse(as_written(nest))
    reduction = shaped.nest.reduction
    assert reduction is not None
    layout = panel_layout(replace(chunked, nest=shaped.nest), reduction, target)
    if layout is None or layout.sums:
        return None
    rows = 1 if layout.row is None else number(layout.row.extent)
    depth = number(layout.depth.extent)
    if not rows or not depth or any(not number(a.extent) for a in layout.outer):
        return None
    product = Product(nest, shaped, layout, rows, depth)
    how = _decide(product, target)
    rest = rows % how.rows
    few = rest and rest * product.vectors < IN_FLIGHT and rows < 8 * how.rows
    return None if few else product


def _most_rows(product: Product, target: Target) -> int:
    return max(1, min(rows_of(product.vectors, target), MOST_ROWS, product.rows))


def _decide(product: Product, target: Target) -> PackedTiles:
    most, layout = _most_rows(product, target), product.layout
    rows = 1
    if layout.row is not None:
        rows = tile_tiers(layout.row.extent, most, product.vectors, target.machine)[0].size
    tiles = 1
    if layout.row is not None:
        tiles = row_blocks(layout.row.extent, rows, product.panels, target.threads).tiles
    sums = max(1, min(UNROLL, IN_FLIGHT // (rows * product.vectors)))
    sums = sums if product.depth % sums == 0 else 1
    shape = [number(e) for e in layout.load.buffer.shape]
    size = math.prod(e or 1 for e in shape) * layout.load.dtype.bytes
    ahead = size > target.l2_bytes // 2 and product.panels > 1 and product.rows >= LEAST_ROWS
    steps = min(UNROLL, product.depth)
    panel = product.depth * layout.stride * layout.load.dtype.bytes
    far = 2 * panel > target.l2_bytes and sums == 1 and product.rows > rows
    runs = runs_of(layout, target) if far else 1  # else this panel and the next one stay in it
    grain = target.machine.grain("multiply_adds")
    return PackedTiles(rows, tiles, steps, sums, runs, ahead, grain)


def _legal(product: Product, how: PackedTiles, target: Target) -> Neighbourhood:
    why = f"a row's sums take {product.vectors} of {target.vector_registers} registers"
    one = Legal((False,), "there is no next panel, or no row")
    each = product.depth // how.runs
    row = range(how.sums, min(each, MOST_STEPS) + 1, how.sums)
    steps = [n for n in row if how.runs == 1 or each % n == 0]
    sums, runs = [1], [1]
    if how.runs == 1:
        dividing = (n for n in range(1, UNROLL + 1) if product.depth % n == 0)
        sums = [n for n in dividing if how.steps % n == 0]
    if how.sums == 1 and product.layout.row is not None:
        even = (n for n in range(2, MOST_RUNS + 1) if product.depth % (n * how.steps) == 0)
        runs = [1, *even]
    return {
        "rows": Legal(range(1, _most_rows(product, target) + 1), why),
        "tiles": Legal(range(1, MOST + 1), f"a task takes at most {MOST} tiles"),
        "steps": Legal(steps, f"of {each} steps of a run, {how.sums} at a time"),
        "sums": Legal(sums, f"{product.depth} steps, {how.steps} in a row, divide evenly"),
        "runs": Legal(
            runs, f"{product.depth} steps in equal runs, {how.steps} in a row, each sum had once"
        ),
        "ahead": EITHER
        if product.panels > 1 and product.layout.row is not None and how.sums == 1
        else one,
        "grain": worth("multiply-adds"),
    }


def schedule_packed(sch: Schedule, product: Product, how: PackedTiles, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    layout, total = product.layout, product.written.name
    reshape(sch, product.written, product.shaped, result)
    sums, each = total, None
    if how.sums > 1:
        _, each = sch.split(sch.get_loops(total)[-1], [None, how.sums])
        sums = sch.rfactor(each).name
    at = dict(zip(product.shaped.nest.axes, sch.get_loops(total), strict=False))
    panel, vector, lane = sch.split(at[product.column], [None, product.vectors, layout.lanes])
    tasks = [*(at[a] for a in layout.outer), panel]
    tiles: list[LoopRef] = []
    inner: list[LoopRef] = []
    if layout.row is not None:
        block, tile, row = sch.split(at[layout.row], [None, how.tiles, how.rows])
        tasks, tiles, inner = [*tasks, block], [tile], [row]
    place = [*tasks, *tiles][-1]
    *_, step = sch.get_loops(total)
    if each is not None:
        each, step = step, each
        sch.reorder(*tasks, *tiles, *inner, vector, each, lane)
        sch.reverse_compute_at(result, place)
        sch.compute_at(sums, place)
        _joined(sch, total, (*inner, vector, each), lane)
        sch.store_at(sums, 0, place)
        sch.set_scope(sums, 0, "local")
        *inner, column, each, step = sch.get_loops(sums)[len(tasks) + len(tiles) :]
        vector, lane = sch.split(column, [None, layout.lanes])
        inner.insert(0, each)
        outside = list[LoopRef]()
    else:
        outside = [*tasks, *tiles]
    if how.runs > 1:
        run, step = sch.split(step, [how.runs, None])
        outside = [*tasks, run, *tiles]
        place, panel = tasks[-1], run  # what follows is the next run
    if how.steps > how.sums:
        step, several = sch.split(step, [None, how.steps // how.sums])
        inner.insert(0, several)
    sch.reorder(*outside, step, *inner, vector, lane)
    if how.sums == 1:
        sch.reverse_compute_at(result, place)
    if how.ahead and tiles:
        step = _ahead(sch, product, how, sums, (panel, tiles[0], step))
    sch.store_at(total, 0, place)
    if how.runs > 1:
        kept = sch.cache_write(total, 0, "local", tiles[0])
        loaded, *_ = sch.get_child_blocks(tiles[0])
        for copy in (loaded, kept):
            _wide(sch, copy.name, layout.lanes)
    init = sch.decompose_reduction(sums, step)
    sch.vectorize(sch.get_loops(init)[-1])
    _wide(sch, result, layout.lanes)
    sch.vectorize(lane)
    for loop in (*inner, vector):
        sch.unroll(loop)
    work = product.rows * product.depth * product.panels * layout.width
    if work > how.grain:
        sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])


def _joined(sch: Schedule, total: str, loops: Sequence[LoopRef], lane: LoopRef) -> None:
    """The partial sums of a tile added up in registers; the last of the loops goes over them."""
    init = sch.decompose_reduction(total, loops[-1])
    for one in (sch.get_loops(init)[-1], lane):
        sch.vectorize(one)
    for loop in loops:
        sch.unroll(loop)


def _wide(sch: Schedule, copy: str, lanes: int) -> None:
    """A block that goes along columns, a vector at a time."""
    _, lane = sch.split(sch.get_loops(copy)[-1], [None, lanes])
    sch.vectorize(lane)


def _ahead(
    sch: Schedule,
    product: Product,
    how: PackedTiles,
    sums: str,
    at: tuple[LoopRef, LoopRef, LoopRef],
) -> LoopRef:
    """What follows is asked for by all tiles that pass over a panel; by one, what it reads soon.

    Args:
        sch: The schedule.
        product: What is computed.
        how: The tiles.
        sums: The block that reads panels.
        at: The loops over what follows (panels, or runs of steps), tiles of rows, and steps.

    Returns:
        The loop over steps.
    """
    following, tile, step = at
    layout = product.layout
    _, block = block_path(sch.func, sums)
    index = next(k for k, r in enumerate(block.reads) if r.buffer is layout.load.buffer)
    each = how.steps * layout.stride * layout.load.dtype.bytes
    count = min(how.tiles, -(-product.rows // how.rows))
    if count == 1:
        lines = sch.prefetch(sums, index, step, step, None, max(1, STREAM // each))
    else:  # each tile a stretch of its own, in the order in which it lies
        lines = sch.prefetch(sums, index, following, tile, tile)
        steps = -(-product.depth // how.runs // how.steps)
        several, _ = sch.split(sch.get_loops(lines)[-1], [steps, None])
        step = sch.fuse_siblings(several, step)
    sch.unroll(sch.get_loops(lines)[-1])
    return step


PACKED = by_steps(
    "packed", _match, _decide, _legal, nest=lambda product: product.written, steps=schedule_packed
)
