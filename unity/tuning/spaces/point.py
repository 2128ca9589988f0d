"""Points of design spaces, and what a space is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Json


@dataclass(frozen=True, slots=True)
class Point:
    """One way to lay a kernel out.

    Attributes:
        space: The name of the space it is of.
        text: What is decided, as canonical JSON.
    """

    space: str
    text: str

    @staticmethod
    def of(space: str, decided: Json) -> Point:
        """A point of some decisions.

        >>> Point.of("rules", {"b": 1, "a": [2]})
        Point(space='rules', text='{"a":[2],"b":1}')
        """
        return Point(space, json.dumps(decided, sort_keys=True, separators=(",", ":")))

    def decided(self) -> Json:
        """What is decided."""
        found: Json = json.loads(self.text)
        return found


class Space(Protocol):
    """A set of ways to lay one kernel out.

    Everything random is drawn from the generator that is handed in, so that a search with a seed
    does the same again.
    """

    @property
    def name(self) -> str:
        """What points and records call it."""
        ...

    def first(self, random: Random) -> Point | None:
        """Where a search begins; None where the space has nothing for this kernel."""
        ...

    def sample(self, random: Random) -> Point | None:
        """A point from anywhere; None where that failed."""
        ...

    def mutate(self, point: Point, random: Random) -> Point | None:
        """A neighbour of a point, one decision apart; None where that failed."""
        ...

    def cross(self, a: Point, b: Point, random: Random) -> Point | None:
        """Some decisions of one point, some of another; None where that failed."""
        ...

    def every(self) -> Iterator[Point] | None:
        """All points, where they are few enough to be tried; None where they are not."""
        ...

    def schedule(self, point: Point) -> Schedule:
        """The kernel laid out.

        Raises:
            UnityError: A step is refused here.
        """
        ...
