"""Long tables of cases, a part of which runs each time.

A test marked ``rotated(n)`` runs every n-th of its cases; the others are slow tests this time.
Which ones is the turn, ``--turn``: 0 if nobody says, and another one for each commit in CI.
"""

from __future__ import annotations

from collections import Counter

import pytest


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
