"""Spaces written as programs: a function takes steps on a schedule, and leaves choices open.

What it draws by ``sample_*`` are the decisions; the function is run again with one of them changed,
so it may go on in another way by what it drew. AutoTVM's templates and MetaSchedule's space
generators are such functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeAlias, cast

from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.blocks.sound import is_sound
from unity.transform.blocks.trust import trusted
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Json

from .point import Point

SpaceProgram: TypeAlias = Callable[[Schedule], None]
"""Takes steps on a schedule; raises `UnityError` where it has nothing for the kernel."""
_TRIES = 8
_SEEDS = 1 << 30
_KEPT = 64
"""Schedules that are remembered: those of points that were drawn last."""


class ProgramSpace:
    """The schedules that a function can make of a kernel.

    Args:
        func: The kernel.
        target: The machine.
        program: The function.
        name: What points and records call the space; the function's name if not given.
        proven: Whether tests have checked the function's steps: on a kernel that is sound they are
            trusted, as those of rules are.
    """

    def __init__(
        self,
        func: PrimFunc,
        target: Target,
        program: SpaceProgram,
        name: str | None = None,
        *,
        proven: bool = False,
    ) -> None:
        self.func = func
        self.target = target
        self._program = program
        self._name = program.__name__ if name is None else name
        self._trusted = proven and is_sound(Schedule(func, target).func)
        self._made: dict[Point, Schedule] = {}
        self._odds: dict[Point, list[Sequence[float] | None]] = {}
        """Of points that were drawn, how likely each value of a decision was, where that is known.
        """

    @property
    def name(self) -> str:
        """What points and records call it."""
        return self._name

    def first(self, random: Random) -> Point | None:
        """A point from anywhere: the function prefers none."""
        return self.sample(random)

    def sample(self, random: Random) -> Point | None:
        """What the function draws, the first time in some that nothing is refused."""
        return self._tried([], random)

    def mutate(self, point: Point, random: Random) -> Point | None:
        """One choice made another way; what no longer fits behind it is drawn, too."""
        taken = decisions_of(point)
        odds = self._odds.get(point, [None] * len(taken))
        open_ = [k for k, each in enumerate(odds) if each is None or len(each) > 1]
        if not open_:
            return None
        at = random.choice(open_)
        other = _other(odds[at], taken[at], random)
        return self._tried([other if k == at else d for k, d in enumerate(taken)], random)

    def cross(self, a: Point, b: Point, random: Random) -> Point | None:
        """The first choices of one point, the others of the other one."""
        mine, other = decisions_of(a), decisions_of(b)
        if not mine or not other:
            return None
        at = random.randrange(min(len(mine), len(other)) + 1)
        return self._tried([*mine[:at], *other[at:]], random)

    def every(self) -> Iterator[Point] | None:
        """None: what a function may draw is not known before it runs."""
        return None

    def schedule(self, point: Point) -> Schedule:
        """The kernel laid out by the function with a point's choices."""
        return self._made.pop(point, None) or self._run(self._begun(decisions_of(point), 0))

    def _tried(self, decisions: Sequence[Json], random: Random) -> Point | None:
        for _ in range(_TRIES):
            schedule = self._begun(decisions, random.randrange(_SEEDS))
            try:
                self._run(schedule)
            except UnityError:
                if not _drawn(schedule):
                    return None  # it would be the same again
                continue
            return self._kept(Point.of(self._name, _drawn(schedule)), schedule)
        return None

    def _kept(self, point: Point, schedule: Schedule) -> Point:
        """Remember a schedule, which is asked for next as a rule; gives its point."""
        self._odds[point] = [
            cast("Sequence[float]", i.args[1]) if i.name == "sample_categorical" else None
            for i in schedule.trace
            if i.decision is not None
        ]
        self._made.pop(point, None)
        self._made[point] = schedule
        if len(self._made) > _KEPT:
            del self._made[next(iter(self._made))]
        return point

    def _begun(self, decisions: Sequence[Json], seed: int) -> Schedule:
        return Schedule(self.func, self.target, seed, decisions)

    def _run(self, schedule: Schedule) -> Schedule:
        with trusted(self._trusted):
            self._program(schedule)
        return schedule


def _drawn(schedule: Schedule) -> list[Json]:
    return [i.decision for i in schedule.trace if i.decision is not None]


def _other(odds: Sequence[float] | None, taken: Json, random: Random) -> Json:
    """Another value of a decision; None, where it is to be drawn: its values are not known."""
    others = [0.0 if k == taken else weight for k, weight in enumerate(odds or ())]
    return random.choices(range(len(others)), others)[0] if any(others) else None


def decisions_of(point: Point) -> list[Json]:
    """What a point of such a space decides, in order."""
    return list(cast("Sequence[Json]", point.decided()))
