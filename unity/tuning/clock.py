"""A clock that stands still while the thread waits for a cpu that others have.

On a busy machine that wait is most of what a plain clock shows of a long run. What a thread spends
asleep, waiting for other threads or for memory counts. Linux tells it, now and then too much; what
a thread computed is a bound. Elsewhere this is the plain clock.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

_FILE = "/proc/thread-self/schedstat"


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: the time, and what the thread had waited for a cpu and computed by then."""

    time: float
    waited: float
    computed: float


class Clock:
    """Seconds, by the thread that opened it; to be used in a ``with`` block.

    >>> with Clock() as clock:
    ...     begin = clock.mark()
    ...     clock.since(begin) > 0
    True
    """

    def __enter__(self) -> Self:
        """Start looking at this thread."""
        try:
            self._file = os.open(_FILE, os.O_RDONLY)
            self.mark()
        except (OSError, ValueError, IndexError):
            self._file = -1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        if self._file >= 0:
            os.close(self._file)

    def mark(self) -> Mark:
        """This moment."""
        waited = 0
        if self._file >= 0:
            waited = int(os.pread(self._file, 96, 0).split()[1])  # nanoseconds in the run queue
        return Mark(time.perf_counter(), waited * 1e-9, time.thread_time())

    def since(self, begin: Mark) -> float:
        """Seconds from a moment to now."""
        end = self.mark()
        passed = end.time - begin.time - (end.waited - begin.waited)
        return max(passed, end.computed - begin.computed)
