"""Answers remembered by what they depend on: an expression, and what is known of its variables.

Loops nest and passes follow each other, and each asks about the same sizes and indices anew. What
is known of a variable elsewhere matters to an answer only if the expression holds the variable, or
a limit of one that it holds does.
"""

from __future__ import annotations

from itertools import count
from typing import Generic, TypeAlias, TypeVar

from unity.ir.leaves import leaves
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar

from .known import Known, terms
from .polynomial import Poly

T = TypeVar("T")
Key: TypeAlias = "tuple[PrimExpr, frozenset[int], int]"

_MOST = 1 << 13
_numbers = count(1)
_facts: dict[object, int] = {}
"""A number for each set of facts; never one that another had before."""


class Remembered(Generic[T]):
    """Answers to one kind of question, forgotten all at once where they become too many."""

    def __init__(self) -> None:
        self._found: dict[Key, T] = {}

    def get(self, key: Key) -> T | None:
        """The answer; None if there is none."""
        return self._found.get(key)

    def put(self, key: Key, answer: T) -> None:
        """Remember an answer."""
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[key] = answer


class About:
    """What is known, as keys: those of expressions that differ only where answers may differ."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._numbers: dict[PrimVar | SizeVar, int] = {}
        self._asked: set[PrimVar | SizeVar] = set()
        self._least = _number(frozenset(known.least.values.items())) if known.least.values else 0

    def key(self, e: PrimExpr) -> Key:
        """What an answer about an expression depends on."""
        ranges = self._known.ranges
        if not ranges:
            return e, _NOTHING, self._least
        held, numbers = leaves(e), self._numbers
        found = [numbers.get(v) or self._of(v) for v in held.variables if v in ranges]
        found += [numbers.get(v) or self._of(v) for v in held.sizes if v in ranges]
        return e, frozenset(found) if found else _NOTHING, self._least

    def _of(self, v: PrimVar | SizeVar) -> int:
        number = self._numbers.get(v)
        if number is None and v in self._asked:  # limits in a circle: like nothing else
            return next(_numbers)
        if number is None:
            self._asked.add(v)
            number = self._numbers[v] = _number(self._told(v))
        return number

    def _told(self, v: PrimVar | SizeVar) -> object:
        """All that is known of a variable, with what is known of those in its limits."""
        known = self._known
        if isinstance(v, SizeVar):
            return v, known.ranges[v]
        low, high = known.limits.get(v, (None, None))
        others = {
            self._of(x)
            for limit in (low, high)
            for x in _held(limit)
            if x in known.ranges and x is not v
        }
        return (
            v,
            known.ranges[v],
            _whole(low),
            _whole(high),
            known.data.get(v, 0),
            frozenset(others),
        )


_NOTHING = frozenset[int]()


def _number(facts: object) -> int:
    found = _facts.get(facts)
    if found is None:
        if len(_facts) >= _MOST:
            _facts.clear()
        found = _facts[facts] = next(_numbers)
    return found


def _whole(p: Poly | None) -> object:
    return None if p is None else (terms(p), p.get((), 0))


def _held(p: Poly | None) -> set[PrimVar | SizeVar]:
    """The variables in a limit."""
    atoms = {x for monomial in p or () for x in monomial}
    found: set[PrimVar | SizeVar] = set()
    for x in atoms:
        found |= leaves(x).variables
        found |= leaves(x).sizes
    return found
