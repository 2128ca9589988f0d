"""exp, exp2, expm1, sinh, cosh, tanh, sigmoid.

``x = n ln 2 + r`` with ``|r| <= ln(2)/2``, a polynomial in r, and scaling by ``2**n``.
"""

from __future__ import annotations

from dataclasses import dataclass

from .coefficients import EXP, TANH_SINGLE, TANH_SINGLE_MOST, TANH_SINGLE_MOST_UNFUSED
from .lanes import Num


@dataclass(frozen=True, slots=True)
class _Width:
    """Constants of a float type: rounding by adding `magic` leaves the integer in the low bits.

    Below `exp_least` powers of e are zero, above `exp_most` infinite.
    """

    magic: float
    mantissa: int
    bias: int
    ln2_high: float
    ln2_low: float
    exp_least: float
    exp_most: float
    tiny: float


_WIDTHS = {
    32: _Width(12582912.0, 23, 127, 0.693145751953125, 1.4286068203094173e-06, -104.0, 89.0, 1e-4),
    64: _Width(
        6755399441055744.0,
        52,
        1023,
        0.6931471803691238,
        1.9082149292705877e-10,
        -746.0,
        710.0,
        1e-9,
    ),
}
_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453


_DOWN = 64
"""What powers of two that may be too small for a normal number are first too large by, as an
exponent: what divides by it then underflows gradually."""


def _power(t: Num) -> Num:
    """``2.0**n`` of the bits of a float whose low ones are n and the exponent's bias."""
    return (t.bits() << _WIDTHS[t.t.bits].mantissa).as_float()


# What underflows to zero takes Intel's processors a hundred cycles and more: a softmax with a third
# of its elements masked took 10 to 14 times as long as one without (Xeon with AMX), attention 2.5
# times. So nothing is multiplied to where it underflows for certain: either the number is zero
# before, or the power of two is, whose bits are zero where `n` and the bias are.


def _zero_below(x: Num, least: float, y: Num) -> Num:
    """``y``, but zero where x is below all that gives more; without the bound for a NaN."""
    return (x < least).select(y.like(0.0), y)


def scale(y: Num, x: _Reduced) -> Num:
    """``y * 2**n``: gradual underflow, overflow to infinity; `x` is reduced with two biases."""
    if _scales(y):
        return _scale_x86(y, x.n)
    mantissa = _WIDTHS[y.t.bits].mantissa
    whole = x.sum.bits()
    half = whole.shift_signed(1)  # n / 2 and one bias; what is left of it has the other
    return y * (half << mantissa).as_float() * ((whole - half) << mantissa).as_float()


def _scales(y: Num) -> bool:
    return y.em.unit.abilities.scale and y.t.lanes * y.t.bits in (128, 256, 512)


def _scale_x86(y: Num, n: Num) -> Num:
    """One instruction, ``vscalefps`` or ``vscalefpd``."""
    width, text = y.t.lanes * y.t.bits, y.t.text
    kind = "ps" if y.single else "pd"
    rounding = ", i32 4" if width == 512 else ""
    called = y.em.pure(
        f"call {text} @llvm.x86.avx512.mask.scalef.{kind}.{width}({text} {y.text}, "
        f"{text} {n.text}, {text} zeroinitializer, i{max(8, y.t.lanes)} -1{rounding})"
    )
    return Num(y.em, y.t, called)


@dataclass(frozen=True, slots=True)
class _Reduced:
    """``x = n ln 2 + r``.

    Attributes:
        n: The integer nearest to ``x / ln 2``, as a float.
        r: What is left of x.
        sum: A float whose low bits are `n` and what was asked to be added to it.
    """

    n: Num
    r: Num
    sum: Num


def _reduce(x: Num, added: int) -> _Reduced:
    """An argument as a power of two and a rest; `added` goes to the low bits of the sum."""
    w = _WIDTHS[x.t.bits]
    total = x.times_plus(_LOG2_E, w.magic + added)
    n = total - (w.magic + added)
    r = (-n).times_plus(w.ln2_high, x)
    return _Reduced(n, (-n).times_plus(w.ln2_low, r), total)


def _exp_reduced(r: Num) -> Num:
    """``exp(r)`` for small r."""
    return _expm1_reduced(r) + 1.0 if r.single else r.horner((*EXP[64], 1.0, 1.0))


def _expm1_reduced(r: Num) -> Num:
    """``exp(r) - 1`` for small r."""
    z = r * r
    if not r.single:
        return z.times_plus(r.horner(EXP[64]), r)
    # Three steps that wait for each other instead of five: of short rows it is these that count.
    a, b, c, d, e = EXP[32]
    inner = z.times_plus(a, r.times_plus(b, c))
    return z.times_plus(z.times_plus(inner, r.times_plus(d, e)), r)


def exp(x: Num) -> Num:
    """``e**x``: 1.1 ulp."""
    w = _WIDTHS[x.t.bits]
    if _scales(x):
        reduced = _reduce(x.at_most(w.exp_most), 0)
        return _scale_x86(_zero_below(x, w.exp_least, _exp_reduced(reduced.r)), reduced.n)
    reduced = _reduce(x.clamp(-2 * w.bias * _LN_2, w.exp_most), 2 * w.bias)
    return scale(_exp_reduced(reduced.r), reduced)


def exp_nonpositive(x: Num) -> Num:
    """``e**x`` for x not above zero: 1.1 ulp. No power of two is too large, which saves three."""
    y = _scaled_exp_of_negative(x)
    return y if _scales(x) else y * 2.0**-_DOWN


def _scaled_exp_of_negative(x: Num) -> Num:
    """``e**x`` for x not above zero; times ``2**_DOWN``, and so normal, where nothing `_scales`."""
    w = _WIDTHS[x.t.bits]
    if _scales(x):
        reduced = _reduce(x, 0)
        return _scale_x86(_zero_below(x, w.exp_least, _exp_reduced(reduced.r)), reduced.n)
    least = -(w.bias + _DOWN) * _LN_2
    reduced = _reduce((x < least).select(x.like(least), x), w.bias + _DOWN)
    return _exp_reduced(reduced.r) * _power(reduced.sum)


def exp_sum(high: Num, low: Num) -> Num:
    """``e**(high + low)`` for a small second part (in doubles)."""
    y = exp(high)
    corrected = y.times_plus(low, y)
    finite = y.abs() < float("inf")
    return finite.select(corrected, y)


def exp2(x: Num) -> Num:
    """``2**x``: 1.1 ulp."""
    w = _WIDTHS[x.t.bits]
    c = x.clamp(-2 * w.bias, w.bias + 2)
    total = c + (w.magic + 2 * w.bias)
    n = total - (w.magic + 2 * w.bias)
    y = _exp_reduced((c - n) * _LN_2)
    if _scales(x):
        y = _zero_below(x, -w.bias - w.mantissa - 3, y)
    return scale(y, _Reduced(n, c - n, total))


def expm1(x: Num) -> Num:
    """``e**x - 1``: 2 ulp."""
    w = _WIDTHS[x.t.bits]
    # Half of it, so that 2**n may be as big as the type's greatest power and one more.
    reduced = _reduce(x.clamp(-w.mantissa * 0.75 - 2.0, w.exp_most), w.bias - 1)
    s = _power(reduced.sum)
    y = s.times_plus(_expm1_reduced(reduced.r), s - 0.5) * 2.0
    return (x.abs() < w.tiny).select((x * 0.5).times_plus(x, x), y).with_sign_of(x)


def sinh(x: Num) -> Num:
    """Hyperbolic sine: 3 ulp."""
    a = x.abs()
    t = expm1(a)
    small = (t + t / (t + 1.0)) * 0.5
    half = exp(a * 0.5)
    big = half * 0.5 * half
    return (a < _far(x)).select(small, big).with_sign_of(x)


def cosh(x: Num) -> Num:
    """Hyperbolic cosine: 3 ulp."""
    a = x.abs()
    half = exp(a * 0.5)
    e = exp(a)
    small = e.times_plus(0.5, 0.5 / e)
    return (a < _far(x)).select(small, half * 0.5 * half)


def _far(x: Num) -> float:
    """Where ``exp(-x)`` no longer counts beside ``exp(x)``."""
    return 10.0 if x.single else 22.0


def tanh(x: Num) -> Num:
    """Hyperbolic tangent: 5 ulp (float; 7 where multiply-adds round twice), 3 ulp (double)."""
    if not x.single:
        a = x.abs()
        t = expm1(a.clamp(0.0, 22.0) * 2.0)
        return (t / (t + 2.0)).with_sign_of(x)
    most = TANH_SINGLE_MOST if x.em.unit.abilities.fma else TANH_SINGLE_MOST_UNFUSED
    c = x.clamp(-most, most)
    z = c * c
    upper, lower = TANH_SINGLE
    return c * (z.horner(upper) / z.horner(lower))


def sigmoid(x: Num) -> Num:
    """``1 / (1 + e**-x)``: 2.5 ulp, subnormal results too."""
    e = _scaled_exp_of_negative(-x.abs())
    one = 1.0 if _scales(x) else 2.0**_DOWN  # the quotient is the same
    return (x.bits() < 0).select(e, e.like(one)) / (e + one)
