"""Races: runs of several executables, taken in turns, and how they compare.

For what a cpu does in a second varies, by half where another machine's threads share its cores, and
from millisecond to millisecond. So neighbours in time are compared, turn by turn, and the median
counts: each program's fastest run is of another moment. (AMD Zen 3, equal programs, 0.2 s: medians
of turns are off by 2 % as a rule and by 5 % at most, fastest runs were by 7 % and by half.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from random import Random
from statistics import median, quantiles

from .clock import Clock, Fastest, Lap

SECONDS = 0.25
"""How long each executable is run, about."""
_LEAST_RUNS = 5
_MOST_RUNS = 4000
_FAIR_RUNS = 3
_BEHIND = 1.6
"""How many times the fastest a program may take to stay in the race after the first rounds."""
_AGREE = 0.02
"""How far the ratios of two races may be apart to be the same."""
_FEW, _TIGHT = 8, 0.01
"""Turns before a median is known at all, and how far off, relatively, one known well may be."""
_BEHIND_TIGHT = 0.15
"""The same for one that takes longer, by how much longer."""
_LEAST_SHARE, _PATIENCE = 0.25, 4
"""Of the seconds asked for, how many are spent at least and at most."""
_BATCH, _SHORT, _PAUSE = 1e-3, 1e-2, 4e-3
"""Seconds: that a turn takes at least, below which a run is short, and between turns."""
_NOTHING = 1e-9
"""Seconds that a run takes at least."""


def interleaved(
    executables: Sequence[Callable[..., object]],
    args: Sequence[object],
    seconds: float = SECONDS,
    *,
    spinning: bool = True,
) -> list[float]:
    """What a run of each takes, all run in turns so that a noisy moment hits them alike.

    Of the first it is the fastest run; of another one, that times the median of what it took of the
    first one's time, turn by turn. Turns in which a thread waited for a cpu do not count where
    others did not.

    It ends sooner where ratios are known well, and later on a busy machine. What takes microseconds
    is run many times a turn. What is far behind after some turns takes no further part.

    Args:
        executables: What to run.
        args: What with.
        seconds: How long each is to be run, about.
        spinning: Whether threads of one may still spin when another one's turn comes: then each has
            a pause before its turn, in which they give up their cores, and runs that aren't timed.
    """
    with Clock() as clock:
        runs = [_Turns(exe, args, clock, spinning) for exe in executables]
        many = max(1, int(_BATCH / max(min(run.tried() for run in runs), _NOTHING)))
        racing, begin, rounds, order, random = runs, time.perf_counter(), 0, runs, Random(0)
        while True:
            order = _order(racing, order[-1], random)
            for run in order:
                run.turn(many)
            rounds += 1
            racing = [runs[0], *_in_the_race(runs[0], racing[1:])]
            spent = (time.perf_counter() - begin) / len(runs)
            if rounds < _LEAST_RUNS or spent < _LEAST_SHARE * seconds:
                continue
            known = spent >= seconds if len(runs) == 1 else all(map(runs[0].knows, racing[1:]))
            if known or rounds >= _MOST_RUNS or spent > _PATIENCE * seconds:
                break
    first = Fastest()
    for lap in runs[0].laps:
        first.add(lap)
    return [first.seconds, *(first.seconds * runs[0].ratio(run) for run in runs[1:])]


def _order(runs: Sequence[_Turns], last: _Turns, random: Random) -> list[_Turns]:
    """Some order, in which none comes behind itself: its data would be in the caches."""
    order = [run for run in runs if run is not last]
    random.shuffle(order)
    if len(order) < len(runs):
        order.insert(random.randint(min(1, len(order)), len(order)), last)
    return order


def _in_the_race(first: _Turns, others: Sequence[_Turns]) -> list[_Turns]:
    """Those that are not far behind the fastest."""
    least = min(1.0, *(first.ratio(run) for run in others)) if others else 1.0
    return [
        run
        for run in others
        if len(first.calm(run)) < _FAIR_RUNS or median(first.calm(run)) <= _BEHIND * least
    ]


def agreeing(
    executables: Sequence[Callable[..., object]],
    args: Sequence[object],
    seconds: float,
    races: int,
    *,
    spinning: bool = True,
) -> list[float]:
    """As `interleaved`, in one of some races that agree on how they compare.

    A whole race may be run while some cpu is slow, or not there, for reasons that nobody tells. So
    it is repeated until two give the same ratio of the last to the first; where none do, the one in
    the middle counts.

    Args:
        executables: What to run, two or more.
        args: What with.
        seconds: How long each is to be run in a race, about.
        races: How many there are at most.
        spinning: As `interleaved` has it.
    """
    found: list[list[float]] = []
    while len(found) < races:
        found.append(interleaved(executables, args, seconds, spinning=spinning))
        found.sort(key=lambda times: times[-1] / times[0])
        for fewer, more in pairwise(found):
            if more[-1] / more[0] <= (1 + _AGREE) * fewer[-1] / fewer[0]:
                return fewer
    return found[len(found) // 2]


class _Turns:
    """Carries how an executable is run in its turn, and its laps, of a run each."""

    def __init__(
        self, call: Callable[..., object], args: Sequence[object], clock: Clock, spinning: bool
    ) -> None:
        self._run = call
        self._clock = clock
        self._args = args
        self._spinning = spinning
        self._seconds = 0.0
        self.laps: list[Lap] = []

    def tried(self) -> float:
        """Run it for the first times; about the seconds of a run."""
        self._run(*self._args)
        first = [self._timed(1).seconds for _ in range(_FAIR_RUNS)]
        self._seconds = min(first)
        return self._seconds

    def turn(self, many: int) -> None:
        """So many runs; their average counts as one.

        Some are not timed before: another program's data are in the caches, and behind a pause a
        virtual machine is slow for a millisecond.
        """
        if self._spinning:
            time.sleep(_PAUSE)
        for _ in range((many if self._spinning else 1) if self._seconds < _SHORT else 0):
            self._run(*self._args)
        self.laps.append(self._timed(many))

    def _timed(self, many: int) -> Lap:
        run, args = self._run, self._args
        begin = self._clock.mark()
        for _ in range(many):
            run(*args)
        lap = self._clock.since(begin)
        return Lap(lap.seconds / many, lap.disturbed)

    def ratio(self, other: _Turns) -> float:
        """The median of what another one took of this one's time, turn by turn."""
        return median(self.calm(other) or _ratios(_seconds(self.laps), _seconds(other.laps)))

    def calm(self, other: _Turns) -> list[float]:
        """What another one took of this one's time in turns in which neither was disturbed."""
        both = zip(self.laps, other.laps, strict=False)
        calm = [(a, b) for a, b in both if not (a.disturbed or b.disturbed)]
        return _ratios(_seconds([a for a, _ in calm]), _seconds([b for _, b in calm]))

    def knows(self, other: _Turns) -> bool:
        """Whether the median is known well: by the width of the middle half.

        The slower another one is, the less it matters by how much.
        """
        ratios = self.calm(other)
        if len(ratios) < _FEW:
            return False
        low, middle, high = quantiles(ratios, n=4)
        allowed = max(_TIGHT * middle, _BEHIND_TIGHT * (middle - 1.0))
        return high - low <= allowed * sqrt(len(ratios))


def _seconds(laps: Sequence[Lap]) -> list[float]:
    return [lap.seconds for lap in laps]


def median_ratio(usual: Sequence[float], other: Sequence[float]) -> float:
    """The median of what one took of the other's time, turn by turn.

    >>> median_ratio([2.0, 4.0, 2.0], [1.0, 2.0, 9.0])
    0.5
    """
    return median(_ratios(usual, other))


def _ratios(usual: Sequence[float], other: Sequence[float]) -> list[float]:
    return [b / max(a, _NOTHING) for a, b in zip(usual, other, strict=False)]
