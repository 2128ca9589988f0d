"""A session of tuning: searches of a program's kernels, one batch of measurements after another.

Everything measured is in the file of records before the next is measured; so a session that ends at
any moment loses at most what it was measuring, and another one goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from random import Random
from types import MappingProxyType

import numpy as np

from .cost import FEATURES, CostModel
from .records import Best, Records, Trial, now
from .scheduler import next_search
from .search import PATIENCE, Fast, Proposal, Search, strategy
from .spaces import (
    Point,
    ProgramSpace,
    RuleSpace,
    Space,
    SpaceProgram,
    generic_spaces,
)
from .tasks import Task
from .tasks.task import Place
from .workers import Candidate, Measured, Measurer
from .workers.machine_key import key_of_target
from .workers.runner import SURE

BATCH = 8
"""Candidates that are measured before the model is asked again."""
_FEW = 3
"""Candidates of each kernel that are measured at first, where there are to be few in all."""
_PACE = 1.0
"""Seconds that a candidate takes, before that is seen."""
_THINKING = 0.25
"""The share of what time is left in which candidates for a batch are looked for."""
_EACH = 0.35
"""Seconds in which they are looked for at most, for each candidate of it: about what compiling one
takes, which is done meanwhile."""
_CONFIRMED, _AT_ONCE = 8, 4
"""Of each kernel, how many of the fastest are measured once more at the end, so many at a time."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is.

    Attributes:
        trials: Candidates measured.
        seconds: Since it began.
        before: What the program's kernels took by default, together, as far as they are known.
        now: What they take by the fastest candidates.
        kernel: The one that was measured last.
        pace: Seconds that a trial takes, with all that is done for it.
    """

    trials: int
    seconds: float
    before: float
    now: float
    kernel: str
    pace: float = 0.0


Watch = Callable[[Progress], None]


class Session:
    """Carries the searches of a program's kernels.

    Args:
        tasks: The kernels.
        records: Where to keep what is found, and what was found before.
        model: Ranks candidates.
        programs: Spaces of users, by name, besides ours.
        method: The strategy's name.
        seed: Of all that is random.
        rules: Whether the default rules' space is searched: without it, only what structure says.
        times: What calls of kernels take in the program, as far as that is known.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        records: Records,
        model: CostModel,
        programs: Sequence[SpaceProgram] = (),
        method: str = "evolution",
        seed: int = 0,
        *,
        rules: bool = True,
        tiles: bool = True,
        times: Mapping[Place, Sequence[float]] = MappingProxyType({}),
    ) -> None:
        self.records = records
        self.points: list[tuple[float, int, float]] = []
        """Over time: seconds since the begin, trials, what the kernels take together."""
        self.is_short = False
        """Whether there was no time to confirm something that was found."""
        self._model = model
        self._target = key_of_target(tasks[0].target) if tasks else ""
        self._learn_earlier()
        self.searches: list[Search] = []
        in_use = [r for r in records.bests(self._target) if r.worth]
        for k, task in enumerate(tasks):
            random = Random(seed * 1009 + k)
            known = [
                t for t in records.trials(task.identity, self._target) if t.sizes == task.sizes
            ]
            used = [r for r in in_use if (r.kernel, r.sizes) == (task.identity, task.sizes)]
            spaces = partial(spaces_of, task, programs, rules=rules, tiles=tiles)
            source = partial(strategy, method)
            self.searches.append(Search(task, spaces, source, model, random, known, used))
        self._take_times(times)
        self.trials = 0
        self._begin, self._date = time.monotonic(), now()

    def _learn_earlier(self) -> None:
        """Teach the model what was measured before, of these kernels and others.

        Records with other features, from an older version, teach nothing.
        """
        for trial in self.records.trials(target=self._target):
            if trial.seconds and trial.reference and len(trial.features) == len(FEATURES):
                row = np.asarray(trial.features, np.float32)
                self._model.add(trial.kernel, row, trial.seconds / trial.reference)

    def run(
        self,
        measurer: Measurer,
        trials: int | None,
        end: float | None,
        watch: Watch,
        last: float | None = None,
    ) -> None:
        """Search until so many candidates were measured, or the time is up, or nothing is gained.

        Args:
            measurer: Measures.
            trials: Candidates at most; None for no bound.
            end: When the time is up, by `time.monotonic`; None for no bound.
            watch: Told after each.
            last: When it is up while there is nothing to be measured once more, if that is later.
        """
        begin, used = time.monotonic(), bool(self._in_use(self.searches))

        def left() -> float:
            until = end if self.gained or used or last is None else last
            return inf if until is None else until - time.monotonic()

        ahead = self._next(trials, 0, left())
        while ahead is not None:
            search, proposals = ahead
            pace = (time.monotonic() - begin) / self.trials if self.trials else _PACE
            proposals = proposals[: max(1, int(min(BATCH, left() / pace)))]  # it may be slower now
            results = measurer.measure(
                search.task, [_candidate(search.task, p) for p in proposals], usual=search.usual
            )
            running = len(proposals)  # which are compiled meanwhile
            ahead = self._next(trials, running, left() - running * pace, pace)
            for proposal, measured in zip(proposals, results, strict=True):
                self._keep(search, proposal, measured)
                watch(self.progress(search.task.name))
                if left() < 0:
                    return
            if ahead is None or left() < pace:
                ahead = self._next(trials, 0, left() - pace, pace)

    def _take_times(self, kernels: Mapping[Place, Sequence[float]]) -> None:
        """Take what kernels take in the program by default, as far as that is known."""
        for search in self.searches:
            times = _calls(search.task, kernels)
            if times:
                search.default_seconds = sum(times) / len(times)

    def _next(
        self, trials: int | None, running: int, seconds: float, pace: float = _PACE
    ) -> tuple[Search, list[Proposal]] | None:
        """What to measure next; None where nothing is left to try, or no time.

        Args:
            trials: Candidates at most, in all.
            running: Those that are not counted yet.
            seconds: How long there is for it.
            pace: Seconds that each candidate takes, about.
        """
        while seconds > 0 and (trials is None or trials - self.trials - running > 0):
            search = next_search(self.searches)
            if search is None:
                return None
            left = max(1, int(min(BATCH, seconds / pace)))
            if seconds < inf:
                fresh = sum(not (s.proposed or s.exhausted) for s in self.searches)
                if not self.trials or fresh * BATCH > seconds / pace:
                    left = min(left, _FEW)  # how long one takes is seen first
                search.patience = min(PATIENCE, seconds * _THINKING, left * _EACH)
            if trials is not None:
                fresh = any(not (s.proposed or s.exhausted) for s in self.searches)
                share = trials // len(self.searches) if fresh else BATCH
                left = min(left, trials - self.trials - running, max(_FEW, share))
            proposals = search.propose(left)
            if proposals:
                return search, proposals
        return None

    def _keep(self, search: Search, proposal: Proposal, measured: Measured) -> None:
        self.trials += 1
        told = search.tell(proposal, measured)
        task, point = search.task, proposal.point
        self.records.add(
            Trial(
                task.identity,
                self._target,
                task.sizes,
                point.space,
                point.text,
                measured.seconds,
                measured.reference,
                tuple(round(float(x), 3) for x in proposal.features),
                measured.why,
            )
        )
        if told:
            self.keep_best(search, proposal, measured)
        at = self.progress(task.name)
        self.points.append((at.seconds, at.trials, at.now))

    def keep_best(self, search: Search, proposal: Proposal, measured: Measured) -> None:
        """Note what a candidate took, so that it is used if it is the fastest."""
        self.records.add(search.record(proposal, measured, self._target, self._date))

    def confirm(
        self,
        measurer: Measurer,
        searches: Sequence[Search] | None = None,
        end: float | None = None,
    ) -> None:
        """Measure the fastest of each kernel once more, alone, for longer.

        What was luck is noted as what it is. It ends when the fastest of those measured again is
        ahead of all others, or has been compared with enough of them; what records call the fastest
        is measured again in any case, also what those of earlier sessions do.

        Args:
            measurer: Measures.
            searches: Those of the kernels; all if not given.
            end: When it is to be over, by `time.monotonic`: of kernels that it does not come to
                new is used.
        """
        for search in self.searches if searches is None else searches:
            for used in search.in_use():
                search.fast.setdefault(used.proposal.point, used)
            again: dict[Point, float] = {}
            while doubtful := _doubtful(search, again):
                if end is not None and time.monotonic() > end:
                    self.set_aside([search])
                    break
                candidates = [Candidate(f.proposal.schedule.trace) for f in doubtful]
                results = measurer.measure(search.task, candidates, SURE)
                for fast, measured in zip(doubtful, results, strict=True):
                    again[fast.proposal.point] = fast.ratio = measured.ratio
                    if measured.seconds is not None or fast.asked:
                        self.keep_best(search, fast.proposal, measured)
            else:
                if again:
                    best = min(again, key=lambda p: again[p])
                    search.best = search.fast[best].proposal
                    search.best_ratio = min(1.0, again[best])

    def unconfirmed(self) -> list[Search]:
        """Those whose fastest ran at its sizes alone: no record has it, so that it is not used."""
        used = {(r.kernel, r.sizes, r.space, r.point) for r in self._in_use(self.searches)}
        return [
            s
            for s in self.searches
            if s.task.takes_sizes and s.best is not None and s.best_ratio < 1.0
            if (s.task.identity, s.task.sizes, s.best.point.space, s.best.point.text) not in used
        ]

    def set_aside(self, searches: Sequence[Search]) -> None:
        """Note that what is new of some kernels is not used: there was no time to confirm it.

        What earlier sessions found stays in use; the next session begins with what is set aside.
        """
        for search in searches:
            self.is_short |= search.best is not None
            while new := [r for r in self._in_use([search]) if self._is_new(r, search)]:
                self.is_short = True
                for record in new:
                    self.records.add(replace(record, seconds=record.reference))
            search.best, search.best_ratio = None, 1.0

    def _is_new(self, record: Best, search: Search) -> bool:
        return record.date >= self._date and not search.was_used(Point(record.space, record.point))

    def withdraw(self) -> None:
        """Note that nothing found is used: the program as a whole is not faster by it."""
        while used := self._in_use(self.searches):
            for record in used:
                date = max(self._date, record.date)  # of another machine's clock it may be later
                usual = replace(record, seconds=record.reference, date=date, within=True)
                self.records.add(usual)
        for search in self.searches:
            search.best, search.best_ratio = None, 1.0

    def used(self) -> Records:
        """Those of the records that lay out the kernels that are tuned."""
        found = Records()
        for record in self._in_use(self.searches):
            found.add(record)
        return found

    def used_by(self, search: Search) -> Best | None:
        """The record that lays out a kernel from now on, also if an earlier session made it."""
        return next(iter(self._in_use([search])), None)

    def _in_use(self, searches: Sequence[Search]) -> list[Best]:
        kernels = {(s.task.identity, s.task.sizes) for s in searches}
        bests = self.records.bests(self._target)
        return [r for r in bests if r.worth and (r.kernel, r.sizes) in kernels]

    @property
    def gained(self) -> bool:
        """Whether a kernel is faster than by default."""
        return any(s.best_ratio < 1.0 for s in self.searches)

    def progress(self, kernel: str) -> Progress:
        """How far it is."""
        known = [s for s in self.searches if s.default_seconds]
        before = sum((s.default_seconds or 0.0) * s.task.count for s in known)
        now, seconds = sum(s.seconds for s in known), time.monotonic() - self._begin
        return Progress(self.trials, seconds, before, now, kernel, seconds / max(1, self.trials))


def _candidate(task: Task, proposal: Proposal) -> Candidate:
    """A proposal to be measured, at its sizes alone where they are unknown."""
    schedule, label = proposal.schedule, proposal.point.text
    return Candidate(schedule.trace, label, task.takes_sizes, schedule.kernel())


def _calls(task: Task, times: Mapping[Place, Sequence[float]]) -> list[float]:
    """Seconds of a kernel's calls in a run of the program, as far as they are known."""
    return [t for place in task.places for t in times.get(place, ())]


def _doubtful(search: Search, again: Mapping[Point, float]) -> list[Fast]:
    """Which candidates of a kernel are to be measured once more.

    Args:
        search: The kernel's.
        again: What those that were took of the default's time.
    """
    best = min(again.values(), default=float("inf"))
    ahead = [f for f in search.fast.values() if f.proposal.point not in again and f.ratio < best]
    if len(again) >= _CONFIRMED:
        ahead = [f for f in ahead if f.kept]
    return sorted(ahead, key=lambda f: f.ratio)[:_AT_ONCE]


def spaces_of(
    task: Task, programs: Sequence[SpaceProgram] = (), *, rules: bool = True, tiles: bool = True
) -> list[Space]:
    """The spaces of a kernel: what rules may decide, what its structure allows, what users wrote.

    Args:
        task: The kernel.
        programs: Of users.
        rules: Whether the first are wanted.
        tiles: Whether the second are.
    """
    found: list[Space] = [RuleSpace(task.func, task.target)] if rules else []
    if tiles:
        found.extend(generic_spaces(task.func, task.target))
    for program in programs:
        space = ProgramSpace(task.func, task.target, program)
        if space.first(Random(0)) is not None:
            found.append(space)
    return found
