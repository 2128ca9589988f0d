"""A clock that knows when the process waited for a cpu that others have.

On a busy machine that wait is most of what a plain clock shows of a long run. Linux tells it of
each thread, but in virtual machines by rough counting: what is left after it is taken off may be a
third too little. So a run in which no thread waited is believed before any other one (`Fastest`).
Sleep, and waiting for other threads or for memory, counts. Elsewhere than on Linux this is the
plain clock.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

_TASKS = "/proc/self/task"
_DISTURBED = 0.03
"""The share of a lap that threads may wait: one that is woken up waits for some microseconds."""


def before_others() -> None:
    """Run this process at real-time priority, where the system allows it.

    Threads and children that it starts from then on do too: what other processes do changes no
    time then.
    """
    with suppress(AttributeError, OSError):
        least = os.sched_get_priority_min(os.SCHED_RR)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(least))


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: the time, what the thread had computed by then, what each thread had waited."""

    time: float
    computed: float
    waited: dict[str, float]


@dataclass(frozen=True, slots=True)
class Lap:
    """What lies between two moments.

    Attributes:
        seconds: Without what this thread waited for a cpu; what it computed is a bound.
        disturbed: Whether some thread of the process waited for one.
    """

    seconds: float
    disturbed: bool


class Clock:
    """Seconds, by the thread that opened it; to be used in a ``with`` block.

    >>> with Clock() as clock:
    ...     begin = clock.mark()
    ...     clock.since(begin).seconds > 0
    True
    """

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Start looking at the threads."""
        self.mark()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def mark(self) -> Mark:
        """This moment."""
        return Mark(time.perf_counter(), time.thread_time(), self._waited())

    def since(self, begin: Mark) -> Lap:
        """What lies between a moment and now."""
        now, computed = time.perf_counter(), time.thread_time() - begin.computed
        waited = {name: w - begin.waited.get(name, 0.0) for name, w in self._waited().items()}
        passed = now - begin.time
        own = waited.get(str(threading.get_native_id()), 0.0)
        disturbed = max(waited.values(), default=0.0) > _DISTURBED * passed
        return Lap(max(passed - own, computed), disturbed)

    def _waited(self) -> dict[str, float]:
        """Seconds in the run queue by thread; none where the system does not tell them."""
        found: dict[str, float] = {}
        with suppress(OSError):
            for name in os.listdir(_TASKS):
                with suppress(OSError, ValueError, IndexError):  # a thread that has ended
                    if name not in self._files:
                        self._files[name] = os.open(f"{_TASKS}/{name}/schedstat", os.O_RDONLY)
                    found[name] = int(os.pread(self._files[name], 96, 0).split()[1]) * 1e-9
        return found


@dataclass(slots=True)
class Fastest:
    """Carries the fastest of some laps: of those that were not disturbed, if there are any."""

    laps: int = 0
    undisturbed: int = 0
    _clean: float = field(default=float("inf"))
    _any: float = field(default=float("inf"))

    def add(self, lap: Lap, runs: int = 1) -> None:
        """Take a lap into account, in which something ran so many times."""
        each = lap.seconds / runs
        self.laps += 1
        self._any = min(self._any, each)
        if not lap.disturbed:
            self.undisturbed += 1
            self._clean = min(self._clean, each)

    @property
    def seconds(self) -> float:
        """Of one run; infinite before the first lap."""
        return self._clean if self.undisturbed else self._any
