"""A rule: what it takes, what it decides about it, and what it makes of that.

`match` reads the roles of axes out of stages, or says that the rule is not for them. `decide` gives
a frozen dataclass of plain numbers, from what the machine's steps cost. `write` makes loops of
both. So a rule's decisions can be read, changed one by one within what is legal, and searched,
without knowing how the rule lays a stage out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from unity.errors import UnityError
from unity.ir.stmt import Stmt
from unity.machine.target import Target

from ..blocks.nest import Nest
from ..blocks.stage import stage_of
from ..schedule.schedule import Schedule

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S")
S_in = TypeVar("S_in", contravariant=True)
R = TypeVar("R")
D = TypeVar("D", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Legal:
    """What a decision may be.

    Attributes:
        values: Every value that keeps a kernel right; the one that was decided is among them.
        because: What fact of the stage or the machine bounds them.
    """

    values: Sequence[int]
    because: str

    def __str__(self) -> str:
        """As a line: ``1 to 6 (a row's sums take 2 of 16 registers)``."""
        return f"{_listed(self.values)} ({self.because})"


EITHER = Legal((False, True), "it is a yes or no")
Neighbourhood = Mapping[str, Legal]
"""What each decision may be, where the others stay."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The decisions of a rule that leaves nothing open."""


@dataclass(frozen=True, slots=True)
class Found:
    """A rule that takes some stages.

    Attributes:
        rule: Its name.
        count: How many stages it takes.
        decisions: What it decided, by name.
        legal: Says what else each decision may be.
        stmt: The stages as it lays them out.
        steps: Where it does so by steps of a schedule, what takes them, given the name of the
            block behind that takes the result.
        with_: The same with other decisions; refuses those that are not legal.
    """

    rule: str
    count: int
    decisions: Mapping[str, int]
    legal: Callable[[], Neighbourhood]
    stmt: Callable[[], Stmt]
    steps: Callable[[Schedule, str], None] | None
    with_: Callable[[Mapping[str, int]], Found]


class AnyRule(Protocol[S_in]):
    """A rule for a kind of stages, whatever roles and decisions it has."""

    @property
    def name(self) -> str:
        """Of the rule."""
        ...

    def on(self, stages: S_in, target: Target) -> Found | None:
        """The rule on some stages; None where it is not for them."""
        ...


@dataclass(frozen=True, slots=True)
class Steps(Generic[R, D]):
    """How a rule lays a stage out by steps of a schedule.

    Attributes:
        nest: The stage as it was written.
        take: Takes them, on the stage's block and the one of that name behind it that takes its
            result.
    """

    nest: Callable[[R], Nest]
    take: Callable[[Schedule, R, D, str], None]

    def on(self, roles: R, decisions: D) -> Callable[[Schedule, str], None]:
        """What takes them, for roles and decisions."""
        return lambda sch, result: self.take(sch, roles, decisions, result)

    def stmt(self, roles: R, decisions: D, target: Target) -> Stmt:
        """The stage laid out, by itself."""
        nest = self.nest(roles)
        stage = stage_of(nest)
        sch = Schedule(stage.func, target)
        self.take(sch, roles, decisions, f"{nest.name}_result")
        return stage.around(sch.func.body)


@dataclass(frozen=True, slots=True)
class Rule(Generic[S, R, D]):
    """How one kind of stages is laid out.

    Attributes:
        name: Of the rule.
        match: The roles of the stages' axes; None where the rule is not for them.
        decide: Numbers and choices that suit a machine.
        legal: What each of them may be.
        write: The stages laid out.
        count: How many stages are taken.
        steps: What `write` does, where that are steps of a schedule.
    """

    name: str
    match: Callable[[S, Target], R | None]
    decide: Callable[[R, Target], D]
    legal: Callable[[R, D, Target], Neighbourhood]
    write: Callable[[R, D, Target], Stmt]
    count: Callable[[R], int] = lambda _: 1
    steps: Steps[R, D] | None = None

    def on(self, stages: S, target: Target) -> Found | None:
        """The rule on some stages; None where it is not for them."""
        roles = self.match(stages, target)
        if roles is None:
            return None
        found = self._found(roles, self.decide(roles, target), target)
        if self.steps is not None:
            try:
                found.stmt()
            except UnityError:
                return None  # a step is not known to be legal there: a rule behind takes it
        return found

    def _found(self, roles: R, decisions: D, target: Target) -> Found:
        return Found(
            self.name,
            self.count(roles),
            _as_mapping(decisions),
            partial(self.legal, roles, decisions, target),
            cache(partial(self.write, roles, decisions, target)),
            None if self.steps is None else self.steps.on(roles, decisions),
            partial(self._with, roles, decisions, target),
        )

    def _with(self, roles: R, decisions: D, target: Target, changes: Mapping[str, int]) -> Found:
        if not changes:
            return self._found(roles, decisions, target)
        known = _as_mapping(decisions)
        for name in changes:
            if name not in known:
                raise UnityError(
                    f"the rule {self.name!r} has no decision {name!r}",
                    hint=f"it decides {', '.join(known) or 'nothing'}",
                )
        changed = replace(decisions, **changes)
        for name, value in _as_mapping(changed).items():
            legal = self.legal(roles, changed, target).get(name)
            if legal is not None and (value not in legal.values or _unlike(value, known[name])):
                raise UnityError(
                    f"{name}={value!r} is not legal for the rule {self.name!r}: {legal.because}",
                    hint=f"it may be {_listed(legal.values)}",
                )
        return self._found(roles, changed, target)


def by_steps(
    name: str,
    match: Callable[[S, Target], R | None],
    decide: Callable[[R, Target], D],
    legal: Callable[[R, D, Target], Neighbourhood],
    nest: Callable[[R], Nest],
    steps: Callable[[Schedule, R, D, str], None],
) -> Rule[S, R, D]:
    """A rule for a reduction that is a program of steps; see `Rule` and `Steps`."""
    taken = Steps(nest, steps)
    return Rule(name, match, decide, legal, taken.stmt, steps=taken)


def at_once(name: str, apply: Callable[[S, Target], Stmt | None]) -> Rule[S, Stmt, Nothing]:
    """A rule that leaves nothing open: it lays a stage out, or says that it is not for it."""
    return Rule(
        name,
        match=apply,
        decide=lambda _roles, _target: Nothing(),
        legal=lambda _roles, _decisions, _target: {},
        write=lambda stmt, _decisions, _target: stmt,
    )


def _as_mapping(decisions: DataclassInstance) -> dict[str, int]:
    return {f.name: getattr(decisions, f.name) for f in fields(decisions)}


def _unlike(value: int, decided: int) -> bool:
    """Whether one of them is a yes or no, and the other a number."""
    return isinstance(value, bool) is not isinstance(decided, bool)


def _listed(values: Sequence[int]) -> str:
    if isinstance(values, range) and len(values) > 8:
        step = "" if values.step == 1 else f" in steps of {values.step}"
        return f"{values[0]} to {values[-1]}{step}"
    return ", ".join(map(repr, values)) or "nothing else"


def worth(of: str) -> Legal:
    """A bound on how much work is worth something: any number keeps a kernel right."""
    return Legal(range(1, 1 << 25), f"it is a number of {of}")
