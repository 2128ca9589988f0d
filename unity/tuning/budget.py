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

from .workers.measurer import BUILD_SECONDS

_SLACK = 1.15
"""The whole is over after so many times what was asked for, as far as that can be planned."""
_LEAST, _MOST = 0.1, 0.5
"""Shares of the time that are kept for the end, at least and at most."""
_ANEW = 0.3
"""What is kept at least where the fastest have to be compiled anew for it."""
_EACH = 8.0
"""Seconds for each kernel, below which time is short."""
_BUILDING, _SLOWEST = 0.1, 8.0
"""A candidate that takes longer to compile than this share of the time, and than so many seconds,
is given up."""
_FORMING = 0.3
"""The share of the time in which programs of other forms are compiled and timed."""
_COMPILING = 0.5
"""The share of what is left after the search in which the fastest are compiled for the program, at
most: only those are that were measured once more, which takes longer than that."""
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
        compile_seconds: What compiling the program takes, about, besides kernels that were compiled
            before.
        anew: Whether the fastest candidates have to be compiled anew for the end: they were
            measured as they are at their sizes alone.
    """

    seconds: float | None
    begin: float = field(default_factory=time.monotonic)
    compile_seconds: float = 0.0
    anew: bool = False

    @contextmanager
    def compiling(self, *, counts: bool, kernels: bool = False) -> Iterator[None]:
        """Note what compiling takes.

        Args:
            counts: Whether that is time of the session: it is not where the program is compiled as
                it is by default, as whoever uses it would.
            kernels: Whether kernels are, too: the next time most of them are in the cache.
        """
        begin = time.monotonic()
        yield
        took = time.monotonic() - begin
        if not kernels:
            self.compile_seconds += took
        if not counts:
            self.begin += took

    def is_short_for(self, kernels: int) -> bool:
        """Whether there is no time to look for what some kernels may be by their structure alone.

        That is mostly far behind what rules may decide, and to know what there is takes half a
        second of each kernel.
        """
        return self.seconds is not None and self.seconds < _EACH * kernels

    def found(self, kernels: int, seconds: float) -> None:
        """Note that the program is compiled with some kernels laid out anew.

        Args:
            kernels: How many.
            seconds: What compiling one of them takes.
        """
        end, took = self.settle_end, kernels * seconds
        if end is not None:
            took = min(took, _COMPILING * max(0.0, end - time.monotonic()))
        self.compile_seconds += took

    @property
    def build_seconds(self) -> float:
        """How long a candidate may be compiled."""
        if self.seconds is None:
            return BUILD_SECONDS
        return min(BUILD_SECONDS, max(_BUILDING * self.seconds, _SLOWEST))

    @property
    def forms_end(self) -> float | None:
        """When measuring forms is to be over; None where there is no limit."""
        return None if self.seconds is None else self.begin + _FORMING * self.seconds

    @property
    def search_end(self) -> float | None:
        """When the search is to be over; None where there is no limit."""
        if self.seconds is None:
            return None
        least = _ANEW if self.anew else _LEAST
        finish = max(least * self.seconds, self.compile_seconds + _FINISH)
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
