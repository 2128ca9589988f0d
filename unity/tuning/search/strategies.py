"""Where candidates come from: evolution of what was best, annealing, chance, or all there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp
from random import Random
from typing import Protocol

from unity.errors import UnityError

from ..spaces import Point, Space

ELITE = 16
"""Of what was measured, how many of the best have offspring."""
_FRESH, _CROSSED = 0.15, 0.2
"""The shares of candidates that come from anywhere, and from two parents."""
_TWO_STEPS = 0.3
"""How often a neighbour is two decisions apart."""
_HEAT, _COOLING = 0.5, 0.97
"""How much worse a walk may go to at first, and what is left of that from batch to batch."""


class Strategy(Protocol):
    """Makes candidates.

    Attributes:
        ranked: Whether a model chooses which of them are measured: else they all are.
    """

    ranked: bool

    def points(self, measured: Mapping[Point, float], random: Random) -> Iterator[Point]:
        """Candidates, as many as are asked for; some may be known already.

        Args:
            measured: Seconds of what was measured and is right.
            random: Where chance comes from.
        """
        ...


class Evolution:
    """Neighbours and crossings of the best, and some from anywhere. After Ansor and MetaSchedule.

    Args:
        spaces: Of the kernel.
    """

    ranked = True

    def __init__(self, spaces: Sequence[Space]) -> None:
        self._spaces = {s.name: s for s in spaces}

    def points(self, measured: Mapping[Point, float], random: Random) -> Iterator[Point]:
        """Offspring of the best; the faster one is, the more it has."""
        elite = sorted(measured, key=lambda p: measured[p])[:ELITE]
        names = sorted(self._spaces)
        weights = [1.0 / (k + 1) for k in range(len(elite))]
        while True:
            found: Point | None
            if not elite or random.random() < _FRESH:
                found = self._spaces[random.choice(names)].sample(random)
            else:
                (a,) = random.choices(elite, weights)
                space = self._spaces[a.space]
                others = [b for b in elite if b.space == a.space and b != a]
                if others and random.random() < _CROSSED:
                    found = space.cross(a, random.choice(others), random)
                else:
                    found = space.mutate(a, random)
                    if found is not None and random.random() < _TWO_STEPS:
                        found = space.mutate(found, random) or found
            if found is not None:
                yield found


class Annealing:
    """A walk from neighbour to neighbour, to worse ones the more seldom the longer it goes on.

    Args:
        spaces: Of the kernel.
    """

    ranked = True

    def __init__(self, spaces: Sequence[Space]) -> None:
        self._spaces = {s.name: s for s in spaces}
        self._at: Point | None = None
        self._heat = _HEAT

    def points(self, measured: Mapping[Point, float], random: Random) -> Iterator[Point]:
        """Neighbours of where the walk is; it moves by what was measured of the last ones."""
        best = min(measured.values(), default=0.0)
        for point in sorted(measured, key=lambda p: p.text):
            if self._at is None or self._at not in measured or self._moves(point, measured, random):
                self._at = point
        self._heat *= _COOLING
        while True:
            found: Point | None = None
            if self._at is not None and best:
                space = self._spaces[self._at.space]
                found = space.mutate(self._at, random)
                if found is not None and random.random() < _TWO_STEPS:
                    found = space.mutate(found, random) or found
            if found is None:  # nothing is measured yet, or where the walk is has no neighbours
                found = self._spaces[random.choice(sorted(self._spaces))].sample(random)
            if found is not None:
                yield found

    def _moves(self, point: Point, measured: Mapping[Point, float], random: Random) -> bool:
        assert self._at is not None
        worse = measured[point] / measured[self._at] - 1.0
        return worse <= 0 or random.random() < exp(-worse / self._heat) * 0.5


class Chance:
    """Points from anywhere.

    Args:
        spaces: Of the kernel.
    """

    ranked = False

    def __init__(self, spaces: Sequence[Space]) -> None:
        self._spaces = list(spaces)

    def points(self, measured: Mapping[Point, float], random: Random) -> Iterator[Point]:
        """Each from one of the spaces."""
        del measured
        while True:
            found = random.choice(self._spaces).sample(random)
            if found is not None:
                yield found


STRATEGIES: dict[str, Callable[[Sequence[Space]], Strategy]] = {
    "evolution": Evolution,
    "annealing": Annealing,
    "random": Chance,
}


def strategy(name: str, spaces: Sequence[Space]) -> Strategy:
    """A strategy by its name.

    Raises:
        UnityError: There is none of that name.
    """
    if name not in STRATEGIES:
        raise UnityError(f"there is no strategy {name!r}", hint=f"one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name](spaces)
