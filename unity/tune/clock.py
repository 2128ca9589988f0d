"""A clock that stands still while the thread waits for a cpu that others have.

On a busy machine that wait is most of what a plain clock shows of a long run. What a thread spends
asleep, waiting for other threads or for memory counts. Linux tells it; elsewhere this is the plain
clock.
"""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Self

_FILE = "/proc/thread-self/schedstat"


class Clock:
    """Seconds, by the thread that opened it; to be used in a ``with`` block.

    >>> with Clock() as clock:
    ...     begin = clock.now()
    ...     clock.now() >= begin
    True
    """

    def __enter__(self) -> Self:
        """Start looking at this thread."""
        try:
            self._file = os.open(_FILE, os.O_RDONLY)
            self.now()
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

    def now(self) -> float:
        """The time since some moment."""
        if self._file < 0:
            return time.perf_counter()
        waited = int(os.pread(self._file, 96, 0).split()[1])  # nanoseconds in the run queue
        return time.perf_counter() - waited * 1e-9
