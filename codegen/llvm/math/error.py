"""The error function."""

from __future__ import annotations

from .coefficients import ERF_DOUBLE, ERF_SINGLE, ERFC_DOUBLE
from .exponential import exp
from .lanes import Num


def erf(x: Num) -> Num:
    """The error function: 6 ulp (float), 3 ulp (double)."""
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
