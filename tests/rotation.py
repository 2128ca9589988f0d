"""Long tables of cases, a part of which runs each time.

A test marked ``rotated(n)`` runs every ``SHARE * n``-th of its cases, one without cases at every
``SHARE * n``-th turn; the others are slow tests this time. So ``rotated(1 / 4)`` leaves each third.
In a run of everything no test takes more than `LONGEST` either, marked or not: of one that does by
what `costs` says, fewer cases run, or it runs more seldom, so that it takes as long on average;
but for those marked ``whole``, which say of a new part of Unity that nothing of it is missing.
Which ones is the turn, ``--turn``: 0 if nobody says, and another one for each commit in CI. Tests
begin at different turns, so that all of them take about as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Protocol
from zlib import crc32

import pytest
from hypothesis import settings

from tests.costs import without_case

SHARE = 12
"""How many times longer all turns are than tests say: what fits in the time that a run has."""
LONGEST = 0.5
"""Seconds of CPU that one test may take of a run of everything, on average."""
RAREST = 48
"""Turns that no case waits longer for because of what it takes."""


class Case(Protocol):
    """What is asked of a collected test."""

    @property
    def nodeid(self) -> str:
        """Its file and name, with those of the case."""
        ...

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        """The mark of that name, if it has one."""

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        """Mark it."""


def rotate(items: Sequence[Case], turn: int, seconds: Mapping[str, float]) -> None:
    """Mark as slow the cases whose turn it is not.

    Args:
        items: What was collected.
        turn: Which turn it is.
        seconds: What one case takes, by test; none, where a test is not there.
    """
    cases = Counter(without_case(item.nodeid) for item in items)
    seen = Counter[str]()
    for item in items:
        test = without_case(item.nodeid)
        marker = item.get_closest_marker("rotated")
        marked = 0.0 if marker is None else marker.args[0]
        whole = item.get_closest_marker("whole") is not None
        taken = 0.0 if whole else cases[test] * seconds.get(test, 0.0)
        if not runs(test, seen[test], turn, turns(marked, taken)):
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


def turns(marked: float, seconds: float) -> int:
    """In how many turns each case of a test runs once.

    Args:
        marked: What its mark says; 0 without one.
        seconds: What all its cases take together.

    >>> turns(1 / 4, 0.0), turns(0, 0.3), turns(0, 7.0), turns(2, 7.0), turns(0, 70.0)
    (3, 1, 14, 24, 48)
    """
    return max(1, round(SHARE * marked), min(ceil(seconds / LONGEST), RAREST))


def runs(test: str, case: int, turn: int, count: int) -> bool:
    """Whether a case of a test, by its place among all, runs at one of so many turns."""
    return (case + crc32(test.encode()) + turn) % count == 0


def examples(count: int) -> int:
    """How many random examples a test draws: so many each time, more with new seeds.

    `tests/conftest.py` has the profiles; `count` is a hundredth part of theirs, 100 or 500.
    """
    profile = settings.default
    assert profile is not None
    return max(1, count * profile.max_examples // 100)
