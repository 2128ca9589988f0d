"""Sums and products of doubles with their rounding errors, for what needs more than 53 bits."""

from __future__ import annotations

from .lanes import Num


def two_product(a: Num, b: Num) -> tuple[Num, Num]:
    """``p, e`` with ``p + e == a * b`` exactly."""
    p = a * b
    if a.em.unit.abilities.fma:
        return p, a.call("fma", b, -p)
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    e = a_high * b_high - p + a_high * b_low + a_low * b_high + a_low * b_low
    return p, e


def _halves(a: Num) -> tuple[Num, Num]:
    """A double as two of at most 26 bits (Veltkamp)."""
    c = a * 134217729.0
    high = c - (c - a)
    return high, a - high


def two_sum(a: Num, b: Num) -> tuple[Num, Num]:
    """``s, e`` with ``s + e == a + b`` exactly (Knuth)."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def fast_two_sum(a: Num, b: Num) -> tuple[Num, Num]:
    """As `two_sum`, where a is zero or the greater."""
    s = a + b
    return s, (a - s) + b
