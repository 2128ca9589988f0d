"""The steps of a session: which one it is at, for whoever is told, and what each of them took."""

from __future__ import annotations

import time
from collections.abc import Callable

COMPILING, FORMS, TRIALS = "compiling by default", "measuring forms", "measuring candidates"
FASTEST, WHOLE = "measuring the fastest once more", "comparing the whole program"


class Steps:
    """Carries what each step took.

    Args:
        tell: Told of each when it begins.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._now: str | None = None
        self._since = time.monotonic()
        self._taken: dict[str, float] = {}

    def begin(self, step: str) -> None:
        """Do this from now on."""
        self._end()
        self._now = step
        self._tell(step)

    def _end(self) -> None:
        now = time.monotonic()
        if self._now is not None:
            self._taken[self._now] = self._taken.get(self._now, 0.0) + now - self._since
        self._since = now

    @property
    def taken(self) -> tuple[tuple[str, float], ...]:
        """Seconds of each step so far, in the order in which they began."""
        self._end()
        return tuple(self._taken.items())
