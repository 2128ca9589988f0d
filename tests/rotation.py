"""Long tables of cases, a part of which runs each time.

A test marked ``rotated(n)`` runs every n-th of its cases; the others are slow tests this time.
Which ones is the turn, ``--turn``: 0 if nobody says, and another one for each commit in CI.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings


def rotate(items: list[pytest.Item], turn: int) -> None:
    """Mark as slow the cases whose turn it is not."""
    seen = Counter[str]()
    for item in items:
        marker = item.get_closest_marker("rotated")
        if marker is None:
            continue
        test = item.nodeid.partition("[")[0]
        (turns,) = marker.args
        if (seen[test] + turn) % turns:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


def examples(count: int) -> int:
    """How many random examples a test draws: so many each time, more with new seeds.

    `tests/conftest.py` has the profiles; `count` is a hundredth part of theirs, 100 or 500.
    """
    profile = settings.default
    assert profile is not None
    return max(1, count * profile.max_examples // 100)
