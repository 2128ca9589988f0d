"""What is asked for is kept to: sessions end in time, and use nothing that they did not confirm."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import unity
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform.schedule import Schedule
from unity.tuning import budget, in_program, session
from unity.tuning.budget import Budget
from unity.tuning.cost import PriorModel
from unity.tuning.in_program import settle
from unity.tuning.records import Records
from unity.tuning.search import PATIENCE
from unity.tuning.session import Session
from unity.tuning.spaces import Point
from unity.tuning.spaces.generic import STRUCTURAL
from unity.tuning.tasks import Task
from unity.tuning.tasks.task import Place
from unity.tuning.workers import Candidate, Measured, Measurer
from unity.tuning.workers.runner import USUAL, Timing

from .kernels import MATMUL, rows_at_once, tasks
from .test_tune import by_hand


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture(name="clock")
def clock_of(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all that plans a session."""
    made = Clock()
    for module in (budget, session, in_program):
        monkeypatch.setattr(module, "time", made)
    return made


class Slow(Measurer):
    """Takes some seconds for each candidate, and for the program what it is told to."""

    def __init__(self, clock: Clock, seconds: float, built_first: bool = False) -> None:
        """No children."""
        self._clock, self._seconds = clock, seconds
        self._built_first = built_first
        self.batches: list[int] = []

    def measure(
        self,
        task: Task,
        candidates: Sequence[Candidate],
        timing: Timing = USUAL,
        usual: PrimFunc | None = None,
    ) -> Iterator[Measured]:
        count = len(candidates)
        self.batches.append(count)
        for k in range(count):
            each = count if self._built_first and k == 0 else not self._built_first
            self._clock.now += each * self._seconds
            yield Measured(0.9 - 0.01 * k, 1.0)

    def kernels(self) -> Mapping[Place, Sequence[float]]:
        return {}

    def built(self, task: Task, candidates: Sequence[Candidate]) -> list[Path | None]:
        self._clock.now += self._seconds
        return [Path(f"{k}") for k in range(len(candidates))]

    def within(
        self, versions: Sequence[Sequence[tuple[Collection[Place], Path]]], seconds: float
    ) -> Sequence[Mapping[Place, float]] | None:
        self._clock.now += seconds
        places = {p for v in versions for of, _ in v for p in of}
        return [dict.fromkeys(places, 1.0 - 0.01 * k) for k in range(len(versions) + 1)]


def tiles(sch: Schedule) -> None:
    """A space that is large, and quick to draw from."""
    for loop in sch.get_loops("b0"):
        sch.split(loop, [None, sch.sample_categorical([*range(1, 17)], [1 / 16] * 16)])


def quick() -> Session:
    """A session whose own thoughts take no time."""
    return Session(tasks(MATMUL), Records(), PriorModel(), [tiles], rules=False, tiles=False)


@pytest.mark.parametrize(
    ("seconds", "each"), [(5.0, 0.7), (20.0, 0.3), (20.0, 3.0), (60.0, 2.0), (600.0, 10.0)]
)
@pytest.mark.parametrize(("compiling", "built_first"), [(0.5, False), (4.0, False), (4.0, True)])
def test_all_of_a_session_takes_what_was_asked_for(
    seconds: float, each: float, compiling: float, built_first: bool, clock: Clock
) -> None:
    """Also where a batch is built whole before anything of it is run."""
    limits = Budget(seconds, clock.now)
    for counts in (False, True):
        with limits.compiling(counts=counts):
            clock.now += compiling if not counts else 0.1 * compiling
    found = quick()
    measurer = Slow(clock, each, built_first)
    found.run(measurer, None, limits.search_end, lambda progress: None, limits.last_end)
    if found.trials:
        alone = settle(found, measurer, limits.settle_end)
        found.confirm(measurer, alone, limits.settle_end)
    run = limits.compare_seconds
    clock.now += 0.0 if run is None else compiling + 6 * run
    assert clock.now - 100.0 - compiling <= 1.2 * seconds
    assert found.trials or seconds < 10.0
    assert run is None or run <= 1.0
    assert run is not None or seconds < 20.0


def test_where_time_is_short_kernels_are_searched_that_take_most(clock: Clock) -> None:
    """What a kernel may become is found out when its turn comes: that takes some time of each."""
    (task,) = tasks(MATMUL)
    several = [replace(task, name=f"{k}", places=frozenset({(f"{k}", 0)})) for k in range(5)]
    times = {(f"{k}", 0): (t,) for k, t in enumerate([1e-3, 4e-3, 1e-5, 2e-3, 3e-3])}

    def slow(sch: Schedule) -> None:
        clock.now += 0.1
        tiles(sch)

    def names(seconds: float) -> list[str]:
        made = Session(
            several, Records(), PriorModel(), [slow], rules=False, tiles=False, times=times
        )
        end = clock.now + seconds
        told: list[str] = []
        made.run(Slow(clock, 0.1), None, end, lambda progress: told.append(progress.kernel))
        return list(dict.fromkeys(told))

    assert names(1.0) == ["1"]
    assert names(2.0) == ["1", "4", "3", "0"]  # the other one takes next to nothing


def test_while_nothing_is_found_nothing_is_left_for_the_end(clock: Clock) -> None:
    """There is nothing to measure once more."""

    class Slower(Slow):
        def measure(
            self,
            task: Task,
            candidates: Sequence[Candidate],
            timing: Timing = USUAL,
            usual: PrimFunc | None = None,
        ) -> Iterator[Measured]:
            return (replace(m, seconds=2.0) for m in super().measure(task, candidates, timing))

    def until(measurer: Measurer) -> float:
        clock.now = 100.0
        limits = Budget(10.0, clock.now)
        quick().run(measurer, None, limits.search_end, lambda progress: None, limits.last_end)
        return clock.now - 100.0

    assert 4.0 <= until(Slow(clock, 0.5)) <= 6.0
    assert 8.0 <= until(Slower(clock, 0.5)) <= 10.0


def test_without_a_limit_all_is_measured_for_long(clock: Clock) -> None:
    limits = Budget(None)
    assert (limits.search_end, limits.settle_end, limits.compare_seconds) == (None, None, 1.0)
    found = quick()
    measurer = Slow(clock, 0.1)
    found.run(measurer, 16, None, lambda progress: None)
    assert measurer.batches[:2] == [8, 8]
    begin = clock.now
    assert settle(found, measurer, None) == []
    assert clock.now - begin > 10 * 4.0


def test_what_there_is_no_time_to_confirm_is_set_aside(clock: Clock) -> None:
    """What was in use stays so, and another session begins with what was set aside."""
    records, _ = by_hand(MATMUL, rows_at_once)
    target = unity.compile(parse(MATMUL), threads=1).target
    (task,) = tasks(MATMUL, target)
    earlier = Point("mine", "[]")
    short = Session([task], records, PriorModel())
    (search,) = short.searches
    for proposal, ratio in zip(search.propose(4)[1:], (0.4, 0.3, 0.45), strict=True):
        short._keep(search, proposal, Measured(ratio, 1.0))
    assert [r.point for r in short.used().bests()] != [earlier.text]
    assert settle(short, Slow(clock, 1.0), clock.now - 1.0) == [search]
    short.confirm(Slow(clock, 1.0), [search], clock.now - 1.0)
    assert short.is_short
    assert not short.gained
    (used,) = records.bests()
    assert (used.space, used.point, used.ratio) == (*_pair(earlier), 0.5)
    again = Session([task], records, PriorModel())
    fastest = again.searches[0].fastest(8)
    assert [round(f.ratio, 2) for f in fastest] == [0.3, 0.4, 0.45, 0.5]


def _pair(point: Point) -> tuple[str, str]:
    return point.space, point.text


def test_the_end_is_longer_where_what_is_fastest_is_compiled_anew(clock: Clock) -> None:
    """Kernels that are in the cache are not; those that were found are."""
    given = Budget(60.0, begin=clock.now)
    assert given.forms_end == clock.now + 18.0
    assert given.build_seconds == 8.0
    assert (given.is_short_for(7), given.is_short_for(8)) == (False, True)
    assert not Budget(None).is_short_for(100)
    with given.compiling(counts=False, kernels=True):
        clock.now += 20.0
    assert given.begin == clock.now
    assert given.search_end == clock.now + 54.0
    given.anew = True
    assert given.search_end == clock.now + 42.0
    before = given.settle_end
    assert before is not None
    given.found(3, 2.0)
    assert given.settle_end == before - 6.0


@pytest.mark.parametrize(("seconds", "kernels"), [(60.0, 12), (120.0, 40), (300.0, 1000)])
def test_however_much_was_found_there_is_time_to_measure_it(
    seconds: float, kernels: int, clock: Clock
) -> None:
    given = Budget(seconds, clock.now, compile_seconds=4.0, anew=True)
    assert given.search_end is not None
    assert given.settle_end is not None
    clock.now = given.search_end
    left = given.settle_end - clock.now
    given.found(kernels, 1.5)
    assert given.settle_end - clock.now == pytest.approx(left / 2)


@pytest.mark.parametrize(("patience", "first"), [(PATIENCE, 1), (1.0, 0)])
def test_where_time_is_short_rules_come_before_what_structure_alone_gives(
    patience: float, first: int
) -> None:
    """The default is not laid out for that, either: it is known, and no candidate."""
    (search,) = Session(tasks(MATMUL), Records(), PriorModel()).searches
    search.patience = patience
    spaces = [p.point.space for p in search.propose(4)[:2]]
    assert [space for space in spaces if space in STRUCTURAL] == ["multi_level_tiles"] * first
    assert (search.usual is None) == (patience < PATIENCE)
    default = Point("rules", '{"decisions":{},"without":{}}')
    assert default not in {p.point for p in search.propose(8)}
