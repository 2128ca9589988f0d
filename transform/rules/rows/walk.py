"""A pass over rows by steps of a schedule: stages that walk a row together, in vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.ir.marks import ACCUMULATORS
from unity.ir.stmt import Buffer

from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import block_path, loops_of
from ...roles.row_group import RowGroup
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ..contraction.dot_products import MOST_LANES
from .passes import DIRECT, computes_functions, read_in_one_pass
from .prefetch import ahead_of

EVEN = 8
"""Points of an axis in a chunk of a row, from which on chunks are even."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Stages over the same rows.

    Attributes:
        written: The stages as they were written.
        group: The same over the same variables.
        private: The temporaries that no other stage uses.
        lanes: Of a vector along a row.
        few: Whether threads would be idle if each row were done by one.
    """

    written: tuple[Nest, ...]
    group: RowGroup
    private: frozenset[Buffer]
    lanes: int
    few: bool

    @property
    def size(self) -> int | None:
        """Elements of a row."""
        return number(product([a.extent for a in self.group.inner]))

    @property
    def length(self) -> int | None:
        """Elements of its innermost axis."""
        return number(self.group.inner[-1].extent)

    @property
    def vectors(self) -> int | None:
        """Vectors of its innermost axis."""
        return None if self.length is None else -(-self.length // self.lanes)

    @property
    def silent(self) -> frozenset[Buffer]:
        """The temporaries of elements that pass from stage to stage in registers."""
        return self.private & read_in_one_pass(self.group)

    @property
    def names(self) -> dict[Nest, str]:
        """The names of the stages' blocks."""
        pairs = zip(self.group.stages, self.written, strict=True)
        return {stage: nest.name for stage, nest in pairs}


@dataclass(frozen=True, slots=True)
class RowSteps:
    """The decisions.

    Attributes:
        vectors: Vectors in a step of a pass over a row, at most.
        costly_vectors: The same where an element takes many instructions.
        long: Elements from which on threads share a row, where rows are few.
        grain: Simple operations from which on threads share the rows.
    """

    vectors: int
    costly_vectors: int
    long: int
    grain: int


def walk(
    sch: Schedule,
    found: Rows,
    how: RowSteps,
    row: LoopRef,
    stages: Sequence[Nest],
    parts: dict[Nest, str],
    *,
    fetches: bool,
    chunks: int,
) -> None:
    """One pass over a row: the stages' loops made one, in vectors.

    Args:
        sch: The schedule.
        found: The stages over the rows.
        how: Vectors in a step.
        row: The loop over rows.
        stages: What is done in the pass.
        parts: The blocks that walk rows; those that have the partial sums of a step are put there.
        fetches: Whether the pass asks for what rows to come read.
        chunks: Of a row, which threads share.
    """
    unroll = how.costly_vectors if computes_functions(stages) else how.vectors
    unroll = min(unroll, found.vectors or unroll)
    wide = unroll * found.lanes
    factors = [None, wide] if found.length is not None else [None, unroll, found.lanes]
    around, sums = row, {stage: parts[stage] for stage in stages}
    if chunks > 1:
        around = _in_chunks(sch, found, row, sums, chunks, factors)
        parts |= sums
    depth = 1 if chunks == 1 else 2
    for stage in stages:
        if chunks == 1:
            sch.split(sch.get_loops(parts[stage])[-1], factors)
        if stage.reduction is not None:
            parts[stage] = _in_lanes(sch, parts[stage], around, depth, found.lanes)
    every = [parts[stage] for stage in stages]
    inner = [_together(sch, every, depth + k) for k in range(len(found.group.inner))]
    step = at = inner[-1]
    if unroll > 1 and found.length is not None:
        for part in every:
            sch.split(sch.get_loops(part)[-1], [None, found.lanes])
    if unroll > 1 or found.length is None:
        at = _together(sch, every, -2)
    for stage, part in zip(stages, every, strict=True):
        if stage.reduction is not None:
            for name in dict.fromkeys((sums[stage], found.names[stage])):
                _join(sch, name, found.lanes)
        elif {x.buffer for x in stage.stores()} <= found.silent:
            sch.store_at(part, 0, at)
    if fetches:
        _fetch(sch, found, parts, every, row, step)
    for part in every:
        sch.vectorize(sch.get_loops(part)[-1])
    if at is not step:
        sch.unroll(at)
        if found.length is None and any(s.reduction is not None for s in stages):
            sch.annotate(at, ACCUMULATORS, unroll)
    if chunks > 1:
        sch.parallel(around)
    if found.vectors is not None and found.vectors <= max(DIRECT, unroll):
        sch.unroll(step)


def _in_chunks(
    sch: Schedule,
    found: Rows,
    row: LoopRef,
    parts: dict[Nest, str],
    chunks: int,
    factors: Sequence[int | None],
) -> LoopRef:
    """An axis of blocks in chunks, which keep sums side by side; the loop over these.

    The first that is long enough: chunks are then runs of memory.

    Args:
        sch: The schedule.
        found: The stages over the rows.
        row: The loop over rows.
        parts: The blocks of the stages; of sums, those that make them of a chunk are put there.
        chunks: How many.
        factors: What the innermost axis is split by.
    """
    inner = found.group.inner
    sizes = [number(a.extent) or 1 << 62 for a in inner]
    cut = next((k for k, n in enumerate(sizes) if n >= EVEN * chunks), sizes.index(max(sizes)))
    for stage, part in parts.items():
        _, *loops = sch.get_loops(part)
        if cut == len(inner) - 1:
            chunk, *_ = sch.split(loops[-1], [chunks, *factors])
        else:
            chunk, _ = sch.split(loops[cut], [chunks, None])
            sch.split(loops[-1], factors)
        if cut:
            sch.reorder(chunk, *loops[:cut])
        if stage.reduction is not None:
            partial = sch.rfactor(chunk, 0, row)
            sch.set_scope(partial, 0, "global")
            parts[stage] = partial.name
    return _together(sch, list(parts.values()), 1)


def _in_lanes(sch: Schedule, sums: str, around: LoopRef, depth: int, lanes: int) -> str:
    """The block of partial sums, one for each iteration of the innermost loop, begun before.

    Args:
        sch: The schedule.
        sums: The block that sums up.
        around: The loop that has partial sums of its own in each iteration.
        depth: How many loops are not the reduction's.
        lanes: Of a vector.
    """
    partial = sch.rfactor(sch.get_loops(sums)[-1], 0, around)
    begun = sch.decompose_reduction(partial, sch.get_loops(partial)[depth])
    *_, lane = sch.split(sch.get_loops(begun)[-1], [None, lanes])
    sch.vectorize(lane)
    return partial.name


def _together(sch: Schedule, blocks: Sequence[str], level: int) -> LoopRef:
    """The loops of blocks at some depth, as one."""
    loops = [sch.get_loops(block)[level] for block in blocks]
    return sch.fuse_siblings(*loops) if len(loops) > 1 else loops[0]


def _join(sch: Schedule, sums: str, lanes: int) -> None:
    """Partial sums joined in registers."""
    loop = sch.get_loops(sums)[-1]
    path, _ = block_path(sch.func, sums)
    if (number(loops_of(path)[-1].extent) or 0) > MOST_LANES:
        _, lane = sch.split(loop, [None, lanes])
        sch.vectorize(lane)
        return
    sch.decompose_reduction(sums, loop)
    sch.vectorize(loop)


def _fetch(
    sch: Schedule,
    found: Rows,
    parts: Mapping[Nest, str],
    here: Sequence[str],
    row: LoopRef,
    step: LoopRef,
) -> None:
    """What rows to come read is asked for.

    Args:
        sch: The schedule.
        found: The stages over the rows.
        parts: The blocks that walk rows.
        here: Those of the pass that asks: for what none of them reads, one of another pass, if it
            is known how much that reads of a row.
        row: The loop over rows.
        step: That over the steps of the pass.
    """
    assert sch.target is not None
    for buffer, rows in ahead_of(found.group, sch.target.machine).items():
        reading = [p for s, p in parts.items() if any(x.buffer is buffer for x in s.loads())]
        mine = next((part for part in reading if part in here), None)
        if mine is None and found.size is None:
            continue
        part = mine or reading[0]
        reads = [r.buffer for r in block_path(sch.func, part)[1].reads]
        shared = None if mine else step
        lines = sch.prefetch(part, reads.index(buffer), row, step, shared, rows)
        sch.unroll(sch.get_loops(lines)[-1])
