"""What `ScheduleDefault` does to a kernel: each stage laid out by the first rule that applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.stmt import Allocate, Block, IfThen, PrimFunc, Seq, Stmt
from unity.ir.visit import walk_stmt
from unity.machine.target import Target

from ..blocks.access import all_axes, parted
from ..blocks.nest import Nest, opened
from ..schedule.schedule import Schedule
from ..tactics.streaming_stores import past_caches
from .contraction.plain import steps_of_plain
from .contraction.tiled import steps_of_contraction
from .cover import cover, parts_of, product_read_in_tile, touched
from .elementwise import steps_of_elementwise
from .equal_dims import where_dims_are_equal

STEPS: Mapping[str, Callable[[Schedule, Nest, Sequence[str]], None]] = {
    "elementwise": steps_of_elementwise,
    "contraction": steps_of_contraction,
    "plain": steps_of_plain,
}
"""The rules that are made of steps, on a stage and the blocks that its write-back does."""


@public
def default_schedule(func: PrimFunc, target: Target) -> Schedule:
    """What the default rule does to a kernel, as a schedule: to be read, changed, done again.

    Args:
        func: A kernel, as `pipeline().until(ScheduleDefault)` leaves it.
        target: The machine.

    Raises:
        UnityError: A rule that takes some of its stages is not made of steps: which one.

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
    if where_dims_are_equal(sch.func.body) is not None:
        raise UnityError(
            "laid out twice: for dims that are equal, and for such as broadcast",
            hint="Schedule(func) starts from the kernel as it is",
        )
    temporaries, stages = opened(sch.func.body)
    taken = cover(parts_of(stages, set(temporaries)), set(temporaries), target)
    at_once = [t for t in taken if t.rule not in STEPS]
    if at_once:
        rules = [f"{t.rule!r} for {' and '.join(t.names) or 'loops by hand'}" for t in at_once]
        raise UnityError(
            f"laid out at once, not by steps of a schedule: {', '.join(rules)}",
            hint="Schedule(func) starts from the kernel as it is",
        )
    for each in taken:
        (part,) = each.parts
        assert isinstance(part.stage, Nest)
        if all_axes(parted(part.stage)) != all_axes(part.stage):
            raise UnityError(
                f"the rule {each.rule!r} parts axes of {part.stage.name!r} first",
                hint="Schedule(func) starts from the kernel as it is",
            )
        STEPS[each.rule](sch, part.stage, part.behind)
    return sch


def schedule(func: PrimFunc, target: Target) -> PrimFunc:
    """The prim func laid out for a target; itself if there was nothing to do."""
    if func.attrs.get("scheduled") or not any(isinstance(s, Block) for s in walk_stmt(func.body)):
        return func
    body, equal = _laid_out(func.body, target), where_dims_are_equal(func.body)
    if equal is not None:
        condition, mostly = equal
        body = IfThen(condition, _laid_out(mostly, target), body)
    done = replace(func, body=body, attrs=func.attrs.with_(scheduled=True))
    past = past_caches(done, target)
    return replace(done, attrs=done.attrs.with_(nontemporal=past)) if past else done


def _laid_out(s: Stmt, target: Target) -> Stmt:
    """A kernel's body, each stage by its rule."""
    temporaries, stages = opened(s)
    taken = cover(parts_of(stages, set(temporaries)), set(temporaries), target)
    laid_out = [t.stmt for t in taken]
    body: Stmt = laid_out[0] if len(laid_out) == 1 else Seq(tuple(laid_out))
    used = touched(body)
    for buffer in reversed(temporaries):
        if buffer in used:
            body = Allocate(buffer, body)
    return body


def reads_in_tile(func: PrimFunc, target: Target) -> bool:
    """Whether all stages of a kernel but the first are done in the register tile of that one."""
    temporaries, stages = opened(func.body)
    parts = parts_of(stages, set(temporaries))
    return product_read_in_tile([p.stage for p in parts], 0, set(temporaries), target) is not None
