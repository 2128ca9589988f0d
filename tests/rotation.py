"""Long tables of cases, a part of which runs each time.

A test marked ``rotated(n)`` runs every ``SHARE * n``-th of its cases, one without cases at every
``SHARE * n``-th turn; the others are slow tests this time. So ``rotated(1 / 4)`` leaves each third.
Which ones is the turn, ``--turn``: 0 if nobody says, and another one for each commit in CI. Tests
begin at different turns, so that all of them take about as long.
"""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pytest
from hypothesis import settings

SHARE = 12
"""How many times longer all turns are than tests say: what fits in the time that a run has."""


def rotate(items: list[pytest.Item], turn: int) -> None:
    """Mark as slow the cases whose turn it is not."""
    seen = Counter[str]()
    for item in items:
        marker = item.get_closest_marker("rotated")
        if marker is None:
            continue
        test = item.nodeid.partition("[")[0]
        turns = round(SHARE * marker.args[0])
        if (seen[test] + crc32(test.encode()) + turn) % turns:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


def examples(count: int) -> int:
    """How many random examples a test draws: so many each time, more with new seeds.

    `tests/conftest.py` has the profiles; `count` is a hundredth part of theirs, 100 or 500.
    """
    profile = settings.default
    assert profile is not None
    return max(1, count * profile.max_examples // 100)
