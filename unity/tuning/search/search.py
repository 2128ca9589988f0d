"""The search for one kernel: what is measured next, and what was found.

Candidates of a strategy are laid out, those that make the same program as another one left out, and
ranked by the cost model; the best of a pool are measured, and some by chance, so that the model
learns what it is wrong about. The first batch begins with where each space begins: the default.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from logging import getLogger
from math import inf
from random import Random

from unity.collection import no_cycle_collection
from unity.errors import UnityError
from unity.ir.fingerprint import fingerprint
from unity.ir.stmt import PrimFunc
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Trace

from ..cost import CostModel, features
from ..cost.features import Features
from ..records import Best, Trial
from ..spaces import Point, Space
from ..spaces.by_rules import NAME as RULES
from ..spaces.generic import STRUCTURAL
from ..tasks import Task
from ..workers import Measured
from .strategies import Strategy

log = getLogger("unity")
POOL = 3
"""Candidates that are laid out and ranked for each that is measured."""
CURIOUS = 0.15
"""The share of a batch that the model does not choose."""
PATIENCE = 4.0
"""How long a pool is added to, usually: some kernels take a second to lay out."""
_TIRED = 12
"""Candidates in a row that are none or known, for each that is wanted, before a pool is done."""
HOPELESS = 5.0
"""Binary orders of magnitude behind the best by the model: not measured, if there are others."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate to be measured.

    Attributes:
        point: What is decided.
        schedule: The kernel laid out.
        program: The fingerprint of that.
        features: What a model is told of it.
        predicted: What the model says.
    """

    point: Point
    schedule: Schedule
    program: str
    features: Features
    predicted: float = 0.0


@dataclass(slots=True)
class Fast:
    """A candidate that was faster than the default, or is in use by an earlier record.

    Attributes:
        proposal: The candidate.
        ratio: What it took of the default's time.
        kept: Whether it was the fastest yet: records tell of it.
        asked: Whether a record of an earlier session has it used, so that it is asked again.
    """

    proposal: Proposal
    ratio: float
    kept: bool = False
    asked: bool = False


class Search:
    """Carries what is known of a kernel's candidates.

    Args:
        task: The kernel.
        spaces: Finds what it may become, when that is first asked for: it takes some tenths of a
            second.
        strategy: Where candidates come from, of the spaces.
        model: Ranks them; shared between kernels.
        random: Where chance comes from.
        known: Trials of this kernel in earlier sessions: they are not measured again.
        used: Records of it that are in use. They are measured first, once more: what the default
            took then is of an earlier compiler.
    """

    def __init__(
        self,
        task: Task,
        spaces: Callable[[], Sequence[Space]],
        strategy: Callable[[Sequence[Space]], Strategy],
        model: CostModel,
        random: Random,
        known: Iterable[Trial] = (),
        used: Iterable[Best] = (),
    ) -> None:
        self.task = task
        self.best: Proposal | None = None
        self.best_ratio = 1.0
        self.fast: dict[Point, Fast] = {}
        self.default_seconds: float | None = None
        self.usual: PrimFunc | None = None
        """The kernel as rules lay it out by default, once that is known."""
        self.trials = self.proposed = 0
        """Candidates that were measured, and those that were to be."""
        self.history: list[float] = []
        self.measured: list[float] = []
        """After each trial the fastest that was measured, in the default's time, which is none."""
        self.exhausted = False
        self.patience = PATIENCE
        """Seconds that candidates for a batch are looked for, at most."""
        self._find_spaces, self._of_spaces = spaces, strategy
        self._model = model
        self._random = random
        self._ratios: dict[Point, float] = {}
        self._tried: set[Point] = set()
        self._programs: set[str] = set()
        for trial in known:
            self._remember(trial)
        self._used = {Point(r.space, r.point): r for r in used}

    @cached_property
    def _spaces(self) -> Mapping[str, Space]:
        """What the kernel may become, by name."""
        return {s.name: s for s in self._find_spaces()}

    @cached_property
    def _strategy(self) -> Strategy:
        return self._of_spaces([*self._spaces.values()])

    @cached_property
    def _all(self) -> Iterator[Point] | None:
        """All points, where the first space has but few and there is no other one."""
        first, *others = self._spaces.values()
        return None if others else first.every()

    def _remember(self, trial: Trial) -> None:
        point = Point(trial.space, trial.point)
        self._tried.add(point)
        if trial.seconds and trial.reference:
            self._ratios[point] = trial.seconds / trial.reference
            if self.default_seconds is None:
                self.default_seconds = trial.reference

    @no_cycle_collection()
    def propose(self, count: int) -> list[Proposal]:
        """Candidates to measure next; none where there is nothing left to try."""
        if not self._spaces:
            self.exhausted = True
            return []
        begun, first = self.proposed > 0, list[Proposal]()
        if not begun:
            first += self._ranked([f.proposal for f in self.in_use()])
        if not begun and not self._tried:
            first += self._firsts()
        self._take(first[:count])
        wanted = count - len(first)
        if wanted <= 0:
            return first[:count]
        chosen = self._chosen(wanted)
        self.exhausted = not (first or chosen)
        self._take(chosen)
        return [*first, *chosen]

    def _chosen(self, wanted: int) -> list[Proposal]:
        """Some that the strategy has; of a pool that is refused whole, what it has then."""
        ranked = self._strategy.ranked
        times = (POOL if self.trials else 2) if ranked else 1
        while pool := self._pool(wanted, wanted * times):
            inviting = self._ordered(pool, wanted) if ranked else pool
            if chosen := list(islice(self._legal(inviting), wanted)):
                return chosen
        return []

    def _legal(self, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
        """Those whose steps are legal where none is trusted, as whoever uses a record has it.

        Those of rules are: tests replay their programs.
        """
        for proposal in proposals:
            if proposal.schedule.trusts and proposal.point.space != RULES:
                try:
                    Schedule(self.task.func, self.task.target).replay(proposal.schedule.trace)
                except UnityError as error:
                    self._tried.add(proposal.point)
                    log.info("%s is not tried: %s", proposal.point.text, error.message)
                    continue
            yield proposal

    def _take(self, proposals: Iterable[Proposal]) -> None:
        """Note what is measured, or known: neither it nor what makes the same program is again."""
        for proposal in proposals:
            self.proposed += 1
            self._tried.add(proposal.point)
            self._programs.add(proposal.program)

    def _ordered(self, pool: list[Proposal], wanted: int) -> list[Proposal]:
        """A pool's best by the model first, some of the others among those that are wanted."""
        pool = sorted(pool, key=lambda p: p.predicted)
        hopeful = [p for p in pool if p.predicted <= pool[0].predicted + HOPELESS]
        curious = min(len(hopeful), round(CURIOUS * wanted)) if len(hopeful) > wanted else 0
        best, rest = hopeful[: wanted - curious], hopeful[wanted - curious :]
        chance = self._random.sample(rest, min(curious, len(rest)))
        drawn = {p.program for p in chance}
        return [*best, *chance, *(p for p in rest if p.program not in drawn)]

    def _firsts(self) -> list[Proposal]:
        """Where the spaces begin; what the rules do by default is known: it takes its own time."""
        spaces, short = [*self._spaces.values()], self.patience < PATIENCE
        if short and RULES in self._spaces:  # what structure alone gives is mostly far behind rules
            spaces = [s for s in spaces if s.name not in STRUCTURAL]
        points = [p for s in spaces if (p := s.first(self._random)) is not None]
        if short:  # laying out the default costs as much as a candidate
            default = {p for p in points if p.space == RULES}
            self._tried |= default
            self._ratios |= dict.fromkeys(default, 1.0)
            points = [p for p in points if p not in default]
        found = [p for p in map(self._proposal, points) if p is not None]
        usual = [p for p in found if p.point.space == RULES]
        self._take(usual)
        for proposal in usual:
            self.usual = proposal.schedule.kernel()
            self._ratios[proposal.point] = 1.0
            self._model.add(self.task.identity, proposal.features, 1.0)
        return self._ranked([*self._legal(p for p in found if p not in usual)])

    def fastest(self, count: int) -> list[Fast]:
        """The fastest candidates of all sessions, as they were alone, and what is in use."""
        found = {f.proposal.point: f for f in self.in_use()}
        known = {p: r for p, r in self._ratios.items() if p in self.fast or p.space in self._spaces}
        for point, ratio in sorted(known.items(), key=lambda item: item[1])[:count]:
            proposal = None if ratio >= 1.0 or point in found else self._proposed(point)
            if proposal is not None:
                found[point] = Fast(proposal, ratio)
        return sorted(found.values(), key=lambda f: f.ratio)

    def _proposed(self, point: Point) -> Proposal | None:
        """A candidate that was proposed before, or of a space that is given."""
        return self.fast[point].proposal if point in self.fast else self._proposal(point)

    def was_used(self, point: Point) -> bool:
        """Whether a record of an earlier session has a candidate used."""
        return point in self._used

    def in_use(self) -> list[Fast]:
        """What is in use by earlier records, as far as its steps still apply.

        A space that users wrote need not be given for that. What does not apply isn't used either.
        """
        found: list[Fast] = []
        for point, record in self._used.items():
            schedule = Schedule(self.task.func, self.task.target)
            try:
                schedule.replay(Trace.from_json(record.trace))
            except UnityError:
                proposal = self._proposal(point) if point.space in self._spaces else None
            else:
                proposal = self._candidate(point, schedule)
            if proposal is not None:
                found.append(Fast(proposal, record.ratio, kept=True, asked=True))
        return found

    def _pool(self, wanted: int, count: int) -> list[Proposal]:
        """Candidates that were not proposed before.

        Args:
            wanted: How many are wanted in twice the time that there is, if it takes so long.
            count: How many are wanted in the time that there is.
        """
        measured = {p: r for p, r in self._ratios.items() if p.space in self._spaces}
        source = self._all or self._strategy.points(measured, self._random)
        found: dict[str, Proposal] = {}
        met: set[Point] = set()
        begin = time.monotonic()
        for point in islice(source, count * _TIRED):
            patience = self.patience if len(found) >= wanted else 2 * self.patience
            if found and time.monotonic() - begin > patience:
                break
            if point in self._tried or point in met:
                continue
            met.add(point)
            schedule = self._laid_out(point)
            program = None if schedule is None else fingerprint(schedule.func)
            if schedule is None or program is None or program in self._programs:
                self._tried.add(point)
                continue
            if program not in found:
                found[program] = self._candidate(point, schedule, program)
            if len(found) >= count:
                break
        return self._ranked(list(found.values()))

    def _proposal(self, point: Point) -> Proposal | None:
        schedule = self._laid_out(point)
        return None if schedule is None else self._candidate(point, schedule)

    def _laid_out(self, point: Point) -> Schedule | None:
        try:
            return self._spaces[point.space].schedule(point)
        except UnityError:
            return None

    def _candidate(self, point: Point, schedule: Schedule, program: str | None = None) -> Proposal:
        row = features(schedule.func, self.task.target, dict(self.task.sizes))
        return Proposal(point, schedule, program or fingerprint(schedule.func), row)

    def _ranked(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """With what the model says of them."""
        if not proposals:
            return []
        scores = self._model.predict(self.task.identity, [p.features for p in proposals])
        return [replace(p, predicted=float(s)) for p, s in zip(proposals, scores, strict=True)]

    def tell(self, proposal: Proposal, measured: Measured) -> bool:
        """Learn what a candidate took; whether records are to tell of it.

        They are of the fastest yet, and of what was in use before, whatever it takes now; not of
        what ran at its sizes alone.
        """
        self.trials += 1
        ratio = measured.ratio
        asked = proposal.point in self._used
        told = asked and not self.task.takes_sizes
        if measured.seconds is not None and measured.reference:
            usual = inf if self.default_seconds is None else self.default_seconds
            if measured.reference < usual and (usual == inf or not self.task.takes_sizes):
                self.default_seconds = measured.reference
            self._ratios[proposal.point] = ratio
            self._model.add(self.task.identity, proposal.features, ratio)
            better = ratio < self.best_ratio
            told |= better and not self.task.takes_sizes
            if ratio < 1.0 or asked:
                self.fast[proposal.point] = Fast(proposal, ratio, told or asked, asked)
            if better:
                self.best, self.best_ratio = proposal, ratio
        self.history.append(self.best_ratio)
        self.measured.append(min(ratio, self.measured[-1] if self.measured else ratio))
        return told

    def record(
        self,
        proposal: Proposal,
        measured: Measured,
        target: str,
        date: str,
    ) -> Best:
        """The record of a candidate; one that failed is said to take what the default does.

        Args:
            proposal: The candidate.
            measured: What it took.
            target: What records call the machine.
            date: When its session began.
        """
        usual = measured.reference or self.default_seconds or 0.0
        return Best(
            self.task.identity,
            target,
            self.task.sizes,
            proposal.point.space,
            proposal.point.text,
            usual if measured.seconds is None else measured.seconds,
            usual,
            proposal.schedule.trace.to_json(),
            self.task.name,
            date,
            measured.within,
        )

    @property
    def seconds(self) -> float:
        """What the kernel takes now, all its call sites together; 0 if that is not known yet."""
        return (self.default_seconds or 0.0) * self.best_ratio * self.task.count
