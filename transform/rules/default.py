"""What `ScheduleDefault` does to a kernel: each stage laid out by the first rule that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.prim_expr import PrimExpr
from unity.ir.stmt import Allocate, IfThen, PrimFunc, Seq, Stmt
from unity.machine.target import Target

from ..blocks.nest import opened
from ..blocks.sound import is_sound
from ..blocks.tree import conjunction, distinct, over_sizes
from ..blocks.trust import trusted
from ..schedule.primitives import specialize_when, stream_stores
from ..schedule.schedule import Schedule
from ..scheduled import as_scheduled, awaits_layout
from ..tactics.streaming_stores import past_caches
from .cover import Decide, Taken, Without, cover, product_read_in_tile, with_decisions
from .decisions import (
    KINDS,
    AppliedRule,
    Decider,
    Decisions,
    changes_for,
    decider,
    require_decisions,
)
from .equal_dims import when_dims_are_equal
from .lone_rows import when_rows_are_there
from .stages import parts_of, touched

_public = partial(public, kinds=KINDS)


@_public
def default_rules(
    func: PrimFunc,
    target: Target,
    decisions: Decisions | None = None,
    without: Without | None = None,
) -> tuple[AppliedRule, ...]:
    """Which rule takes which blocks of a kernel, and what it decides.

    Args:
        func: A kernel, as `pipeline().until(ScheduleDefault)` leaves it.
        target: The machine.
        decisions: Others than the rules' own, as `default_schedule` takes them.
        without: Rules that are not asked about a block, by its name: the next that takes it does.

    Raises:
        UnityError: A changed decision is not legal, or for no block or rule that there is.
    """
    return DefaultRules(func, target).applied(decisions, without)


@_public
def default_schedule(
    func: PrimFunc,
    target: Target,
    decisions: Decisions | None = None,
    without: Without | None = None,
) -> Schedule:
    """What the default rules do to a kernel, as a schedule: to be read, changed, done again.

    Args:
        func: A kernel, as `pipeline().until(ScheduleDefault)` leaves it.
        target: The machine.
        decisions: Others than the rules' own: for the name of a block, decisions of the rule that
            takes it by name; `default_rules` tells what there are.
        without: Rules that are not asked about a block, by its name: the next that takes it does.

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
    return DefaultRules(func, target).schedule(decisions, without)


class DefaultRules:
    """What the default rules may do to a kernel; which take what is found once for all decisions.

    Args:
        func: A kernel, as `default_rules` takes it.
        target: The machine.
    """

    def __init__(self, func: PrimFunc, target: Target) -> None:
        self._target = target
        self._start = Schedule(func, target)
        usual = _when_usual(self._start.func)
        if usual is not None:
            self._start.specialize_when(usual)
        self._covered: dict[frozenset[tuple[str, frozenset[str]]], Sequence[Taken]] = {}

    def applied(
        self, decisions: Decisions | None = None, without: Without | None = None
    ) -> tuple[AppliedRule, ...]:
        """Which rule takes which blocks, and what it decides; see `default_rules`.

        Raises:
            UnityError: A changed decision is not legal, or for no block or rule that there is.
        """
        return tuple(_applied(t) for t in self._taken(decisions, without))

    def schedule(
        self, decisions: Decisions | None = None, without: Without | None = None
    ) -> Schedule:
        """What they do, as a schedule; see `default_schedule`.

        Raises:
            UnityError: A changed decision is not legal, or for no block or rule that there is.
        """
        taken, sch = self._taken(decisions, without), self._start.copy()
        for each in taken:
            sch = _with_steps(sch, each)
        for parameter in past_caches(sch.func, self._target):
            sch.stream_stores(parameter)
        return sch

    def _taken(self, decisions: Decisions | None, without: Without | None) -> Sequence[Taken]:
        key = frozenset((name, frozenset(rules)) for name, rules in (without or {}).items())
        if key not in self._covered:
            bodies = _bodies(self._start.func.body)
            self._covered[key] = [
                t for body in bodies for t in _cover(body, self._target, without or {})
            ]
        wanted = _wanted(decisions)
        taken = with_decisions(self._covered[key], wanted)
        names = [name for t in taken for name in t.names]
        for name in decisions or {}:
            if name not in names:
                raise UnityError(
                    f"no rule takes a block {name!r}, for which there are decisions",
                    hint=f"the kernel has {', '.join(names) or 'none'}",
                )
        return taken


def _with_steps(sch: Schedule, taken: Taken) -> Schedule:
    """A schedule with a rule's steps.

    They are those that are compiled: where one is trusted to a rule and would not be to a user, it
    is taken all the same, and refused where the program is run by itself.
    """
    names, trial = [part.names for part in taken.parts], sch.copy()
    try:
        taken.found.steps(trial, names)
    except UnityError:
        taken.found.stmt()  # which refuses changed decisions, as their steps are checked
        with trusted(is_sound(sch.func)):
            taken.found.steps(sch, names)
        return sch
    return trial


def _wanted(decisions: Decisions | None) -> Decide | None:
    """Changed decisions by the names of blocks."""
    if decisions is None:
        return None
    require_decisions(decisions)
    return (lambda taken: changes_for(taken.names, decisions)) if decisions else None


def _when_usual(func: PrimFunc) -> PrimExpr | None:
    """The facts about sizes that mostly hold, and by which a kernel is laid out better.

    None are asked of a kernel that comes in versions.
    """
    if len(_bodies(func.body)) > 1:
        return None
    found = (when_dims_are_equal(func.body), when_rows_are_there(func.body))
    return conjunction([fact for fact in found if fact is not None])


def _in_versions(func: PrimFunc) -> Stmt:
    """A kernel's body, or two versions of it: for the usual sizes, and others."""
    usual = _when_usual(func)
    return func.body if usual is None else specialize_when(distinct(func), usual).func.body


def _bodies(body: Stmt) -> tuple[Stmt, ...]:
    """The versions of a kernel's body, without the temporaries around them."""
    whole = body
    while isinstance(body, Allocate):
        body = body.body
    if isinstance(body, IfThen) and body.orelse is not None and over_sizes(body.condition):
        return body.then, body.orelse
    return (whole,)


def _cover(body: Stmt, target: Target, without: Without) -> list[Taken]:
    """What rules take in one version of a kernel, by their own decisions."""
    temporaries, stages = opened(body)
    return cover(parts_of(stages, set(temporaries)), set(temporaries), target, without)


def _applied(taken: Taken) -> AppliedRule:
    found = taken.found
    return AppliedRule(taken.rule, taken.names, found.decisions, found.legal(), found.passed)


def schedule(func: PrimFunc, target: Target, decide: Decider | Decisions | None = None) -> PrimFunc:
    """The prim func laid out for a target; itself if there was nothing to do."""
    if not awaits_layout(func):
        return func
    wanted = decider(decide)
    changes = None if wanted is None else lambda t: wanted(_applied(t), target)
    body = _laid_out(_in_versions(distinct(func)), target, changes)
    done = as_scheduled(replace(func, body=body))
    for parameter in past_caches(done, target):
        done = stream_stores(done, parameter).func
    return done


def _laid_out(s: Stmt, target: Target, decide: Decide | None) -> Stmt:
    """A kernel's body, each stage by its rule; each version, where there are some."""
    if len(_bodies(s)) == 2 and isinstance(s, Allocate):
        return replace(s, body=_laid_out(s.body, target, decide))
    if len(_bodies(s)) == 2 and isinstance(s, IfThen):
        then, otherwise = (_laid_out(x, target, decide) for x in _bodies(s))
        return replace(s, then=then, orelse=otherwise)
    laid_out = [t.found.stmt() for t in with_decisions(_cover(s, target, {}), decide)]
    body: Stmt = laid_out[0] if len(laid_out) == 1 else Seq(tuple(laid_out))
    used = touched(body)
    for buffer in reversed(opened(s)[0]):
        if buffer in used:
            body = Allocate(buffer, body)
    return body


def reads_in_tile(func: PrimFunc, target: Target) -> bool:
    """Whether all stages of a kernel but the first are done in the register tile of that one."""
    temporaries, stages = opened(func.body)
    parts = parts_of(stages, set(temporaries))
    return product_read_in_tile([p.stage for p in parts], 0, set(temporaries), target)
