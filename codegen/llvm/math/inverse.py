"""atan, atan2, asin, acos."""

from __future__ import annotations

from .coefficients import ASIN, ATAN
from .lanes import Num

_HALF_PI = {
    32: (1.5707963705062866, -4.371138828673793e-08),
    64: (1.5707963267948966, 6.123233995736766e-17),
}
_TAN_PI_8 = 0.41421356237309503


def _atan_unit(a: Num) -> Num:
    """The arc tangent of a value in 0..1."""
    big = a > _TAN_PI_8
    y = big.select(a - 1.0, a) / big.select(a + 1.0, 1.0)
    z = y * y
    p = (y * z).times_plus(z.horner(ATAN[a.t.bits]), y)
    high, low = _HALF_PI[a.t.bits]
    return big.select((p + low * 0.5) + high * 0.5, p)


def atan(x: Num) -> Num:
    """Arc tangent: 2 ulp."""
    a = x.abs()
    beyond = a > 1.0
    p = _atan_unit(beyond.select(1.0 / a, a))
    high, low = _HALF_PI[x.t.bits]
    return beyond.select((low - p) + high, p).with_sign_of(x)


def atan2(y: Num, x: Num) -> Num:
    """The angle of the point (x, y): 2.5 ulp; zeros and infinities as in C."""
    a, b = y.abs(), x.abs()
    steep = a > b
    lower, upper = steep.select(b, a), steep.select(a, b)
    ratio = lower / upper
    ratio = lower.equals(upper).select(ratio.like(1.0), ratio)  # both infinite
    ratio = upper.equals(0.0).select(upper, ratio)  # both zero
    high, low = _HALF_PI[x.t.bits]
    p = _atan_unit(ratio)
    p = steep.select((low - p) + high, p)
    left = x.bits() < 0
    p = left.select((low * 2.0 - p) + high * 2.0, p)
    nan = y.is_nan() | x.is_nan()
    return nan.select(y + x, p.with_sign_of(y))


def _asin_small(y: Num, z: Num) -> Num:
    """The arc sine of y up to 1/2, given its square."""
    return (y * z).times_plus(z.horner(ASIN[y.t.bits]), y)


def asin(x: Num) -> Num:
    """Arc sine: 2.5 ulp; NaN outside -1..1."""
    a = x.abs()
    big = a > 0.5
    z = big.select((1.0 - a) * 0.5, a * a)
    p = _asin_small(big.select(z.sqrt(), a), z)
    high, low = _HALF_PI[x.t.bits]
    return big.select((low - p * 2.0) + high, p).with_sign_of(x)


def acos(x: Num) -> Num:
    """Arc cosine: 2 ulp; NaN outside -1..1."""
    a = x.abs()
    big = a > 0.5
    z = big.select((1.0 - a) * 0.5, a * a)
    p = _asin_small(big.select(z.sqrt(), a), z)
    high, low = _HALF_PI[x.t.bits]
    negative = x < 0.0
    outer = negative.select((low * 2.0 - p * 2.0) + high * 2.0, p * 2.0)
    signed = p.with_sign_of(x)
    return big.select(outer, (low - signed) + high)
