"""floor, ceil, trunc, round to even: instructions where there are some, else arithmetic."""

from __future__ import annotations

from .lanes import Num

_NATIVE = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven"}


def _near(x: Num) -> Num:
    """Rounded to nearest even, by adding and taking away a number without fractional digits."""
    magic = 8388608.0 if x.single else 4503599627370496.0
    a = x.abs()
    r = (a + magic) - magic
    return (a < magic).select(r, a).with_sign_of(x)


def round_even(x: Num) -> Num:
    """To the nearest integer, halves to the even one."""
    return x.call("roundeven") if x.em.unit.abilities.rounding else _near(x)


def floor(x: Num) -> Num:
    """To the integer not above."""
    if x.em.unit.abilities.rounding:
        return x.call("floor")
    r = _near(x)
    return (r > x).select(r - 1.0, r)


def ceil(x: Num) -> Num:
    """To the integer not below; keeps the sign of what becomes zero."""
    if x.em.unit.abilities.rounding:
        return x.call("ceil")
    r = _near(x)
    return (r < x).select((r + 1.0), r).with_sign_of(x)


def trunc(x: Num) -> Num:
    """To the integer towards zero."""
    if x.em.unit.abilities.rounding:
        return x.call("trunc")
    a = x.abs()
    r = _near(a)
    return (r > a).select(r - 1.0, r).with_sign_of(x)
