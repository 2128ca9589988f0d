"""Sums over rows of memory: a vector times a matrix, sums over leading axes; by steps.

Nothing is used twice, so all that counts is how fast the operand comes in. It comes in fastest in
the order in which it lies: a few rows side by side from one end of a chunk to the other, the sums
kept in the first cache. Down a narrow chunk, each step would begin a row anew, which is another
page that nobody fetched ahead.

The sums of a vector of columns are in a register while some rows are added to them, and wait in
memory between (an accumulating `cache_write`); of few rows, the first begin them, so that there is
no pass of zeros (`peel`). What these rows have for all columns is read once for the chunk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.ir.prim_expr import Compare, Load, imm
from unity.ir.stmt import Buffer
from unity.ir.visit import walk_prim
from unity.machine.target import Target

from ...blocks.access import (
    Reshaped,
    all_axes,
    as_written,
    collapse,
    depends,
    known_of,
    may_trap,
    part,
    place,
    step,
)
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.tree import block_path
from ...roles.reduction import Layout, columns_of, layout_of
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.register_tile import loads_on
from ...tactics.reshaping import reshape
from ...tactics.threads import enough_tasks, share
from ..rule import Legal, Neighbourhood, by_steps, worth

SIDE_BY_SIDE = 8
"""Rows added in one pass over the sums."""
MOST_STEPS = 16
"""The same, at most."""
CHUNK_BYTES = 16 << 10
"""Of the sums of a chunk: a third of a first cache."""
FEW_PASSES = 8
"""Passes up to which the first begins the sums; a pass of zeros is nothing beside more."""
LEAST = 4
"""Vectors of a chunk at least, where threads share the columns."""
NARROW_BYTES = 2 << 10
"""Of a row of a chunk where columns are unknown and few: half as many take 1.2 times as long for
2,048 floats by two threads, twice as many leave a thread idle up to 1,024 (Xeon with AMX)."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Sums none of which shares anything with another but what all columns are multiplied by.

    Attributes:
        written: The stage as it was written.
        shaped: It over the axes that it is laid out over, parted and joined.
        layout: The roles of the axes.
        still: What is the same for all columns, in a few neighbouring places for a few rows.
    """

    written: Nest
    shaped: Reshaped
    layout: Layout
    still: tuple[Buffer, ...]

    @property
    def reduction(self) -> Reduction:
        """What is summed."""
        assert self.shaped.nest.reduction is not None
        return self.shaped.nest.reduction

    @property
    def columns(self) -> int | None:
        """How many columns there are, where that is known."""
        return number(self.layout.column.extent)

    @property
    def alone(self) -> bool:
        """Whether there is but one row of columns, so that threads have to share these."""
        return all(number(a.extent) == 1 for a in self.layout.outer)

    @property
    def depth(self) -> int | None:
        """How many steps of the innermost sum there are, where that is known."""
        return number(self.reduction.axes[-1].extent)

    @property
    def most(self) -> int:
        """Vectors that a chunk has at most."""
        return max(1, CHUNK_BYTES // (self.reduction.value.dtype.bytes * self.layout.lanes))


@dataclass(frozen=True, slots=True)
class ColumnChunks:
    """The decisions.

    Attributes:
        vectors: Vectors of columns in a chunk.
        narrow: The same where it turns out at run time that there are less chunks than threads; 0
            where that is not asked.
        steps: Rows added in one pass over the sums.
        grain: Multiply-adds from which on threads share the chunks.
    """

    vectors: int
    narrow: int
    steps: int
    grain: int


def _match(nest: Nest, target: Target) -> Streamed | None:
    """Applies where nothing is shared by two sums and the columns fill several tiles."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = collapse(part(as_written(nest)))
    reduction = shaped.nest.reduction
    assert reduction is not None
    layout = layout_of(shaped.nest, reduction, target)
    if layout is None or layout.row is not None:
        return None
    columns = number(layout.column.extent)
    if columns is not None and columns <= 2 * columns_of(target) * layout.lanes:
        return None
    return Streamed(nest, shaped, layout, _still(shaped.nest, reduction, layout))


def _still(nest: Nest, reduction: Reduction, layout: Layout) -> tuple[Buffer, ...]:
    """Buffers of which some rows read as many neighbours at most, whatever the column."""
    last, column = reduction.axes[-1].var, layout.column.var
    known, loads = known_of(all_axes(nest)), reduction.loads()

    def is_still(load: Load) -> bool:
        along = [i for i in load.indices if depends(i, last)]
        inner = [x for i in load.indices for x in walk_prim(i) if isinstance(x, Load)]
        if inner or len(along) > 1 or depends(load, column):
            return False
        return step(place(load, known), last) is not None

    always = loads_on(reduction.value, None, (column,), (False, False))
    buffers = dict.fromkeys(x.buffer for x in always)
    return tuple(b for b in buffers if all(is_still(x) for x in loads if x.buffer is b))


def _decide(found: Streamed, target: Target) -> ColumnChunks:
    most, threads = found.most, target.threads if found.alone else 1
    vectors, narrow = most, 0
    if found.columns is not None:
        turns = max(1, -(-found.columns // (most * found.layout.lanes * threads)))
        each = -(-found.columns // (turns * threads * found.layout.lanes))
        vectors = min(most, max(LEAST, each))
    elif threads > 1:
        each = found.reduction.value.dtype.bytes * found.layout.lanes
        vectors, narrow = max(1, most // 2), min(max(1, NARROW_BYTES // each), most)
    steps = max(1, min(SIDE_BY_SIDE, found.depth or SIDE_BY_SIDE))
    return ColumnChunks(vectors, narrow, steps, target.machine.grain("multiply_adds"))


def _legal(found: Streamed, how: ColumnChunks, target: Target) -> Neighbourhood:
    sums = f"the sums of a chunk have {CHUNK_BYTES} bytes at most"
    asked = found.columns is None and found.alone and target.threads > 1
    steps = max(1, min(MOST_STEPS, found.depth or MOST_STEPS))
    return {
        "vectors": Legal(range(1, found.most + 1), sums),
        "narrow": Legal(range(found.most + 1), sums)
        if asked
        else Legal((0,), "threads share chunks of known number, or what is around them"),
        "steps": Legal(range(1, steps + 1), f"a pass adds {MOST_STEPS} rows of them at most"),
        "grain": worth("multiply-adds"),
    }


def schedule_streamed(sch: Schedule, found: Streamed, how: ColumnChunks, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    sums, column = found.written.name, found.layout.column.extent
    assert sch.target is not None
    reshape(sch, found.written, found.shaped, result)
    if how.narrow:
        enough = how.vectors * found.layout.lanes * sch.target.threads
        few, few_result = sch.specialize_when(Compare("ge", column, imm(enough)), sums, result)
        _in_chunks(sch, found, replace(how, vectors=how.narrow), few.name, few_result.name)
    _in_chunks(sch, found, how, sums, result)


def _in_chunks(sch: Schedule, found: Streamed, how: ColumnChunks, sums: str, result: str) -> None:
    """The blocks of one version."""
    nest, layout, reduction, depth = (
        found.shaped.nest,
        found.layout,
        found.reduction,
        found.depth,
    )
    at = dict(zip([*nest.axes, *reduction.axes], sch.get_loops(sums), strict=True))
    chunk, vector, lane = sch.split(at[layout.column], [None, how.vectors, layout.lanes])
    alone = [at[a] for a in layout.outer if number(a.extent) == 1]
    outer = [a for a in layout.outer if number(a.extent) != 1]
    tasks = [*(at[a] for a in outer), chunk]
    *others, row = [at[a] for a in reduction.axes]
    sch.reorder(*alone, *tasks, *others, row, vector, lane)
    sch.reverse_compute_at(result, chunk)
    sch.store_at(sums, 0, chunk)
    begins = not others and depth is not None and how.steps <= depth <= FEW_PASSES * how.steps
    if not begins:
        _wide(sch, sch.decompose_reduction(sums, [*others, row][0]).name, layout.lanes)
    rows, several = sch.split(row, [None, how.steps])
    sch.reorder(rows, vector, several, lane)
    for buffer in found.still:
        _read_before(sch, sums, buffer, rows)
    sch.cache_write(sums, 0, "local", vector)
    if begins:
        sch.decompose_reduction(sums, several)
    for block in sch.get_child_blocks(vector):
        if block.name != sums:
            sch.vectorize(sch.get_loops(block)[-1])
    _wide(sch, result, layout.lanes)
    sch.vectorize(lane)
    sch.unroll(several)
    if begins and depth is not None and depth > how.steps:
        sch.peel(rows, 1)
    assert sch.target is not None
    width = imm(how.vectors * layout.lanes)
    counts = [*(a.extent for a in outer), ceildiv(layout.column.extent, width)]
    some = enough_tasks([imm(number(n) or 1) for n in counts], sch.target.threads)
    work = product([*(a.extent for a in reduction.axes), width, *counts[some:]])
    share(sch, tasks[:some], product(counts[:some]), work, how.grain)


def _read_before(sch: Schedule, sums: str, buffer: Buffer, rows: LoopRef) -> None:
    """What some rows have for all columns, read once."""
    _, block = block_path(sch.func, sums)
    index = next(k for k, r in enumerate(block.reads) if r.buffer is buffer)
    copy = sch.cache_read(sums, index, "local")
    sch.compute_at(copy, rows)
    sch.store_at(copy, 0, rows)
    around = sch.get_loops(copy)
    for loop in around[around.index(rows) + 1 :]:
        sch.unroll(loop)


def _wide(sch: Schedule, block: str, lanes: int) -> None:
    """A block that goes along columns, a vector at a time."""
    *_, last = sch.get_loops(block)
    _, lane = sch.split(last, [None, lanes])
    sch.vectorize(lane)


STREAMED = by_steps(
    "streamed", _match, _decide, _legal, nest=lambda found: found.written, steps=schedule_streamed
)
