"""Products with weights packed at compile time, by steps of a schedule.

A task takes a panel and some rows: the panel stays in the second cache while tiles of rows pass
over it, each tile reading it once from its first step to its last, and asking for a share of what
the next panel has; of a long panel a run of steps stays, and sums are kept between runs. What is
left of the rows is one tile of its size. A tile of few sums has each of them several times, for
every so many-th step: they wait for one another less, and are added up at the end.

Columns may be chunks that lie side by side in the panels (the gates of a cell): a tile then ends
with all chunks of some units, and stages that read these point by point stand behind it.

Weights of a large model come from memory at each call, and only the first tile of rows over a panel
would ask for it: the others would find it and ask for nothing. 128 rows by 768 x 3072 floats take
4.2 ms where nothing is asked for ahead, and 3.5 ms where all tiles do (Zen 3, one thread).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import bounds
from unity.ir.marks import ACCUMULATORS, FITTING, TAIL
from unity.ir.prim_expr import Compare, imm
from unity.ir.stmt import Buffer
from unity.ir.symbols.representative import LENGTH, representative_extent
from unity.ir.visit import substitute_prim
from unity.machine.target import Target

from ...blocks.access import Reshaped, may_trap
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest
from ...blocks.tree import Values, block_path
from ...roles.chunked_columns import chunked_columns, may_read_points
from ...roles.panels import PanelLayout, panel_layout
from ...roles.reduction import rows_of
from ...schedule.index_map import IndexMap
from ...schedule.refs import BlockRef, LoopRef
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.row_blocks import MOST, tiles_of_block
from ...tactics.tile_sizes import cheapest_size
from ...tactics.unrolling import UNROLL
from ..rule import (
    EITHER,
    GroupSteps,
    Legal,
    Neighbourhood,
    Results,
    by_steps,
    group_by_steps,
    worth,
)
from ..stages import Stages

MOST_ROWS = 14
"""Rows of a tile, at most."""
MOST_ROWS_OF_WORDS = 4
"""The same where each step is as many as there are numbers in a word, all of them written out."""
MOST_STEPS = 16
"""Steps in a row, at most."""
MOST_RUNS = 64
"""Runs of steps, at most."""
SHARERS = 2
"""Tiles of an unknown number that share what they ask for. By four, a panel comes more evenly where
rows are many (1.02 to 1.05 times as fast from 20 on), but only half of it where there are two tiles
(0.75 to 0.9 times as fast at 10 and 12 rows; AMD Zen 3)."""
LEAST_ROWS = 4
"""Rows for which weights are asked for, where it is known how many there are or not how deep they
are: fewer do so little that the memory's own prefetching keeps up."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product, one operand of which lies in panels.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes joined, and the columns as chunks and units where they are.
        layout: The roles of the axes.
        readers: Stages that read its result, or each other's, point by point, as written.
        between: What they leave each other, and none else touches.
    """

    written: Nest
    shaped: Reshaped
    layout: PanelLayout
    readers: tuple[Nest, ...] = ()
    between: tuple[Buffer, ...] = ()

    @property
    def column(self) -> Axis:
        """The axis over columns."""
        return self.shaped.nest.axes[-1]

    @property
    def vectors(self) -> int:
        """Vectors of a panel, of all chunks."""
        return self.layout.stride // self.layout.lanes

    @property
    def panels(self) -> int:
        """How many panels there are, of all matrices."""
        outer = math.prod(representative_extent(a.extent) or LENGTH for a in self.layout.outer)
        return outer * -(-self.layout.columns // self.layout.width)

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known."""
        return 1 if self.layout.row is None else number(self.layout.row.extent)

    @property
    def most_rows(self) -> int | None:
        """How many rows there are at most, where that is known."""
        return 1 if self.layout.row is None else bounds(self.layout.row.extent)[1]

    @property
    def depth(self) -> int | None:
        """How many steps of the innermost sum there are, where that is known."""
        return number(self.layout.depth.extent)


@dataclass(frozen=True, slots=True)
class PackedTiles:
    """The decisions.

    Attributes:
        rows: Rows of a register tile.
        tiles: Tiles of rows that a task takes.
        steps: Steps of the sum in a row.
        accumulators: How many sums a tile has at least: each has several copies where it has fewer.
        runs: How many runs the steps are taken in, sums being kept between them.
        ahead: Whether the next panel is asked for.
        grain: Multiply-adds from which on threads share the tasks.
    """

    rows: int
    tiles: int
    steps: int
    accumulators: int
    runs: int
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> Product | None:
    """A product one operand of which, the one that moves along the columns, lies in panels."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    chunked = chunked_columns(nest)
    layout = panel_layout(chunked, target)
    return None if layout is None else Product(nest, chunked.shaped, layout)


def _match_read(stages: Stages, target: Target) -> Product | None:
    """The same, with all stages behind it, where these read its result point by point."""
    nests = [s for s in stages.rest if isinstance(s, Nest)]
    if len(nests) < len(stages.rest) or len(nests) < 2:
        return None
    nest, *readers = nests
    private = stages.private(len(nests))
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    if not may_read_points(nest, readers, private):
        return None
    chunked = chunked_columns(nest, readers)
    layout = panel_layout(chunked, target)
    if layout is None:
        return None
    between = tuple(n.output for n in nests if n.output in private)
    return Product(nest, chunked.shaped, layout, tuple(readers), between)


def _most_rows(product: Product, target: Target) -> int:
    room = rows_of(product.vectors, target) - product.layout.scales
    written = MOST_ROWS_OF_WORDS if product.layout.still else MOST_ROWS
    most = min(room, written, product.most_rows or MOST_ROWS)
    return max(1, most)


def _decide(product: Product, target: Target) -> PackedTiles:
    layout, rows, tiles = product.layout, 1, 1
    if layout.row is not None:
        rows = _most_rows(product, target)
        if product.rows is not None:
            rows = cheapest_size(layout.row.extent, rows, product.vectors, target.machine)
        tiles = tiles_of_block(layout.row.extent, rows, product.panels, target.threads)
        if product.most_rows is not None:
            tiles = min(tiles, max(1, -(-product.most_rows // rows)))
    return PackedTiles(
        rows,
        tiles,
        steps=1 if layout.still else min(UNROLL, product.depth or UNROLL),
        accumulators=target.machine.fma_in_flight,
        runs=_runs(product, rows, target),
        ahead=_is_worth_asking(product, target),
        grain=target.machine.grain("multiply_adds"),
    )


def _runs(product: Product, rows: int, target: Target) -> int:
    """Equal runs, of which one stays in the second cache while rows pass through it.

    One run where this panel and the next one stay there, or are read once.
    """
    layout, steps, runs = product.layout, product.depth, 1
    if steps is None or layout.sums:
        return 1
    panel = steps * layout.stride * layout.load.dtype.bytes
    if panel > target.l2_bytes // 8:
        least = -(-panel // (target.l2_bytes // 16))
        fitting = (n for n in range(least, 2 * least) if steps % (n * UNROLL) == 0)
        runs = next(fitting, 1)
    if product.rows is None:
        return runs
    return runs if 2 * panel > target.l2_bytes and product.rows > rows else 1


def _may_ask(product: Product) -> bool:
    """Whether something follows, of which it is known how much it is."""
    layout = product.layout
    return product.panels > 1 and layout.row is not None and not layout.sums


def _is_worth_asking(product: Product, target: Target) -> bool:
    """Whether weights are too many to be in the cache, and rows enough to ask for them."""
    shape = [number(e) for e in product.layout.load.buffer.shape]
    if None in shape or not _may_ask(product) or product.depth is None:
        return False
    size = math.prod(e or 1 for e in shape) * product.layout.load.dtype.bytes
    enough = product.rows is None or product.rows >= LEAST_ROWS
    return enough and size > target.l2_kept


def _legal(product: Product, how: PackedTiles, target: Target) -> Neighbourhood:
    why = f"a row's sums take {product.vectors} of {target.vector_registers} registers"
    one = Legal((False,), "there is no next panel, or no row")
    depth, runs = product.depth, [1]
    each = MOST_STEPS if depth is None else depth // how.runs
    row = range(1, min(each, MOST_STEPS) + 1)
    if depth is not None and product.layout.row is not None and not product.layout.sums:
        even = (n for n in range(2, MOST_RUNS + 1) if depth % (n * how.steps) == 0)
        runs = [1, *even]
    return {
        "rows": Legal(range(1, _most_rows(product, target) + 1), why),
        "tiles": Legal(range(1, MOST + 1), f"a task takes at most {MOST} tiles"),
        "steps": Legal(
            [n for n in row if how.runs == 1 or each % n == 0], f"of {each} steps of a run"
        ),
        "accumulators": Legal(
            range(1, target.vector_registers + 1), f"there are {target.vector_registers} registers"
        ),
        "runs": Legal(runs, f"{depth or 'unknown'} steps in equal runs, {how.steps} in a row"),
        "ahead": EITHER if _may_ask(product) else one,
        "grain": worth("multiply-adds"),
    }


def schedule_packed(sch: Schedule, product: Product, how: PackedTiles, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    schedule_read(sch, product, how, {product.written.name: result})


def schedule_read(sch: Schedule, product: Product, how: PackedTiles, results: Results) -> None:
    """Lay out these, and blocks that read what is taken, by steps of a schedule."""
    result, readers = results[product.written.name], [nest.name for nest in product.readers]
    layout, sums, nest = product.layout, product.written.name, product.shaped.nest
    reshape(sch, product.written, product.shaped, result)
    _reshape_readers(sch, product, result, readers)
    assert nest.reduction is not None
    at = dict(zip([*nest.axes, *nest.reduction.axes], sch.get_loops(sums), strict=True))
    each = layout.width // layout.lanes
    panel, vector, lane = sch.split(at[product.column], [None, each, layout.lanes])
    tasks = [*(at[a] for a in layout.outer), panel]
    tiles: list[LoopRef] = []
    inner: list[LoopRef] = [] if layout.chunk is None else [at[layout.chunk]]
    parts = [at[a] for a in layout.still]
    if layout.row is not None:
        block, tile, row = sch.split(at[layout.row], [None, how.tiles, how.rows])
        tasks, tiles, inner = [*tasks, block], [tile], [row, *inner]
        if product.rows is None:
            sch.annotate(tile, TAIL, FITTING)
    others, step = [at[a] for a in layout.sums], at[layout.depth]
    outside, place, following = [*tasks, *tiles], [*tasks, *tiles][-1], panel
    if how.runs > 1:
        run, step = sch.split(step, [how.runs, None])
        outside = [*tasks, run, *tiles]
        place, following = tasks[-1], run
    inner = [*parts, *inner]
    sch.reorder(*outside, *others, step, *inner, vector, lane)
    for name in (result, *readers):
        sch.reverse_compute_at(name, place)
    _kept_there(sch, product, (sums, result, *readers), place)
    if product.depth is None:  # while all steps of the loop are there
        _begun(sch, sums, next(iter(others), step))
    if how.steps > 1:
        step, several = sch.split(step, [None, how.steps])
        sch.annotate(several, ACCUMULATORS, how.accumulators)
        inner.insert(0, several)
    if how.ahead and tiles:
        step = _ahead(sch, product, how, (following, tiles[0], step))
    if how.runs > 1:
        kept = sch.cache_write(sums, 0, "local", tiles[0])
        loaded, *_ = sch.get_child_blocks(tiles[0])
        for copy in (loaded, kept):
            _wide(sch, copy.name, layout.lanes)
    if product.depth is not None:
        _begun(sch, sums, next(iter(others), step))
    for name in (result, *readers):
        _wide(sch, name, layout.lanes)
    sch.vectorize(lane)
    for loop in (*inner, vector):
        sch.unroll(loop)
    if _work(product) > how.grain:
        sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])


def _work(product: Product) -> int:
    """Multiply-adds of all, where rows are as many as is usual if that is not known."""
    layout = product.layout
    summed = (*layout.sums, *layout.still, layout.depth)
    steps = (*summed, *(() if layout.row is None else (layout.row,)))
    each = math.prod(representative_extent(a.extent) or LENGTH for a in steps)
    return each * product.panels * layout.width


def _reshape_readers(sch: Schedule, product: Product, result: str, readers: Sequence[str]) -> None:
    """Lay readers out over the product's rows, and what they read by chunks and units."""
    if not readers:
        return
    written, places = product.written.axes, product.shaped.places
    count = len(product.shaped.nest.axes)
    rows = places[: count - (1 if product.layout.chunk is None else 2)]
    points = tuple(a.var for a in written)
    spatial = IndexMap(points, places[:count])
    if spatial.outputs != points:
        sch.transform_layout(result, 0, spatial)
    for name, reader in zip(readers, product.readers, strict=True):
        own = tuple(a.var for a in reader.axes)
        values: Values = dict(zip(points, own, strict=True))
        m = IndexMap(own, (*(substitute_prim(e, values) for e in rows), own[-1]))
        if m.outputs != own:
            sch.transform_block_layout(name, m)
            if reader.output in product.between:
                sch.transform_layout(name, 0, m)


def _kept_there(sch: Schedule, product: Product, blocks: Sequence[str], place: LoopRef) -> None:
    """What blocks leave each other, in registers or nearly so."""
    sums, *others = blocks
    sch.store_at(sums, 0, place)
    for name, nest in zip(others, (product.written, *product.readers), strict=False):
        if nest.output in product.between:
            sch.set_scope(name, 0, "local")
            sch.store_at(name, 0, place)


def _begun(sch: Schedule, sums: str, step: LoopRef) -> None:
    """The sums begun before a loop over steps."""
    init = sch.decompose_reduction(sums, step)
    sch.vectorize(sch.get_loops(init)[-1])


def _wide(sch: Schedule, copy: str, lanes: int) -> None:
    """A block that goes along columns, a vector at a time."""
    _, lane = sch.split(sch.get_loops(copy)[-1], [None, lanes])
    sch.vectorize(lane)


def _ahead(
    sch: Schedule, product: Product, how: PackedTiles, at: tuple[LoopRef, LoopRef, LoopRef]
) -> LoopRef:
    """What follows is asked for by all tiles that pass over a panel; by one, what it reads soon.

    Args:
        sch: The schedule.
        product: What is computed.
        how: The tiles.
        at: The loops over what follows (panels, or runs of steps), tiles of rows, and steps.

    Returns:
        The loop over steps.
    """
    following, tile, step = at
    layout, sums = product.layout, product.written.name
    assert layout.row is not None
    _, block = block_path(sch.func, sums)
    index = next(k for k, r in enumerate(block.reads) if r.buffer is layout.load.buffer)
    rows, steps = layout.row.extent, product.depth
    if steps is None:
        enough = Compare("ge", rows, imm(LEAST_ROWS)) if product.rows is None else None
        sch.prefetch(sums, index, following, step, tile, when=enough)
        return step
    if product.rows is not None and min(how.tiles, -(-product.rows // how.rows)) == 1:
        assert sch.target is not None  # each panel is read only once
        each = how.steps * layout.stride * layout.load.dtype.bytes
        further = max(1, sch.target.machine.ahead_bytes // each)
        _written_out(sch, sch.prefetch(sums, index, step, step, None, further))
        return step
    # Of rows of unknown number, a known number of lines is asked for, which no loop has to count.
    is_open = product.rows is None
    share = SHARERS if is_open else None
    lines = sch.prefetch(sums, index, following, tile, tile, all_share=is_open, sharers=share)
    several, _ = sch.split(sch.get_loops(lines)[-1], [-(-steps // how.runs // how.steps), None])
    step = sch.fuse_siblings(several, step)
    _written_out(sch, lines)
    return step


def _written_out(sch: Schedule, lines: BlockRef) -> None:
    """What asks for lines, where it is known how many: not where runs end within an interval."""
    along = sch.get_loops(lines)[-1]
    if sch.extent(along) is not None:
        sch.unroll(along)


PACKED_READ = group_by_steps(
    "packed_read",
    _match_read,
    _decide,
    _legal,
    GroupSteps(
        nests=lambda product: (product.written, *product.readers),
        private=lambda product: product.between,
        take=schedule_read,
    ),
)
PACKED = by_steps(
    "packed", _match, _decide, _legal, nest=lambda product: product.written, steps=schedule_packed
)
