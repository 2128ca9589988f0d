"""Interleaved timing: contestants take turns, so that a busy machine slows them alike.

Before its turn each gets a pause and untimed calls: thread pools spin for a while after a call,
and one runtime's spinning workers would hold the cores that the next one's workers need. What a cpu
does varies from moment to moment, so contestants compare by neighbours in time (`Times.by_turns`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Run = Callable[[], Any]
BATCH = 2e-3
"""Seconds that a turn takes at least: very short calls are made many times."""
PAUSE = 0.02
"""Seconds, in which spinning workers give up their cores."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds a call.

    Attributes:
        min: The least.
        quartile: The lower quartile.
        median: The median.
        by_turns: The least of the first contestant; of another one, that times the median of what
            it took of the first one's time, round by round.
    """

    min: float
    quartile: float
    median: float
    by_turns: float


def interleaved(
    runs: Mapping[str, Run],
    seconds: float = 3.0,
    least: int = 5,
    clock: Callable[[], float] = time.perf_counter,
    *,
    spinning: bool = True,
) -> dict[str, Times]:
    """Time each run in turn until `seconds` are spent; very short runs are timed in batches.

    Args:
        runs: The contestants.
        seconds: How long all take, together.
        least: How often each has its turn, at least.
        clock: Counts seconds.
        spinning: Whether some may have threads that still spin: else nobody has a pause. What was
            measured in the first quarter of the time is dropped, then: contestants with threads
            were up to half slower in their first seconds in one process, whoever came first most.
    """
    batch: dict[str, int] = {}
    for name, run in runs.items():
        run()
        start = clock()
        run()
        batch[name] = max(1, int(BATCH / max(clock() - start, 1e-9)))
    taken: dict[str, list[float]] = {name: [] for name in runs}
    end, turns, random = time.perf_counter() + seconds, list(runs), Random(0)
    while time.perf_counter() < end or min(len(t) for t in taken.values()) < least:
        random.shuffle(turns)  # none always comes behind the same one, which empties its caches
        for name in turns:
            run, count = runs[name], batch[name]
            if spinning:
                time.sleep(PAUSE)
            for _ in range(count):
                run()
            start = clock()
            for _ in range(count):
                run()
            taken[name].append((clock() - start) / count)
    if spinning:
        drop = len(next(iter(taken.values()))) // 4
        taken = {name: of[drop:] for name, of in taken.items()}
    first = next(iter(taken.values()))
    return {name: _times(t, first) for name, t in taken.items()}


def _times(taken: list[float], first: list[float]) -> Times:
    quartile, median, _ = statistics.quantiles(taken, n=4)
    ratio = statistics.median(a / max(b, 1e-9) for a, b in zip(taken, first, strict=True))
    return Times(min(taken), quartile, median, min(first) * ratio)
