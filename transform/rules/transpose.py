"""Stages that read across what they write: threads over blocks, rectangles turned in registers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.ir.arrays.aligned import LINE
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, Select, imm
from unity.ir.stmt import Buffer, Stmt, Store
from unity.ir.visit import prim_children, stmt_exprs, walk_stmt
from unity.machine.target import Target

from ..blocks.access import Reshaped, as_written, collapse, depends, known_of, place, step, stride
from ..blocks.extents import ceildiv, number, product
from ..blocks.nest import Axis, Nest
from ..blocks.tree import block_path
from ..schedule.index_map import IndexMap
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule
from ..tactics.threads import share
from .rule import Legal, Neighbourhood, by_steps, worth

LEAST = 8
"""What is read along an axis shorter than this is not worth a rectangle's shuffles."""
WIDE = (2, 4)
"""Bytes of an element, and the length of an axis from which on those are worth it."""
NEAR = (2, 2)
"""Rectangles of a block along the axis read and the axis written, within the second cache."""
FAR = (64, 1)
"""The same beyond it: a page of each row in order, which the memory's prefetching follows."""
_STREAMS = 64
"""Rows that are read side by side, at most."""
_LINES = 16
"""Lines of a rectangle: so many stay in registers, as does what is computed of them. Bytes in
rectangles of 64 x 64 take 1.6 times as long as of 16 x 32 at unknown sizes, and 11 times as long to
compile (6.3 and 0.6 s); at known ones they are as fast (AMD Zen 4)."""
_LANES = 32
"""Elements across a rectangle, at most."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A stage whose loads run along one axis and whose store runs along another.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes joined.
        outer: The other axes.
        along: The axis in which what is read is contiguous.
        across: The one in which what is written is.
        loads: What is read along.
        height: Elements of a rectangle along.
        lanes: Elements across.
    """

    written: Nest
    shaped: Reshaped
    outer: tuple[Axis, ...]
    along: Axis
    across: Axis
    loads: tuple[Load, ...]
    height: int
    lanes: int

    @property
    def nest(self) -> Nest:
        """The stage with its axes joined."""
        return self.shaped.nest


@dataclass(frozen=True, slots=True)
class Rectangles:
    """The decisions.

    Attributes:
        rows: Rectangles of a block along the axis that is read.
        columns: The same along the one that is written.
        grain: Elements that a task has at least.
    """

    rows: int
    columns: int
    grain: int


def _decide(crossing: Crossing, target: Target) -> Rectangles:
    points = number(product([a.extent for a in crossing.nest.axes]))
    size = crossing.loads[0].buffer.dtype.bytes
    near = points is not None and 2 * points * size <= target.l2_bytes
    rows, columns = NEAR if near else FAR
    if not near:
        across = _across(crossing, target.machine.page_bytes)
        columns = max(columns, across // crossing.lanes)
    return Rectangles(rows, columns, grain=target.machine.grain("elements"))


def _across(crossing: Crossing, page: int) -> int:
    """Elements of a block across what is read along, where all lies behind the second cache.

    A line of what is written: half would be fetched again for its other half. More where neighbours
    lie in the same sets of caches: lines that the memory's prefetching brought go before they are
    read, and pages are met less often. Of floats 64 take 0.8 of 32's time (1024 x 1024, 4096 x 4096
    0.86), and 32, where only what is written lies 1 KiB apart, 0.55 to 0.87 of 16's; 16 elements
    of 8 bytes would take 1.25 of 8's there, and 64 floats 1.2 where sets differ (AMD Zen 3).
    """
    known = known_of(crossing.nest.axes)
    stores = list(crossing.nest.stores())
    read = [(x.buffer, step(place(x, known), crossing.across.var)) for x in crossing.loads]
    written = [(s.buffer, step(place(s, known), crossing.along.var)) for s in stores]

    def share_sets(places: list[tuple[Buffer, int | None]], apart: int) -> bool:
        return any(n and abs(n) * b.dtype.bytes % apart == 0 for b, n in places)

    size = stores[0].buffer.dtype.bytes
    line = LINE // size
    if share_sets(read, page // 2) or share_sets(written, page):
        return max(line, min(_STREAMS, 4 * line))
    if size <= 4 and share_sets(written, page // 4):
        return max(line, min(_STREAMS, 2 * line))
    return line


def _legal(_crossing: Crossing, _decisions: Rectangles, _target: Target) -> Neighbourhood:
    several = Legal(range(1, FAR[0] + 1), f"a block has up to {FAR[0]} rectangles each way")
    return {"rows": several, "columns": several, "grain": worth("elements")}


def _steps(sch: Schedule, crossing: Crossing, how: Rectangles, name: str) -> None:
    """Rectangles of a cache line by a register, turned in registers.

    What is computed of the loads is computed on the turned lines.
    """
    before = tuple(a.var for a in crossing.written.axes)
    if crossing.shaped.places != before:
        sch.transform_block_layout(name, IndexMap(before, crossing.shaped.places))
    at = dict(zip(crossing.nest.axes, sch.get_loops(name), strict=True))
    *down, row = _tiles(sch, at[crossing.along], how.rows, crossing.height)
    *right, lane = _tiles(sch, at[crossing.across], how.columns, crossing.lanes)
    tasks = [*(at[a] for a in crossing.outer), down[0], right[0]]
    sch.reorder(*tasks, *down[1:], *right[1:], row, lane)
    sizes = how.rows * crossing.height, how.columns * crossing.lanes
    counts = [
        ceildiv(axis.extent, imm(size))
        for axis, size in zip((crossing.along, crossing.across), sizes, strict=True)
    ]
    points = product([*(a.extent for a in crossing.outer), *counts])
    whole = number(product([crossing.along.extent, crossing.across.extent]))
    size = math.prod(sizes)
    work = imm(size if whole is None else min(size, whole))
    tile = [share(sch, tasks, points, work, how.grain), *down[1:], *right[1:]][-1]
    if _is_copy(crossing.nest, crossing.loads):
        _turn(sch, row, lane)
    else:
        for load in crossing.loads:
            _turned(sch, crossing, load, name, tile)
        _turn(sch, row, lane)
    if how.columns <= NEAR[1]:
        for loop in right[1:]:
            sch.unroll(loop)  # which of them are whole is known for all together


def _is_copy(nest: Nest, loads: Sequence[Load]) -> bool:
    """Whether nothing is computed of what is loaded along the other axis."""
    return isinstance(nest.finish, Store) and nest.finish.value in loads


def _turned(sch: Schedule, crossing: Crossing, load: Load, name: str, tile: LoopRef) -> None:
    """What a block loads along the other axis copied, laid out as each rectangle is stored."""
    axes = crossing.nest.axes
    at = [PrimVar(a.var.name) for a in axes]
    own = [v for v, a in zip(at, axes, strict=True) if any(depends(i, a.var) for i in load.indices)]
    _, block = block_path(sch.func, name)
    index = next(k for k, r in enumerate(block.reads) if r.buffer is load.buffer)
    turned = IndexMap(tuple(at), tuple(own))
    copy = sch.reindex_cache_read(name, index, "local", turned, _place(crossing, load))
    sch.compute_at(copy, tile)
    *_, row, lane = sch.get_loops(copy)
    _turn(sch, row, lane)


def _place(crossing: Crossing, load: Load) -> int | None:
    """Which of the places where the stage still reads a buffer; None where that is the only one."""
    every = [x.indices for x in crossing.nest.loads() if x.buffer is load.buffer]
    before = crossing.loads[: crossing.loads.index(load)]
    gone = [x.indices for x in before if x.buffer is load.buffer]
    places = list(dict.fromkeys(every))
    left = [p for p in places if p not in gone]
    return None if len(left) == 1 else left.index(load.indices)


def _turn(sch: Schedule, row: LoopRef, lane: LoopRef) -> None:
    """A rectangle in registers, turned there by lowering where it is read so."""
    sch.vectorize(lane)
    sch.unroll(row)


def _tiles(sch: Schedule, loop: LoopRef, several: int, size: int) -> tuple[LoopRef, ...]:
    """A loop over blocks of several rectangles, over these, and over the points of one."""
    return sch.split(loop, [None, several, size] if several > 1 else [None, size])


def crossing_of(nest: Nest, target: Target) -> Crossing | None:
    """How a stage's loads cross its store; None where they do not, or not evenly."""
    if nest.reduction is not None:
        return None
    written, shaped = nest, collapse(as_written(nest))
    nest = shaped.nest
    if len(nest.axes) < 2:
        return None
    known, across = known_of(nest.axes), nest.axes[-1]
    stores = list(nest.stores())
    if len(stores) != 1 or step(place(stores[0], known), across.var) != 1:
        return None
    loads: list[Load] = []
    for load in nest.loads():
        if stride(place(load, known), across.var) is None:
            return None
        if step(place(load, known), across.var) not in (0, 1):
            loads.append(load)
    axes = [_contiguous(x, nest.axes[:-1], known) for x in loads]
    along = axes[0] if axes else None
    if along is None or any(a is not along for a in axes) or not _worth(along, across, loads):
        return None
    if any(x.predicate is not None for x in loads) or not _always(nest.finish, set(loads)):
        return None
    outer = tuple(a for a in nest.axes if a is not along and a is not across)
    size = max(x.buffer.dtype.bytes for x in loads)
    widest = max(size, stores[0].buffer.dtype.bytes)
    height = min(LINE // size, _LINES)
    lanes = min(max(2, target.vector_bits // (8 * widest)), _LANES)
    height, lanes = (_at_most(*x) for x in ((height, along), (lanes, across)))
    return Crossing(
        written, shaped, outer, along, across, tuple(dict.fromkeys(loads)), height, lanes
    )


def _at_most(size: int, axis: Axis) -> int:
    known = number(axis.extent)
    return size if known is None else min(size, known)


def _contiguous(load: Load, axes: Sequence[Axis], known: Analyzer) -> Axis | None:
    index = place(load, known)
    return next((a for a in axes if step(index, a.var) == 1), None)


def _worth(along: Axis, across: Axis, loads: Sequence[Load]) -> bool:
    """Whether rectangles are worth their shuffles; across, two elements are enough for that."""
    narrow = min(x.buffer.dtype.bytes for x in loads)
    least = LEAST if narrow < WIDE[0] else WIDE[1]
    long, wide = number(along.extent), number(across.extent)
    return (long is None or long >= least) and (wide is None or wide >= 2)


def _always(finish: Stmt, loads: set[Load]) -> bool:
    """Whether loads are done in any case: a branch's may be outside of the buffer elsewhere."""

    def free(e: PrimExpr) -> bool:
        if isinstance(e, Select):
            return free(e.condition) and not any(_reads(x, loads) for x in (e.then, e.orelse))
        return all(free(x) for x in prim_children(e))

    return all(free(e) for s in walk_stmt(finish) for e in stmt_exprs(s))


def _reads(e: PrimExpr, loads: set[Load]) -> bool:
    return e in loads or any(_reads(x, loads) for x in prim_children(e))


TRANSPOSE = by_steps(
    "transpose",
    crossing_of,
    _decide,
    _legal,
    nest=lambda crossing: crossing.written,
    steps=_steps,
)
"""Nothing is reduced, and a load is contiguous along another axis than the store."""
