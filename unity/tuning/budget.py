"""The time of a session: searching, then measuring once more what was found, by the end of both.

What compiling the program by default takes comes on top: it is known only when it is over. What is
measured at the end is planned by what is left then: little time makes fewer candidates, and runs
that are shorter. What there is no time to compare is not used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_SLACK = 1.15
"""The whole is over after so many times what was asked for, as far as that can be planned."""
_LEAST, _MOST = 0.1, 0.5
"""Shares of the time that are kept for the end, at least and at most."""
_FORMING = 0.3
"""The share of the time in which programs of other forms are compiled and timed."""
_BEGINNING = 0.25
"""The share of it in which searches begin."""
_FINISH = 5.0
"""Seconds that the end needs besides compiling, for a few candidates."""
_RUNS, _RUN, _SHORTEST = 6, 1.0, 0.05
"""Comparing the whole program: so many runs, and the seconds of each, at most and at least."""


@dataclass(slots=True)
class Budget:
    """Carries when a session began, as far as its time counts, and what compiling takes.

    Attributes:
        seconds: How long it may take; None where there is no limit.
        begin: When it began, by `time.monotonic`.
        compile_seconds: What compiling the program takes, about.
        formed: When forms were chosen, by `time.monotonic`.
    """

    seconds: float | None
    begin: float = field(default_factory=time.monotonic)
    compile_seconds: float = 0.0
    formed: float | None = None

    @contextmanager
    def compiling(self, *, counts: bool) -> Iterator[None]:
        """Note what compiling takes.

        Args:
            counts: Whether that is time of the session: it is not where the program is compiled as
                it is by default, as whoever uses it would.
        """
        begin = time.monotonic()
        yield
        took = time.monotonic() - begin
        self.compile_seconds = max(self.compile_seconds, took)
        if not counts:
            self.begin += took
            if self.formed is not None:
                self.formed += took

    @property
    def forms_end(self) -> float | None:
        """When measuring forms is to be over; None where there is no limit."""
        return None if self.seconds is None else self.begin + _FORMING * self.seconds

    @property
    def begin_end(self) -> float | None:
        """When searches are to have begun; None where there is no limit."""
        if self.seconds is None:
            return None
        first = self.begin if self.formed is None else self.formed
        return first + _BEGINNING * (self.begin + self.seconds - first)

    @property
    def search_end(self) -> float | None:
        """When the search is to be over; None where there is no limit."""
        if self.seconds is None:
            return None
        finish = max(_LEAST * self.seconds, self.compile_seconds + _FINISH)
        return self.begin + self.seconds - min(_MOST * self.seconds, finish)

    @property
    def last_end(self) -> float | None:
        """When the search is to be over while it found nothing that is to be measured once more."""
        return None if self.seconds is None else self.begin + (1 - _LEAST) * self.seconds

    @property
    def settle_end(self) -> float | None:
        """When the fastest are to have been measured once more; None where there is no limit."""
        if self.seconds is None:
            return None
        comparing = self.compile_seconds + _RUNS * min(_RUN, _SHORTEST * self.seconds)
        return self.begin + _SLACK * self.seconds - comparing

    @property
    def compare_seconds(self) -> float | None:
        """How long each run of the whole program may take; None where there is no time for any."""
        if self.seconds is None:
            return _RUN
        left = self.begin + _SLACK * self.seconds - time.monotonic() - self.compile_seconds
        return min(_RUN, left / _RUNS) if left >= _RUNS * _SHORTEST else None
