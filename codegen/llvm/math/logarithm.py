"""log, log2, log10, log1p, asinh, acosh, atanh.

``x = m 2**k`` with ``sqrt(1/2) <= m < sqrt(2)``: the logarithm of m, and k times a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

from .coefficients import LOG_DOUBLE, LOG_SINGLE
from .lanes import Num

_INF = float("inf")
_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class _Width:
    """Constants of a float type."""

    mantissa: int
    sqrt_half: int  # bits of sqrt(1/2)
    least_normal: float
    up: float  # makes subnormals normal
    up_power: float
    magic: float
    ln2_high: float
    ln2_low: float
    log10_2_high: float
    log10_2_low: float
    huge: float  # far beyond where 1 + x is x; its square is still finite


_WIDTHS = {
    32: _Width(
        23, 0x3F3504F3, 1.1754943508222875e-38, 8388608.0, 23.0, 12582912.0,
        0.693145751953125, 1.4286068203094173e-06, 0.301025390625, 4.605038981195214e-06, 1e18,
    ),
    64: _Width(
        52, 0x3FE6A09E667F3BCD, 2.2250738585072014e-308, 4503599627370496.0, 52.0,
        6755399441055744.0, 0.6931471803691238, 1.9082149292705877e-10,
        0.3010299955494702, 1.1451100898021838e-10, 1e150,
    ),
}  # fmt: skip


def split(x: Num) -> tuple[Num, Num]:
    """``f, k`` with ``x = (1 + f) 2**k`` for positive finite x; k as a float."""
    w = _WIDTHS[x.t.bits]
    small = x < w.least_normal
    b = small.select(x * w.up, x).bits()
    offset = (b - w.sqrt_half).shift_signed(w.mantissa)
    m = (b - (offset << w.mantissa)).as_float()
    # An integer of few bits to a float by arithmetic: conversions of 64 bits are slow or missing.
    k = (offset + x.like(w.magic).bits()).as_float() - w.magic
    return m - 1.0, k - small.select(x.like(w.up_power), 0.0)


def _tail(f: Num) -> Num:
    """``log(1 + f) - f``, for f as `split` gives it."""
    z = f * f
    if f.single:
        return z.times_plus(-0.5, f * z * f.horner(LOG_SINGLE))
    s = f / (f + 2.0)
    y = s * s
    half = z * 0.5
    return s.times_plus(y.times_plus(y.horner(LOG_DOUBLE), half), -half)


def _ends(x: Num, y: Num) -> Num:
    """The values where there is no logarithm to compute: zero, negative, infinite, NaN."""
    y = x.equals(_INF).select(x, y)
    y = x.equals(0.0).select(x.like(-_INF), y)
    return ((x < 0.0) | x.is_nan()).select(x.like(_NAN), y)


def log(x: Num) -> Num:
    """Natural logarithm: 1 ulp."""
    w = _WIDTHS[x.t.bits]
    f, k = split(x)
    low = k.times_plus(w.ln2_low, _tail(f))
    return _ends(x, k.times_plus(w.ln2_high, f + low))


def log2(x: Num) -> Num:
    """Logarithm to base 2: 2 ulp; exact for powers of two."""
    f, k = split(x)
    return _ends(x, (f + _tail(f)).times_plus(1.4426950408889634, k))


def log10(x: Num) -> Num:
    """Logarithm to base 10: 2 ulp."""
    w = _WIDTHS[x.t.bits]
    f, k = split(x)
    low = k.times_plus(w.log10_2_low, (f + _tail(f)) * 0.4342944819032518)
    return _ends(x, k.times_plus(w.log10_2_high, low))


def log1p(x: Num) -> Num:
    """``log(1 + x)``: 2 ulp."""
    u = x + 1.0
    lost = (x - (u - 1.0)) / u
    y = log(u)
    usual = (u > 0.0) & (u < _INF)
    y = usual.select(y + lost, y)
    # Keeps the sign of zero.
    return x.equals(0.0).select(x, y)


def asinh(x: Num) -> Num:
    """Inverse hyperbolic sine: 4 ulp."""
    w = _WIDTHS[x.t.bits]
    a = x.abs()
    big = a > w.huge
    z = a * a
    inner = a + z / ((z + 1.0).sqrt() + 1.0)
    y = log1p(big.select(a, inner))
    return big.select(y + 0.6931471805599453, y).with_sign_of(x)


def acosh(x: Num) -> Num:
    """Inverse hyperbolic cosine: 4 ulp; NaN below 1."""
    w = _WIDTHS[x.t.bits]
    big = x > w.huge
    t = x - 1.0
    y = log1p(big.select(x, t + (t * 2.0 + t * t).sqrt()))
    # Far below 1 the root is as large as t, and the sum anything.
    return (x < 1.0).select(x.like(_NAN), big.select(y + 0.6931471805599453, y))


def atanh(x: Num) -> Num:
    """Inverse hyperbolic tangent: 3 ulp; infinite at 1, NaN beyond."""
    a = x.abs()
    y = log1p(a * 2.0 / (1.0 - a)) * 0.5
    return (a > 1.0).select(a.like(_NAN), y).with_sign_of(x)
