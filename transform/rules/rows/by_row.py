"""Stages over the same rows done row by row: each row stays in cache, or in registers.

Softmax and the norms. All stages go into one loop over rows, and those that need no result of one
another walk a row together: an element is loaded once and passed on in a register. Sums are kept
for each lane of a step, and joined when the row is through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.ir.marks import ACCUMULATORS
from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Buffer
from unity.machine.target import Target

from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import block_path, loops_of, scope_path
from ...roles.lanes import lanes_for
from ...roles.row_group import LONG, RowGroup, few_long_rows, row_group
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.row_storage import ROW_BYTES
from ..contraction.dot_products import MOST_LANES
from ..rule import GroupSteps, Legal, Neighbourhood, Results, group_by_steps, worth
from ..stages import Stages
from .passes import (
    COSTLY_VECTORS,
    DIRECT,
    VECTORS,
    VECTORS_UNKNOWN,
    bits_of,
    cost_of,
    hosted_in,
    is_costly,
    read_in_one_pass,
    steps_of,
)
from .prefetch import ahead_of, busiest

FEW_BYTES = 8 << 10
"""Bytes of a row up to which its buffer leaves room in the first cache.

There rows need no masks, and what was stored under one is slow to load.
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """Stages over the same rows.

    Attributes:
        written: The stages as they were written.
        group: The same over the same variables.
        private: The temporaries that no other stage uses.
        lanes: Of a vector along a row.
    """

    written: tuple[Nest, ...]
    group: RowGroup
    private: frozenset[Buffer]
    lanes: int

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
        grain: Simple operations from which on threads share the rows.
    """

    vectors: int
    costly_vectors: int
    grain: int


def _match(stages: Stages, target: Target) -> Rows | None:
    """A chain over rows, of which there are enough for the threads."""
    group = row_group(stages.rest)
    if group is None or few_long_rows(group, target):
        return None
    size = number(product([a.extent for a in group.inner]))
    count = number(product([a.extent for a in group.rows]))
    if count is not None and not target.shares_evenly(count) and (size is None or size > LONG):
        return None
    lanes = lanes_for(bits_of(group), target.vector_bits, group.inner[-1].extent)
    written = tuple(s for s in stages.rest[: len(group.stages)] if isinstance(s, Nest))
    return Rows(written, group, frozenset(stages.private(len(written))), lanes)


def _decide(found: Rows, target: Target) -> RowSteps:
    vectors = VECTORS if found.length is not None else VECTORS_UNKNOWN
    return RowSteps(vectors, COSTLY_VECTORS, target.machine.grain("elements"))


def _legal(_found: Rows, _decisions: RowSteps, _target: Target) -> Neighbourhood:
    several = Legal(range(1, 17), "a step takes up to 16 vectors")
    return {"vectors": several, "costly_vectors": several, "grain": worth("operations")}


def schedule_rows(sch: Schedule, found: Rows, how: RowSteps, results: Results) -> None:
    """Lay out stages over the same rows by steps of a schedule."""
    group, names = found.group, found.names
    hosted = _hosted(sch, found)
    blocks: list[str] = []
    for name in names.values():
        blocks += [name, results[name]] if name in results else [name]
    for block in blocks:
        _over_rows(sch, block, group)
    depth = max(1, len(group.rows))
    row = sch.get_loops(blocks[0])[0]
    for level in range(depth):
        row = sch.fuse_siblings(*(sch.get_loops(b)[level] for b in blocks))
    for stage, name in names.items():
        if name in results:
            sch.store_at(name, 0, row)
        if name not in hosted and _is_kept(found, stage):
            sch.store_at(results.get(name, name), 0, row)
            sch.set_scope(results.get(name, name), 0, "local")
    if depth > 1:
        row = sch.fuse(*sch.get_loops(blocks[0])[:depth])
    steps = steps_of(group)
    fetching, parts = busiest(steps), dict(names)
    ends: list[LoopRef] = []
    for at, stages in enumerate(steps):
        if isinstance(stages, tuple):
            step, is_cut = _walk(sch, found, how, row, stages, parts, fetches=at == fetching)
            ends += [step] if is_cut else []
    count = number(product([a.extent for a in group.rows]))
    cost = cost_of([s for s in group.stages if not group.is_scalar(s)])
    if count is None or count * (found.size or 1) * cost > how.grain:
        sch.parallel(row)
    for step in ends:
        sch.peel(step, 0, 1)


def _hosted(sch: Schedule, found: Rows) -> frozenset[str]:
    """Long rows of temporaries put into outputs; the blocks that make them."""
    short = len(found.group.inner) == 1 and (found.vectors or DIRECT + 1) <= DIRECT
    hosted = () if short else hosted_in(found.group, found.private, found.silent)
    if found.length is not None and found.length % found.lanes:
        hosted = [each for each in hosted if _row_bytes(found, each.maker) > FEW_BYTES]
    for each in hosted:
        sch.store_in(found.names[each.maker], 0, found.names[each.host], 0)
    return frozenset(found.names[each.maker] for each in hosted)


def _is_kept(found: Rows, stage: Nest) -> bool:
    """Whether each row has what a stage makes for itself."""
    (store,) = stage.stores()
    if store.buffer not in found.private:
        return False
    if stage.reduction is not None or found.group.is_scalar(stage) or store.buffer in found.silent:
        return True
    return _row_bytes(found, stage) <= ROW_BYTES


def _row_bytes(found: Rows, stage: Nest) -> int:
    """Bytes of a row of what a stage makes of each element."""
    (store,) = stage.stores()
    return (found.size or ROW_BYTES + 1) * store.buffer.dtype.bytes


def _over_rows(sch: Schedule, block: str, group: RowGroup) -> None:
    """A block's loops made those of the group: axes of one point join their neighbours."""
    path, found = block_path(sch.func, block)
    loops = loops_of(scope_path(path))
    refs = dict(zip([x.var for x in loops], sch.get_loops(block), strict=True))
    sizes = {refs[x.var]: number(x.extent) for x in loops}
    order = [refs[a.value] for a in found.axes if isinstance(a.value, PrimVar)]
    if order != list(refs.values()):
        sch.reorder(*order)
    reduced = sum(a.kind == "R" for a in found.axes)
    long = [k for k, loop in enumerate(order) if sizes[loop] != 1]
    inner = len(order) - reduced
    if not reduced and len(long) > len(group.rows):
        inner = long[len(group.rows)]
    if not inner:
        unit = sch.add_unit_loop(order[0] if order else block)
        order, sizes, inner = [unit, *order], {**sizes, unit: 1}, 1
    for part in (order[:inner], order[inner:]):
        for several in _with_units(part, sizes):
            if len(several) > 1:
                sch.fuse(*several)


def _with_units(
    loops: Sequence[LoopRef], sizes: Mapping[LoopRef, int | None]
) -> list[list[LoopRef]]:
    """Loops, each with those of one iteration behind it; the first also with those before it."""
    found: list[list[LoopRef]] = []
    for loop in loops:
        if found and (sizes[loop] == 1 or all(sizes[x] == 1 for x in found[-1])):
            found[-1].append(loop)
        else:
            found.append([loop])
    return found


def _walk(
    sch: Schedule,
    found: Rows,
    how: RowSteps,
    row: LoopRef,
    stages: Sequence[Nest],
    parts: dict[Nest, str],
    *,
    fetches: bool,
) -> tuple[LoopRef, bool]:
    """One pass over a row: the stages' loops made one, in vectors.

    Args:
        sch: The schedule.
        found: The stages over the rows.
        how: Vectors in a step.
        row: The loop over rows.
        stages: What is done in the pass.
        parts: The blocks that walk rows; those that have the partial sums of a step are put there.
        fetches: Whether the pass asks for what rows to come read.

    Returns:
        The loop over steps, and whether the last one is cut short.
    """
    unroll = how.costly_vectors if is_costly(stages) else how.vectors
    unroll = min(unroll, found.vectors or unroll)
    wide = unroll * found.lanes
    factors = [None, wide] if found.length is not None else [None, unroll, found.lanes]
    for stage in stages:
        *_, lane = sch.split(sch.get_loops(parts[stage])[-1], factors)
        if stage.reduction is not None:
            partial = sch.rfactor(lane, 0, row)
            begun = sch.decompose_reduction(partial, sch.get_loops(partial)[1])
            (*_, lane) = sch.split(sch.get_loops(begun)[-1], [None, found.lanes])
            sch.vectorize(lane)
            parts[stage] = partial.name
    every = [parts[stage] for stage in stages]
    inner = [_together(sch, every, 1 + k) for k in range(len(found.group.inner))]
    step = at = inner[-1]
    if unroll > 1 and found.length is not None:
        for part in every:
            sch.split(sch.get_loops(part)[-1], [None, found.lanes])
    if unroll > 1 or found.length is None:
        at = _together(sch, every, -2)
    for stage, part in zip(stages, every, strict=True):
        if stage.reduction is not None:
            _join(sch, found.names[stage], found.lanes)
        elif {x.buffer for x in stage.stores()} <= found.silent:
            sch.store_at(part, 0, at)
    for buffer, rows in ahead_of(found.group).items() if fetches else ():
        reading = [p for s, p in parts.items() if any(x.buffer is buffer for x in s.loads())]
        here = next((part for part in reading if part in every), None)
        _fetch(sch, here or reading[0], buffer, rows, (row, step, None if here else step))
    for part in every:
        sch.vectorize(sch.get_loops(part)[-1])
    if at is not step:
        sch.unroll(at)
        if found.length is None and any(s.reduction is not None for s in stages):
            sch.annotate(at, ACCUMULATORS, unroll)
    if found.vectors is not None and found.vectors <= max(DIRECT, unroll):
        sch.unroll(step)
        return step, False
    return step, bool((found.length or 0) % wide)


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
    part: str,
    buffer: Buffer,
    rows: int,
    at: tuple[LoopRef, LoopRef, LoopRef | None],
) -> None:
    """What a block reads so many rows later is asked for, in steps of its pass or of another."""
    row, step, shared = at
    reads = [r.buffer for r in block_path(sch.func, part)[1].reads]
    lines = sch.prefetch(part, reads.index(buffer), row, step, shared, rows)
    sch.unroll(sch.get_loops(lines)[-1])


ROWS = group_by_steps(
    "rows",
    _match,
    _decide,
    _legal,
    GroupSteps(
        nests=lambda found: found.written,
        private=lambda found: found.private,
        take=schedule_rows,
    ),
)
