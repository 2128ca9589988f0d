"""What `ScheduleDefault` does to a kernel: each stage laid out by the first rule that takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.stmt import Block, IfThen, PrimFunc, Seq, Stmt
from unity.ir.visit import walk_stmt
from unity.machine.target import Target

from ..blocks.nest import Nest, opened
from ..blocks.tree import distinct, over_sizes
from ..schedule.primitives import specialize_when
from ..schedule.schedule import Schedule
from ..tactics.result import with_result
from ..tactics.streaming_stores import past_caches
from .by_name import with_temporaries
from .contraction.dot_products import steps_of_dots
from .contraction.plain import steps_of_plain
from .contraction.tiled import steps_of_contraction
from .cover import NO_POINTS, Decide, Taken, cover, is_empty, parts_of, product_read_in_tile
from .elementwise import steps_of_elementwise
from .equal_dims import when_dims_are_equal
from .rule import Legal


def _steps_without_points(sch: Schedule, nest: Nest, behind: Sequence[str]) -> None:
    """Leave a stage without points as it is; lay out one that reduces nothing as any reduction."""
    if not is_empty(nest.axes):
        steps_of_plain(sch, nest, behind)


STEPS: Mapping[str, Callable[[Schedule, Nest, Sequence[str]], None]] = {
    "elementwise": steps_of_elementwise,
    "contraction": steps_of_contraction,
    "dot_products": steps_of_dots,
    "plain": steps_of_plain,
    NO_POINTS.name: _steps_without_points,
}
"""The rules that are made of steps, on a stage and the blocks that its write-back does."""


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule on some blocks of a kernel.

    Attributes:
        rule: Its name.
        blocks: Their names.
        decisions: What it decided, by name: plain numbers, and yes or no.
        legal: What else each decision may be, where the others stay.
    """

    rule: str
    blocks: tuple[str, ...]
    decisions: Mapping[str, int]
    legal: Mapping[str, Legal]

    def __str__(self) -> str:
        """As a line: the rule with its decisions, and the blocks."""
        numbers = ", ".join(f"{name}={value}" for name, value in self.decisions.items())
        return f"{self.rule}({numbers}) on {' and '.join(self.blocks) or 'loops by hand'}"


Decider: TypeAlias = Callable[[AppliedRule, Target], Mapping[str, int]]
"""The decisions of a rule that a backend takes otherwise, by name; none where it agrees."""
Decisions: TypeAlias = Mapping[str, Mapping[str, int | bool]]
"""Changed decisions by name, for the rule that takes a block."""


@public
def default_rules(
    func: PrimFunc, target: Target, decisions: Decisions | None = None
) -> tuple[AppliedRule, ...]:
    """Which rule takes which blocks of a kernel, and what it decides.

    Args:
        func: A kernel, as `pipeline().until(ScheduleDefault)` leaves it.
        target: The machine.
        decisions: Others than the rules' own, as `default_schedule` takes them.

    Raises:
        UnityError: A changed decision is not legal, or for no block or rule that there is.
    """
    versions = _bodies(_by_equal_dims(func))
    return tuple(_applied(t) for t in _taken(versions, target, _wanted(decisions), decisions))


@public
def default_schedule(
    func: PrimFunc, target: Target, decisions: Decisions | None = None
) -> Schedule:
    """What the default rules do to a kernel, as a schedule: to be read, changed, done again.

    A rule that is made of a schedule's steps takes them, any other one writes its loops in a step
    `lay_out` with its decisions.

    Args:
        func: A kernel, as `pipeline().until(ScheduleDefault)` leaves it.
        target: The machine.
        decisions: Others than the rules' own: for the name of a block, decisions of the rule that
            takes it by name; `default_rules` tells what there are.

    Raises:
        UnityError: A changed decision is not legal, or for no block or rule that there is.

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
    equal = when_dims_are_equal(sch.func.body)
    if equal is not None:
        sch.specialize_when(equal)
    for each in _taken(_bodies(sch.func.body), target, _wanted(decisions), decisions):
        stage = each.parts[0].stage
        program = each.found.steps
        if program is not None and isinstance(stage, Nest):
            program(sch, with_result(sch, stage.name, each.parts[0].behind))
            continue
        steps = STEPS.get(each.rule)
        if steps is not None and isinstance(stage, Nest):
            trial = sch.copy()
            try:
                steps(trial, stage, each.parts[0].behind)
            except UnityError:
                pass  # one of its versions is of no steps
            else:
                sch = trial
                continue
        if each.names:
            sch.lay_out(each.rule, each.names, each.found.decisions)
    return sch


def _wanted(decisions: Decisions | None) -> Decide | None:
    """Changed decisions by the names of blocks."""
    if not decisions:
        return None

    def changes(taken: Taken) -> Mapping[str, int]:
        return {k: v for name in taken.names for k, v in decisions.get(name, {}).items()}

    return changes


def _by_equal_dims(func: PrimFunc) -> Stmt:
    """A kernel's body, or two versions of it: for dims that are equal, and such as broadcast."""
    equal = when_dims_are_equal(func.body)
    return func.body if equal is None else specialize_when(distinct(func), equal).func.body


def _bodies(body: Stmt) -> tuple[Stmt, ...]:
    """The versions of a kernel's body."""
    if isinstance(body, IfThen) and body.orelse is not None and over_sizes(body.condition):
        return body.then, body.orelse
    return (body,)


def _taken(
    bodies: Sequence[Stmt],
    target: Target,
    decide: Decide | None,
    wanted: Decisions | None = None,
) -> list[Taken]:
    """What rules take in one version of a kernel after another."""
    taken: list[Taken] = []
    for body in bodies:
        temporaries, stages = opened(body)
        taken += cover(parts_of(stages, set(temporaries)), set(temporaries), target, decide)
    names = [name for t in taken for name in t.names]
    for name in wanted or {}:
        if name not in names:
            raise UnityError(
                f"no rule takes a block {name!r}, for which there are decisions",
                hint=f"the kernel has {', '.join(names) or 'none'}",
            )
    return taken


def _applied(taken: Taken) -> AppliedRule:
    found = taken.found
    return AppliedRule(taken.rule, taken.names, found.decisions, found.legal())


def schedule(func: PrimFunc, target: Target, decider: Decider | None = None) -> PrimFunc:
    """The prim func laid out for a target; itself if there was nothing to do."""
    if func.attrs.get("scheduled") or not any(isinstance(s, Block) for s in walk_stmt(func.body)):
        return func
    decide = None if decider is None else lambda t: decider(_applied(t), target)
    body = _laid_out(_by_equal_dims(func), target, decide)
    done = replace(func, body=body, attrs=func.attrs.with_(scheduled=True))
    past = past_caches(done, target)
    return replace(done, attrs=done.attrs.with_(nontemporal=past)) if past else done


def _laid_out(s: Stmt, target: Target, decide: Decide | None) -> Stmt:
    """A kernel's body, each stage by its rule; each version, where there are some."""
    if isinstance(s, IfThen) and len(_bodies(s)) == 2:
        then, otherwise = (_laid_out(x, target, decide) for x in _bodies(s))
        return replace(s, then=then, orelse=otherwise)
    laid_out = [t.found.stmt() for t in _taken([s], target, decide)]
    body: Stmt = laid_out[0] if len(laid_out) == 1 else Seq(tuple(laid_out))
    return with_temporaries(opened(s)[0], body)


def reads_in_tile(func: PrimFunc, target: Target) -> bool:
    """Whether all stages of a kernel but the first are done in the register tile of that one."""
    temporaries, stages = opened(func.body)
    parts = parts_of(stages, set(temporaries))
    return product_read_in_tile([p.stage for p in parts], 0, set(temporaries), target)
