"""The error function."""

from __future__ import annotations

from .coefficients import (
    ERF_DOUBLE,
    ERF_PIECES,
    ERF_PIECES_IN_ONE,
    ERF_SINGLE,
    ERFC_DOUBLE,
)
from .exponential import exp
from .lanes import Num

_MAGIC = 12582912.0
"""Added to a float, it leaves the nearest integer in the low bits."""
_ONE = 3.9999976
"""From here on the error function is one, and so is what is computed for it."""


def erf(x: Num) -> Num:
    """The error function: 6 ulp (float), 3 ulp (double)."""
    if x.single and x.t.lanes == 16 and x.em.unit.abilities.tables:
        return _erf_in_pieces(x)
    if x.single:
        c = x.clamp(-4.0, 4.0)
        z = c * c
        upper, lower = ERF_SINGLE
        y = (c * z.horner(upper) / z.horner(lower)).clamp(-1.0, 1.0)
        return (x.abs() < 0.0001).select(x * 1.1283791670955126, y)
    a = x.abs()
    z = x * x
    small = x.times_plus(z.horner(ERF_DOUBLE), x)
    c = a.clamp(1.0, 6.0)
    t = (c - 3.0) / (c + 3.0)
    big = 1.0 - exp(-(c * c)) * t.horner(ERFC_DOUBLE)
    y = (a < 1.0).select(small, big.with_sign_of(x))
    return x.is_nan().select(x, y)


def _erf_in_pieces(x: Num) -> Num:
    """A polynomial for each sixteenth of 0..4: no division, which is what the other way costs."""
    c = x.clamp(-_ONE, _ONE)
    a = c.abs()
    nearest = a.times_plus(ERF_PIECES_IN_ONE, _MAGIC)
    t = a.times_plus(ERF_PIECES_IN_ONE, _MAGIC - nearest)
    columns = list(zip(*ERF_PIECES, strict=True))
    y = nearest.bits().pick(columns[0])
    for column in columns[1:]:
        y = y.times_plus(t, nearest.bits().pick(column))
    return c * y
