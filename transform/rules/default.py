"""What `ScheduleDefault` does to a kernel: each stage laid out by the first rule that applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.stmt import Allocate, Block, Buffer, PrimFunc, Seq, Stmt, Store
from unity.ir.visit import stmt_loads, walk_stmt
from unity.machine.target import Target

from ..blocks.access import all_axes
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, nest_of, opened
from ..roles.attention import row_chain
from ..roles.padding import unpadded
from ..roles.row_group import row_group
from ..roles.winograd import tile_group
from ..schedule.schedule import Schedule
from ..tactics.epilogue import fused
from ..tactics.streaming_stores import past_caches
from .attention.blocks import chain_blocks
from .attention.matrix_tiles import chain_tiles
from .contraction.panels import panels_read
from .contraction.plain import plain
from .contraction.split_reduction import shared
from .contraction.tiled import steps_of_contraction
from .convolution.blocked import blocked
from .elementwise import schedule_elementwise
from .fallback import fallback
from .rows.long_rows import rows_on_threads
from .slabs import slab_by_slab, slabs
from .table import rule_of
from .winograd.tiles import tiles


@public
def default_schedule(func: PrimFunc, target: Target) -> Schedule:
    """What the default rule does to a kernel, as a schedule: to be read, changed, done again.

    Args:
        func: A kernel of one stage, as `pipeline().until(ScheduleDefault)` leaves it: elementwise,
            or a contraction with what transforms its result.
        target: The machine.

    Raises:
        UnityError: The kernel's rule is not made of steps of a schedule.

    >>> from unity.script import parse
    >>> func = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 64], c: f32[Buffer, 64]) -> None:
    ...     for i in range(64):
    ...         with T.block("double"):
    ...             vi = T.axis.spatial(64, i)
    ...             c[vi] = a[vi] * 2.0
    ... ''').prim_funcs()["main"]
    >>> [step.name for step in default_schedule(func, Target("cpu", "", "", ())).trace]
    ['get_loops', 'split', 'vectorize']
    """
    sch = Schedule(func, target)
    temporaries, stages = opened(sch.func.body)
    nests = [nest_of(s) or s for s in stages]
    joined = _fused(nests, set(temporaries))
    nest = joined[0] if len(joined) == 1 else None
    if isinstance(nest, Nest) and nest.axes and nest.reduction is None:
        schedule_elementwise(sch, nest)
    elif isinstance(nest, Nest) and rule_of(nest, target) == "contraction":
        steps_of_contraction(sch, nest, [n.name for n in nests[1:] if isinstance(n, Nest)])
    else:
        raise UnityError(
            "the rule for this kernel lays it out at once, not by steps of a schedule",
            hint="Schedule(func) starts from the kernel as it is",
        )
    return sch


def schedule(func: PrimFunc, target: Target) -> PrimFunc:
    """The prim func laid out for a target; itself if there was nothing to do."""
    if func.attrs.get("scheduled") or not any(isinstance(s, Block) for s in walk_stmt(func.body)):
        return func
    temporaries, stages = opened(func.body)
    nests = _fused([nest_of(s) or s for s in stages], set(temporaries))
    laid_out = _without_points(nests, target)
    if laid_out is None:
        laid_out = _by_rule(nests, set(temporaries), target)
    body: Stmt = laid_out[0] if len(laid_out) == 1 else Seq(tuple(laid_out))
    used = {b for s in walk_stmt(body) for b in _accessed(s)}
    for buffer in reversed(temporaries):
        if buffer in used:
            body = Allocate(buffer, body)
    done = replace(func, body=body, attrs=func.attrs.with_(scheduled=True))
    past = past_caches(done, target)
    return replace(done, attrs=done.attrs.with_(nontemporal=past)) if past else done


def _fused(stages: list[Nest | Stmt], temporaries: set[Buffer]) -> list[Nest | Stmt]:
    """With each reduction's elementwise successor in its write-back, where no one else reads it."""
    readers = Counter(b for stage in stages for b in _buffers_read(stage))
    result: list[Nest | Stmt] = []
    for stage in stages:
        last = result[-1] if result else None
        if isinstance(last, Nest) and isinstance(stage, Nest):
            private = last.output in temporaries and readers[last.output] == 1
            joined = fused(last, stage) if private else None
            if joined is not None:
                result[-1] = joined
                continue
        result.append(stage)
    return result


def _buffers_read(stage: Nest | Stmt) -> set[Buffer]:
    if isinstance(stage, Nest):
        return {x.buffer for x in stage.loads()}
    return {x.buffer for s in walk_stmt(stage) for x in stmt_loads(s)}


def _without_points(stages: list[Nest | Stmt], target: Target) -> list[Stmt] | None:
    """The stages of a kernel where one runs over nothing, each by itself; None where none does.

    A stage without points goes, and one that reduces nothing gives its first value: what rules
    count in, tiles and rows and strides, has no meaning there.
    """
    if not any(isinstance(s, Nest) and _is_empty(all_axes(s)) for s in stages):
        return None
    result: list[Stmt] = []
    for stage in stages:
        if isinstance(stage, Nest) and _is_empty(all_axes(stage)):
            bare = None if _is_empty(stage.axes) else plain(stage, target)
            result += [] if bare is None else [bare]
        else:
            result.append(_laid_out(stage, target))
    return result


def _is_empty(axes: Sequence[Axis]) -> bool:
    return any(number(a.extent) == 0 for a in axes)


def _by_rule(stages: list[Nest | Stmt], temporaries: set[Buffer], target: Target) -> list[Stmt]:
    """Chains over the same tiles or rows together, every other stage by itself."""
    tiled = tile_group(stages, temporaries, target)
    if tiled is not None:
        return [tiles(tiled, target)]
    result: list[Stmt] = []
    at = 0
    while at < len(stages):
        read_through = _without_copy(stages, at, temporaries, target)
        if read_through is not None:
            result.append(read_through)
            at += 2
            continue
        read = _read_in_tile(stages, at, temporaries, target)
        if read is not None:
            result.append(read)
            break
        chain = row_chain(stages[at:], temporaries, target)
        if chain is not None:
            result.append(chain_tiles(chain, target) or chain_blocks(chain, target))
            at += len(chain.stages)
            continue
        group = row_group(stages[at:])
        if group is None:
            result.append(_laid_out(stages[at], target))
            at += 1
            continue
        end = at + len(group.stages)
        others = {b for s in (*stages[:at], *stages[end:]) for b in _touched(s)}
        result.append(rows_on_threads(group, temporaries - others, target))
        at = end
    return result


def reads_in_tile(func: PrimFunc, target: Target) -> bool:
    """Whether all stages of a kernel but the first are done in the register tile of that one."""
    temporaries, stages = opened(func.body)
    nests = _fused([nest_of(s) or s for s in stages], set(temporaries))
    return _read_in_tile(nests, 0, set(temporaries), target) is not None


def _read_in_tile(
    stages: Sequence[Nest | Stmt], at: int, temporaries: set[Buffer], target: Target
) -> Stmt | None:
    """A product with all stages behind it, where these read its result point by point."""
    nests = [s for s in stages[at:] if isinstance(s, Nest)]
    if len(nests) < len(stages) - at or len(nests) < 2:
        return None
    others = {b for s in stages[:at] for b in _touched(s)}
    return panels_read(nests[0], nests[1:], temporaries - others, target)


def _without_copy(
    stages: Sequence[Nest | Stmt], at: int, temporaries: set[Buffer], target: Target
) -> Stmt | None:
    """A stage that pads and the one that reads the copy, laid out without it where a rule can.

    Else with one of a slab that stays in a cache, where the stages go over the same slabs.
    """
    pad, *after = stages[at : at + 2]
    if not isinstance(pad, Nest) or pad.output not in temporaries or not after:
        return None
    (stage,) = after
    others = (s for i, s in enumerate(stages) if i not in (at, at + 1))
    if not isinstance(stage, Nest) or any(pad.output in _touched(s) for s in others):
        return None
    joined = unpadded(pad, stage)
    through = None if joined is None else blocked(joined, target)
    found = slabs(pad, stage, target) if through is None else None
    return through if found is None else slab_by_slab(found, target)


def _touched(stage: Nest | Stmt) -> set[Buffer]:
    if isinstance(stage, Nest):
        return {x.buffer for x in stage.loads()} | {x.buffer for x in stage.stores()}
    return {b for s in walk_stmt(stage) for b in _accessed(s)}


def _laid_out(stage: Nest | Stmt, target: Target) -> Stmt:
    return shared(stage, target) if isinstance(stage, Nest) else fallback(stage, target)


def _accessed(s: Stmt) -> list[Buffer]:
    stored = [s.buffer] if isinstance(s, Store) else []
    return stored + [x.buffer for x in stmt_loads(s)]
