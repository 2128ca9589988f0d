"""Stages over the same rows done row by row: each row stays in cache, or in registers.

Softmax and the norms. All stages go into one loop over rows, and those that need no result of one
another walk a row together: an element is loaded once and passed on in a register. Sums are kept
for each lane of a step, and joined when the row is through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unity.ir.prim_expr import Compare, PrimVar, imm
from unity.machine.stack import ROW_BYTES
from unity.machine.target import Target

from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import block_path, loops_of, scope_path
from ...roles.lanes import lanes_for
from ...roles.row_group import LONG, RowGroup, few_long_rows, row_group
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ..rule import GroupSteps, Legal, Neighbourhood, Results, group_by_steps, worth
from ..stages import Stages
from .passes import (
    DIRECT,
    VECTORS,
    VECTORS_UNKNOWN,
    bits_of,
    cost_of,
    costly_vectors,
    hosted_in,
    steps_of,
)
from .prefetch import busiest
from .walk import Rows, RowSteps, walk

FEW_BYTES = 8 << 10
"""Bytes of a row up to which its buffer leaves room in the first cache.

There rows need no masks, and what was stored under one is slow to load.
"""


def _match(stages: Stages, target: Target) -> Rows | None:
    """A chain over rows."""
    group = row_group(stages.rest)
    if group is None:
        return None
    size = number(product([a.extent for a in group.inner]))
    count = number(product([a.extent for a in group.rows]))
    few = few_long_rows(group, target)
    if size is not None:
        few = count is not None and not target.shares_evenly(count)
    lanes = lanes_for(bits_of(group), target.vector_bits, group.inner[-1].extent)
    written = tuple(s for s in stages.rest[: len(group.stages)] if isinstance(s, Nest))
    return Rows(written, group, frozenset(stages.private(len(written))), lanes, few)


def _decide(found: Rows, target: Target) -> RowSteps:
    vectors = VECTORS if found.length is not None else VECTORS_UNKNOWN
    return RowSteps(vectors, costly_vectors(target), LONG, target.machine.grain("elements"))


def _legal(_found: Rows, _decisions: RowSteps, _target: Target) -> Neighbourhood:
    several = Legal(range(1, 17), "a step takes up to 16 vectors")
    return {
        "vectors": several,
        "costly_vectors": several,
        "long": worth("elements"),
        "grain": worth("operations"),
    }


def schedule_rows(sch: Schedule, found: Rows, how: RowSteps, results: Results) -> None:
    """Lay out stages over the same rows by steps of a schedule.

    Of few rows of unknown length there are versions: long ones are shared by the threads.
    """
    if not found.few or found.size is not None:
        shared = found.few and (found.size or 0) > how.long
        _lay_out(sch, found, how, results, shared=shared)
        return
    size = product([a.extent for a in found.group.inner])
    blocks = _blocks(found, results)
    others = sch.specialize_when(Compare("gt", size, imm(how.long)), *blocks)
    copies = dict(zip(blocks, (b.name for b in others), strict=True))
    _lay_out(sch, found, how, results, shared=True)
    written = tuple(replace(nest, name=copies[nest.name]) for nest in found.written)
    behind = {copies[name]: copies[result] for name, result in results.items()}
    _lay_out(sch, replace(found, written=written), how, behind, shared=False)


def _blocks(found: Rows, results: Results) -> list[str]:
    """The blocks of the stages, in order."""
    blocks: list[str] = []
    for name in found.names.values():
        blocks += [name, results[name]] if name in results else [name]
    return blocks


def _lay_out(sch: Schedule, found: Rows, how: RowSteps, results: Results, *, shared: bool) -> None:
    """Stages over the same rows: each by a thread, or one after another by all of them."""
    group, names = found.group, found.names
    hosted = _hosted(sch, found)
    blocks = _blocks(found, results)
    for block in blocks:
        _over_rows(sch, block, group)
    depth = max(1, len(group.rows))
    row = sch.get_loops(blocks[0])[0]
    for level in range(depth):
        row = sch.fuse_siblings(*(sch.get_loops(b)[level] for b in blocks))
    for stage, name in names.items():
        if name in results:
            sch.store_at(name, 0, row)
        if name not in hosted and _is_kept(found, stage, room=not shared):
            sch.store_at(results.get(name, name), 0, row)
            sch.set_scope(results.get(name, name), 0, "local")
    if depth > 1:
        row = sch.fuse(*sch.get_loops(blocks[0])[:depth])
    steps = steps_of(group)
    fetching, parts = None if shared else busiest(steps), dict(names)
    for at, stages in enumerate(steps):
        if isinstance(stages, tuple):
            chunks = _chunks(sch, found, how, stages) if shared else 1
            walk(sch, found, how, row, stages, parts, fetches=at == fetching, chunks=chunks)
    count = number(product([a.extent for a in group.rows]))
    cost = cost_of([s for s in group.stages if not group.is_scalar(s)])
    if not shared and (count is None or count * (found.size or how.grain) * cost > how.grain):
        sch.parallel(row)


def _chunks(sch: Schedule, found: Rows, how: RowSteps, stages: Sequence[Nest]) -> int:
    """As many as keep the threads even; one for what is done before another thread wakes."""
    assert sch.target is not None
    threads = sch.target.threads
    if found.size is None:
        return threads
    most = found.size * cost_of(stages) // (threads * how.grain)
    return max(1, threads * min(sch.target.machine.tasks_per_thread, most))


def _hosted(sch: Schedule, found: Rows) -> frozenset[str]:
    """Long rows of temporaries put into outputs; the blocks that make them."""
    short = len(found.group.inner) == 1 and (found.vectors or DIRECT + 1) <= DIRECT
    hosted = () if short else hosted_in(found.group, found.private, found.silent)
    if found.length is not None and found.length % found.lanes:
        hosted = [each for each in hosted if _row_bytes(found, each.maker) > FEW_BYTES]
    for each in hosted:
        sch.store_in(found.names[each.maker], 0, found.names[each.host], 0)
    return frozenset(found.names[each.maker] for each in hosted)


def _is_kept(found: Rows, stage: Nest, *, room: bool) -> bool:
    """Whether each row has what a stage makes for itself; of elements, where there is room."""
    (store,) = stage.stores()
    if store.buffer not in found.private:
        return False
    if stage.reduction is not None or found.group.is_scalar(stage) or store.buffer in found.silent:
        return True
    return room and _row_bytes(found, stage) <= ROW_BYTES


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
