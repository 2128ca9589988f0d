"""A rule: what it takes, what it decides about it, and what it makes of that.

`match` reads the roles of axes out of stages, or says that the rule is not for them. `decide` gives
a frozen dataclass of plain numbers, from what the machine's steps cost. `steps` take both to a
schedule. So a rule's decisions can be read, changed one by one within what is legal, and searched,
without knowing how the rule lays a stage out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from unity.errors import UnityError
from unity.ir.stmt import Buffer, Stmt
from unity.machine.target import Target

from ..blocks.nest import Nest, block_of
from ..blocks.sound import is_sound
from ..blocks.stage import func_of, stage_of, stages_of
from ..blocks.tree import blocks_below
from ..blocks.trust import trusted
from ..schedule.schedule import Schedule
from ..tactics.result import with_result

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Names: TypeAlias = tuple[str, ...]
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
        steps: Takes its steps of a schedule, given the names of each stage's blocks: the first, and
            those behind it that it does in its write-back.
        take: The same on stages whose sums are parted from the blocks that take them: the last of
            each stage's names.
        with_: The same with other decisions; refuses those that are not legal.
        refused: Why one of the steps is not known to be legal here, if so.
        passed: What rules before it would have taken the stages, and which of their steps is not
            known to be legal: a gap of the steps, or of the rule.
    """

    rule: str
    count: int
    decisions: Mapping[str, int]
    legal: Callable[[], Neighbourhood]
    stmt: Callable[[], Stmt]
    steps: Callable[[Schedule, Sequence[Names]], None]
    take: Callable[[Schedule, Sequence[Names]], None]
    with_: Callable[[Mapping[str, int]], Found]
    refused: str | None = None
    passed: tuple[str, ...] = ()


class AnyRule(Protocol[S_in]):
    """A rule for a kind of stages, whatever roles and decisions it has."""

    @property
    def name(self) -> str:
        """Of the rule."""
        ...

    def on(self, stages: S_in, target: Target) -> Found | None:
        """The rule on some stages; None where it is not for them."""
        ...


def first(
    rules: Iterable[AnyRule[S]], stages: S, target: Target, passed: list[str]
) -> Found | None:
    """The first of some rules that takes stages.

    Args:
        rules: Asked in order.
        stages: What they are asked about.
        target: The machine.
        passed: Gets why rules that are for the stages could not take them.
    """
    for rule in rules:
        found = rule.on(stages, target)
        if found is None:
            continue
        if found.refused is None:
            return found
        passed.append(f"{rule.name}: {found.refused}")
    return None


def first_of(rules: Iterable[AnyRule[S]], stages: S, target: Target) -> Found:
    """The same of rules of which one takes whatever there is; it tells which ones passed it on."""
    passed: list[str] = []
    found = first(rules, stages, target, passed)
    assert found is not None
    return replace(found, passed=tuple(passed)) if passed else found


@dataclass(frozen=True, slots=True)
class Steps(Generic[R, D]):
    """How a rule lays a stage out by steps of a schedule.

    Attributes:
        nest: The stage as it was written; of several, the last, which reads through the others.
        take: Takes them, given the name of the block that stores: of a reduction, the one behind it
            that takes its result.
        parts: Whether a reduction is parted from that block first; if not, it stores itself.
    """

    nest: Callable[[R], Nest | Stmt]
    take: Callable[[Schedule, R, D, str], None]
    parts: bool = True

    def on(self, roles: R, decisions: D) -> Callable[[Schedule, Sequence[Names]], None]:
        """What takes them, for roles and decisions."""

        def on_blocks(sch: Schedule, blocks: Sequence[Names]) -> None:
            *through, (first, *behind) = blocks or [("",)]
            for name in (name for each in through for name in each):
                sch.compute_inline(name)
            nest = self.nest(roles)
            reduces = isinstance(nest, Nest) and nest.reduction is not None
            stores = with_result(sch, first, behind) if reduces and self.parts else first
            self.take(sch, roles, decisions, stores)

        return on_blocks

    def on_parted(self, roles: R, decisions: D) -> Callable[[Schedule, Sequence[Names]], None]:
        """What takes them where a reduction is parted already."""
        return lambda sch, blocks: self.take(sch, roles, decisions, blocks[-1][-1])

    def stmt(self, roles: R, decisions: D, target: Target, *, proven: bool = True) -> Stmt:
        """The stage laid out, by itself.

        Args:
            roles: Of the stage's axes.
            decisions: The rule's.
            target: The machine.
            proven: Whether these are the rule's own decisions, whose steps tests have checked: on
                a stage that is sound they are trusted.
        """
        nest = self.nest(roles)
        if not isinstance(nest, Nest) or nest.reduction is None:
            body = block_of(nest) if isinstance(nest, Nest) else nest
            sch = Schedule(func_of(body), target)
            names = [b.name for b in blocks_below(sch.func.body)]
            with trusted(proven and is_sound(sch.func)):
                self.take(sch, roles, decisions, names[0] if names else "")
            return sch.func.body
        stage = stage_of(nest)
        sch = Schedule(stage.func, target)
        with trusted(proven and is_sound(sch.func)):
            self.take(sch, roles, decisions, f"{nest.name}_result")
        return stage.around(sch.func.body)

    def checked(self, roles: R, decisions: D, target: Target) -> Stmt:
        """The same, each step checked."""
        return self.stmt(roles, decisions, target, proven=False)


Results = Mapping[str, str]
"""By the name of a block that sums up, the one behind it that takes the sums."""


@dataclass(frozen=True, slots=True)
class GroupSteps(Generic[R, D]):
    """How a rule lays several stages out by steps of a schedule.

    Attributes:
        nests: The stages as they were written; what is no nest is a statement.
        private: What only they touch.
        take: Takes them.
    """

    nests: Callable[[R], Sequence[Nest | Stmt]]
    private: Callable[[R], Collection[Buffer]]
    take: Callable[[Schedule, R, D, Results], None]

    def on(self, roles: R, decisions: D) -> Callable[[Schedule, Sequence[Names]], None]:
        """What takes them, for roles and decisions."""

        def taken(sch: Schedule, names: Sequence[Names]) -> None:
            results = {
                first: with_result(sch, first, behind)
                for nest, (first, *behind) in zip(self.nests(roles), names, strict=True)
                if isinstance(nest, Nest) and nest.reduction is not None
            }
            self.take(sch, roles, decisions, results)

        return taken

    def on_parted(self, roles: R, decisions: D) -> Callable[[Schedule, Sequence[Names]], None]:
        """What takes them where reductions are parted already."""

        def taken(sch: Schedule, names: Sequence[Names]) -> None:
            results = {first: last for first, *_, last in (n for n in names if len(n) > 1)}
            self.take(sch, roles, decisions, results)

        return taken

    def stmt(self, roles: R, decisions: D, target: Target, *, proven: bool = True) -> Stmt:
        """The stages laid out, by themselves; see `Steps.stmt`."""
        nests = self.nests(roles)
        sch = Schedule(func_of(stages_of(nests, self.private(roles))), target)
        sums = [n.name for n in nests if isinstance(n, Nest) and n.reduction is not None]
        with trusted(proven and is_sound(sch.func)):
            self.take(sch, roles, decisions, {name: f"{name}_result" for name in sums})
        return sch.func.body

    def checked(self, roles: R, decisions: D, target: Target) -> Stmt:
        """The same, each step checked."""
        return self.stmt(roles, decisions, target, proven=False)


@dataclass(frozen=True, slots=True)
class Rule(Generic[S, R, D]):
    """How one kind of stages is laid out.

    Attributes:
        name: Of the rule.
        match: The roles of the stages' axes; None where the rule is not for them.
        decide: Numbers and choices that suit a machine.
        legal: What each of them may be.
        steps: Lay the stages out.
        count: How many stages are taken.
    """

    name: str
    match: Callable[[S, Target], R | None]
    decide: Callable[[R, Target], D]
    legal: Callable[[R, D, Target], Neighbourhood]
    steps: Steps[R, D] | GroupSteps[R, D]
    count: Callable[[R], int] = lambda _: 1

    def on(self, stages: S, target: Target) -> Found | None:
        """The rule on some stages, refused or not; None where it is not for them."""
        roles = self.match(stages, target)
        if roles is None:
            return None
        found = self._found(roles, self.decide(roles, target), target, self.steps.stmt)
        try:
            found.stmt()
        except UnityError as error:
            return replace(found, refused=error.message)
        return found

    def _found(
        self, roles: R, decisions: D, target: Target, write: Callable[[R, D, Target], Stmt]
    ) -> Found:
        return Found(
            self.name,
            self.count(roles),
            _as_mapping(decisions),
            partial(self.legal, roles, decisions, target),
            cache(partial(write, roles, decisions, target)),
            self.steps.on(roles, decisions),
            self.steps.on_parted(roles, decisions),
            partial(self._with, roles, decisions, target),
        )

    def _with(self, roles: R, decisions: D, target: Target, changes: Mapping[str, int]) -> Found:
        if not changes:
            return self._found(roles, decisions, target, self.steps.stmt)
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
            if _unlike(value, known[name]):
                kind = "a yes or no" if isinstance(known[name], bool) else "a number"
                raise UnityError(
                    f"the decision {name!r} of the rule {self.name!r} is {kind}, not {value!r}",
                    hint=f"it may be {_listed(legal.values)}" if legal is not None else None,
                )
            if legal is not None and value not in legal.values:
                raise UnityError(
                    f"{name}={value!r} is not legal for the rule {self.name!r}: {legal.because}",
                    hint=f"it may be {_listed(legal.values)}",
                )
        write = self.steps.stmt if changed == decisions else self.steps.checked
        return self._found(roles, changed, target, write)


def by_steps(
    name: str,
    match: Callable[[S, Target], R | None],
    decide: Callable[[R, Target], D],
    legal: Callable[[R, D, Target], Neighbourhood],
    nest: Callable[[R], Nest | Stmt],
    steps: Callable[[Schedule, R, D, str], None],
    parts: bool = True,
    count: int = 1,
) -> Rule[S, R, D]:
    """A rule that is a program of steps; see `Rule` and `Steps`.

    Of several stages, those before the last are read through (`compute_inline`).
    """
    taken = Steps(nest, steps, parts)
    return Rule(name, match, decide, legal, taken, lambda _: count)


def group_by_steps(
    name: str,
    match: Callable[[S, Target], R | None],
    decide: Callable[[R, Target], D],
    legal: Callable[[R, D, Target], Neighbourhood],
    steps: GroupSteps[R, D],
) -> Rule[S, R, D]:
    """A rule for several stages that is a program of steps; see `Rule` and `GroupSteps`."""
    return Rule(name, match, decide, legal, steps, lambda roles: len(steps.nests(roles)))


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
