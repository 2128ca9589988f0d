"""pow, of floats (C99's special cases) and of integers."""

from __future__ import annotations

from ..emitter import Emitter, Unit
from ..types import Ty
from .coefficients import LOG_DOUBLE
from .exact import fast_two_sum, two_product
from .exponential import exp, exp_sum
from .lanes import Num
from .logarithm import log, split
from .rounding import trunc

_INF = float("inf")


def power(x: Num, y: Num) -> Num:
    """``x ** y``: 1 ulp (float), 2 ulp (double)."""
    a = x.abs()
    if x.single:
        wide = a.convert("fpext", "double"), y.convert("fpext", "double")
        magnitude = exp(wide[1] * log(wide[0])).convert("fptrunc", "float")
    else:
        magnitude = _power_double(a, y)
    one = x.like(1.0)
    whole = trunc(y).equals(y)
    half = y * 0.5
    odd = whole & trunc(half).differs(half)
    result = odd.select(magnitude.with_sign_of(x), magnitude)
    invalid = (x < 0.0) & (x > -_INF) & ~whole
    result = invalid.select(x.like(float("nan")), result)
    certain = x.equals(1.0) | y.equals(0.0) | (a.equals(1.0) & y.abs().equals(_INF))
    return certain.select(one, result)


def _power_double(a: Num, y: Num) -> Num:
    """``a ** y`` of positive doubles, the logarithm carried to some 64 bits."""
    high, low = _log_extended(a)
    ordinary = (a > 0.0) & (a < _INF)
    high, low = ordinary.select(high, log(a)), ordinary.select(low, 0.0)
    product, error = two_product(y, high)
    error = (product.abs() < 1000.0).select(error + y * low, 0.0)
    return exp_sum(product, error)


def _log_extended(x: Num) -> tuple[Num, Num]:
    """The logarithm of a positive finite double as a sum of two."""
    f, k = split(x)
    # s = f / (2 + f), in two parts
    t = f + 2.0
    t_low = f - (t - 2.0)
    s = f / t
    p, e = two_product(s, t)
    s_low = (f - p - e - s * t_low) / t
    # 2 s + 2/3 s**3 + s**5 Q(s**2)
    z, z_low = two_product(s, s)
    z_low = z_low + s * s_low * 2.0
    c, c_low = two_product(z, s)
    c_low = c_low + z * s_low + z_low * s
    d, d_low = two_product(c, c.like(0.6666666666666666))
    d_low = d_low + c * 3.700743415417188e-17 + c_low * 0.6666666666666666
    rest = s * z * z * z.horner(LOG_DOUBLE[:-1])
    h, h_low = fast_two_sum(s * 2.0, d)
    h_low = h_low + (s_low * 2.0 + d_low + rest)
    total, low = fast_two_sum(k * 0.6931471803691238, h)
    low = low + (h_low + k * 1.9082149292705877e-10)
    return fast_two_sum(total, low)


def int_power(em: Emitter, t: Ty, signed: bool, a: str, b: str) -> str:
    """``a ** b`` of integers, wrapping; a negative exponent gives the truncated quotient."""
    name = f"unity.powi.{t.suffix}.{'s' if signed else 'u'}"
    if name not in em.unit.functions:
        em.unit.functions[name] = _int_power_text(em.unit, name, t, signed)
    return em.call(name, t, (t, a), (t, b))


def _int_power_text(unit: Unit, name: str, t: Ty, signed: bool) -> str:
    """A loop over the bits of the exponents, until those of all lanes are used up."""
    em = Emitter(unit)
    base = Num(em, t, "%a")
    negative = Num(em, t, "%b") < 0 if signed else Num(em, t, "%b").equals(0) & False
    start = negative.select(base.like(0), Num(em, t, "%b"))
    em.branch("loop")
    em.label("loop")
    result, square, left = em.register(), em.register(), em.register()
    phi = len(em.lines)
    em.lines.append("")
    n = Num(em, t, left)
    taken = (n & 1).equals(1).select(Num(em, t, result) * Num(em, t, square), Num(em, t, result))
    squared = Num(em, t, square) * Num(em, t, square)
    rest = n >> 1
    one = base.like(1).text
    em.lines[phi] = "\n".join(
        f"  {r} = phi {t.text} [ {first}, %entry ], [ {later.text}, %loop ]"
        for r, first, later in (
            (result, one, taken),
            (square, "%a", squared),
            (left, start.text, rest),
        )
    )
    more = rest.differs(0)
    some = more.text
    if t.lanes > 1:
        some = em.pure(f"call i1 @llvm.vector.reduce.or.{t.mask.suffix}({t.mask.text} {more.text})")
    em.branch_if(some, "loop", "done")
    em.label("done")
    unit_base = (base + 1 < 3) & (base + 1 >= 0) if signed else base.equals(1)
    parity = (Num(em, t, "%b") & 1).equals(1)
    of_unit = base.equals(0).select(base.like(0), parity.select(base, 1))
    inverse = unit_base.select(of_unit, base.like(0))
    value = negative.select(inverse, taken)
    em.do(f"ret {t.text} {value.text}")
    return em.function(
        f"define internal {t.text} @{name}({t.text} %a, {t.text} %b) {unit.attributes}"
    )
