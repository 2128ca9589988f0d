"""Long tables of cases, a part of which runs each time.

A test marked ``rotated(n)`` runs every ``SHARE * n``-th of its cases, one without cases at every
``SHARE * n``-th turn; the others are slow tests this time. So ``rotated(1 / 4)`` leaves each third.
In a run of everything no test takes more than `LONGEST` either, marked or not: of one that does by
what `costs` says, fewer cases run, or it runs more seldom, so that it takes as long on average;
but for those marked ``whole``, which say of a new part of Unity that nothing of it is missing.
Where all tests together would take more than `BUDGET` then, the longest take less than `LONGEST`.
Which ones is the turn, ``--turn``: 0 if nobody says, and another one for each commit in CI. Tests
begin at different turns, so that all of them take about as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple, Protocol
from zlib import crc32

import pytest
from hypothesis import settings

from tests.costs import without_case

SHARE = 12
"""How many times longer all turns are than tests say: what fits in the time that a run has."""
LONGEST = 0.5
"""Seconds of CPU that one test may take of a run of everything, on average."""
BUDGET = 150.0
"""Seconds of CPU that those tests may take of it that `costs` knows: 300 s on two cores, less those
in which tests are collected, and as many for the thousands that are too short for a row (together
200), for new ones, for a core that waits and for a machine that is slower than `costs` has it."""
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
    tests: dict[str, list[Case]] = {}
    for item in items:
        tests.setdefault(without_case(item.nodeid), []).append(item)
    rows = {test: _row(cases, seconds.get(test, 0.0)) for test, cases in tests.items()}
    limit = longest(list(rows.values()))
    for test, cases in tests.items():
        count = turns(rows[test], limit)
        for nth, case in enumerate(cases):
            if not runs(test, nth, turn, count):
                case.add_marker(pytest.mark.slow)


class Row(NamedTuple):
    """What is known of a test.

    Attributes:
        marked: What its mark says; 0 without one.
        whole: Whether all its cases run each time.
        seconds: What they take together.
    """

    marked: float
    whole: bool
    seconds: float


def _row(cases: Sequence[Case], seconds: float) -> Row:
    """Of a test, by its cases and what one of them takes."""
    marker = cases[0].get_closest_marker("rotated")
    marked = 0.0 if marker is None else marker.args[0]
    whole = cases[0].get_closest_marker("whole") is not None
    return Row(marked, whole, len(cases) * seconds)


def longest(rows: Sequence[Row]) -> float:
    """Seconds that one test may take, on average, so that all take no more than `BUDGET`.

    It goes down by fifths, so that a test's turns stay the same while what others take varies.

    >>> longest([Row(0, False, 3.0)] * 100), longest([Row(0, False, 3.0)] * 500)
    (0.5, 0.32000000000000006)
    """
    limit = LONGEST
    while sum(row.seconds / turns(row, limit) for row in rows) > BUDGET and limit > LONGEST / 50:
        limit *= 4 / 5
    return limit


def turns(row: Row, limit: float = LONGEST) -> int:
    """In how many turns each case of a test runs once, if it may take so many seconds of each.

    >>> [turns(Row(0, False, seconds)) for seconds in (0.3, 7.0, 70.0)]
    [1, 14, 48]
    >>> turns(Row(1 / 4, False, 0.0)), turns(Row(2, False, 7.0)), turns(Row(0, True, 7.0))
    (3, 24, 1)
    """
    by_cost = 1 if row.whole else min(ceil(row.seconds / limit), RAREST)
    return max(1, round(SHARE * row.marked), by_cost)


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
