"""The space of the default rules: their decisions, and which rules are asked.

The default is the first point, so a search that begins here never loses. Every decision comes with
what is legal for it where the others stand; which rule lays a block out is one more choice: a rule
that is not asked leaves the block to the next that takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import cast

from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.rules.decisions import AppliedRule
from unity.transform.rules.default import DefaultRules
from unity.transform.rules.rule import Legal
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Json

from .point import Point

NAME = "rules"
Changes = dict[str, dict[str, int]]
Without = dict[str, list[str]]
_ANOTHER_RULE = 0.12
"""How often a neighbour differs by a rule instead of a number."""
_FEW = 400
"""Points that are all tried."""
_LAST = ("as_written", "plain", "fallback")
"""Rules that leave loops much as they are: there is nothing behind them to try."""


class RuleSpace:
    """What the default rules may decide about a kernel.

    Args:
        func: The kernel.
        target: The machine.
    """

    name = NAME

    def __init__(self, func: PrimFunc, target: Target) -> None:
        self.func = func
        self.target = target
        self._defaults = DefaultRules(func, target)
        self._rules = lru_cache(maxsize=512)(self._applied)

    def first(self, random: Random) -> Point | None:
        """What the rules decide themselves."""
        del random
        return self._point({}, {})

    def sample(self, random: Random) -> Point | None:
        """Some decisions after another, from the default."""
        point = self.first(random)
        for _ in range(random.choice((2, 3, 4, 6, 8))):
            point = (self.mutate(point, random) if point is not None else None) or point
        return point

    def mutate(self, point: Point, random: Random) -> Point | None:
        """Another value of one decision, or another rule."""
        changes, without = parts_of(point)
        if random.random() < _ANOTHER_RULE:
            return self._another_rule(point, changes, without, random)
        rules = self._rules(point)
        open_ = [(r, n) for r in rules for n, legal in r.legal.items() if len(legal.values) > 1]
        if not open_:
            return None
        rule, name = random.choice(open_)
        value = drawn(rule.legal[name], rule.decisions[name], random)
        changes.setdefault(rule.blocks[0], {})[name] = value
        return self._legal(changes, without)

    def _another_rule(
        self, point: Point, changes: Changes, without: Without, random: Random
    ) -> Point | None:
        rules = [r for r in self._rules(point) if r.blocks and r.rule not in _LAST]
        if without and (not rules or random.random() < 0.5):
            del without[random.choice(sorted(without))]
        elif rules:
            rule = random.choice(rules)
            without.setdefault(rule.blocks[0], []).append(rule.rule)
            changes = {b: c for b, c in changes.items() if b not in rule.blocks}
        return self._legal(changes, without)

    def cross(self, a: Point, b: Point, random: Random) -> Point | None:
        """Each decision from one of both; rules are those of the first."""
        (mine, without), (other, _) = parts_of(a), parts_of(b)
        changes: Changes = {}
        for block in sorted({*mine, *other}):
            for name in sorted({*mine.get(block, {}), *other.get(block, {})}):
                source = random.choice((mine, other))
                if name in source.get(block, {}):
                    changes.setdefault(block, {})[name] = source[block][name]
        return self._legal(changes, without)

    def every(self) -> Iterator[Point] | None:
        """All points of kernels with few decisions."""
        rules = self._rules(self._point({}, {}))
        counts = [len(legal.values) for r in rules for legal in r.legal.values()]
        total = 1
        for count in counts:
            total *= count
            if total > _FEW:
                return None
        return self._every(rules)

    def _every(self, rules: Sequence[AppliedRule]) -> Iterator[Point]:
        points: list[Changes] = [{}]
        for rule in rules:
            for name, legal in rule.legal.items():
                points = [
                    {**p, rule.blocks[0]: {**p.get(rule.blocks[0], {}), name: value}}
                    for p in points
                    for value in legal.values
                ]
        for changes in points:
            found = self._legal(changes, {})
            if found is not None:
                yield found

    def schedule(self, point: Point) -> Schedule:
        """What the rules do when this is decided."""
        changes, without = parts_of(point)
        return self._defaults.schedule(changes or None, without or None)

    def _applied(self, point: Point) -> tuple[AppliedRule, ...]:
        changes, without = parts_of(point)
        return self._defaults.applied(changes or None, without or None)

    def _legal(self, changes: Changes, without: Without) -> Point | None:
        """A point, if its decisions go together; those that change nothing are left out."""
        try:
            usual = self._rules(self._point({}, without))
            own = {r.blocks[0]: r.decisions for r in usual if r.blocks}
            kept = {
                block: {n: v for n, v in sorted(c.items()) if own.get(block, {}).get(n) != v}
                for block, c in sorted(changes.items())
                if block in own
            }
            point = self._point({b: c for b, c in kept.items() if c}, without)
            self._rules(point)
        except UnityError:
            return None
        return point

    def _point(self, changes: Mapping[str, Mapping[str, int]], without: Without) -> Point:
        return Point.of(
            NAME,
            {
                "decisions": {b: dict(c) for b, c in changes.items()},
                "without": {b: sorted(set(r)) for b, r in without.items()},
            },
        )


def parts_of(point: Point) -> tuple[Changes, Without]:
    """A point's decisions, and the rules that are not asked."""
    found = cast("Mapping[str, Json]", point.decided())
    return cast("Changes", found["decisions"]), cast("Without", found["without"])


def drawn(legal: Legal, now: int, random: Random) -> int:
    """Another legal value: of many numbers mostly one near by, in steps or by factors of two.

    >>> from random import Random
    >>> drawn(Legal(range(1, 1 << 20), "any number"), 60000, Random(0)) != 60000
    True
    """
    values = legal.values
    if isinstance(now, bool) or len(values) <= 12 or not isinstance(values, range):
        return random.choice([v for v in values if v != now] or [now])
    factor = random.choice((0.25, 0.5, 0.5, 2, 2, 4))
    step = random.choice((-values.step, values.step))
    wanted = round(now * factor) if len(values) > 64 or random.random() < 0.5 else now + step
    at = min(max(wanted, values[0]), values[-1])
    return values[(at - values[0]) // values.step]
