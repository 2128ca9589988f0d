"""The cheapest road along a chain of segments, where a change of road costs something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def cheapest(
    table: Sequence[Mapping[str, float]],
    roads: Sequence[str],
    saving: Mapping[str, float],
    change: Sequence[float] = (),
) -> list[str]:
    """The road of each segment that makes the sum least, by dynamic programming.

    Args:
        table: For each segment the time of each road that it can take; empty: the first of all.
        roads: All roads, ours first.
        saving: What neighbours of one road pay less than apart.
        change: What it costs to change the road in front of each segment; nothing if left out.

    >>> cheapest([{"tir": 3.0, "e": 1.0}, {"tir": 1.0, "e": 2.0}], ["tir", "e"], {}, [0.0, 5.0])
    ['e', 'e']
    """
    best: dict[str, tuple[float, list[str]]] = {r: (0.0, []) for r in roads}
    for i, row in enumerate(table):
        step: dict[str, tuple[float, list[str]]] = {}
        for road in roads:
            if road not in row and (row or road != roads[0]):
                continue
            options: list[tuple[float, list[str]]] = []
            for cost, before in best.values():
                if len(before) != i:
                    continue
                if i and before[-1] == road:
                    options.append((cost - saving.get(road, 0.0), before))
                else:
                    options.append((cost + (change[i] if i and change else 0.0), before))
            cost, before = min(options, key=lambda o: o[0])
            step[road] = (cost + row.get(road, 0.0), [*before, road])
        best = step
    return min(best.values(), key=lambda o: o[0])[1]


def savings(table: Sequence[Mapping[str, float]], whole: Mapping[str, float]) -> dict[str, float]:
    """What a joint of two segments of one road saves: by the sum of its segments and its whole.

    Args:
        table: For each segment the time of each road that it can take.
        whole: The time of the whole program by each road.
    """
    joints = max(1, len(table) - 1)
    return {
        road: max(0.0, sum(row.get(road, 0.0) for row in table) - seconds) / joints
        for road, seconds in whole.items()
    }
