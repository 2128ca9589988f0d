"""fmod: exact remainders of vectors by one division, of far quotients by long division.

``x - n * y`` is exact where n is the quotient truncated and one rounding does both operations: what
is left is a multiple of the last place of `y`, and less than `y`. A rounded quotient below 2**p, of
p bits, is at most one too large, so a negative rest lacks one `y`. Lanes whose quotient is larger
are divided out of line, bit by bit, one by one.
"""

from __future__ import annotations

from ..emitter import Emitter, Unit
from ..types import F64, Ty
from .lanes import Num
from .rounding import trunc

_EXACT_PRODUCT = 2.0**29
"""Whole numbers below this, times a float, are doubles: 29 bits and 24."""


def fmod(x: Num, y: Num) -> Num:
    """The exact remainder of ``x / y``, with the sign of `x`; NaN of infinities, and by zero."""
    if x.em.unit.abilities.fma:
        return _near_or_far(x, y, 2.0**24 if x.single else 2.0**53)
    if x.single:
        rest = _near_or_far(
            x.convert("fpext", "double"), y.convert("fpext", "double"), _EXACT_PRODUCT
        )
        return rest.convert("fptrunc", "float")
    em, t = x.em, x.t
    text = em.pure(f"call {t.text} @{_far(em.unit, t)}({t.text} {x.text}, {t.text} {y.text})")
    return Num(em, t, text)


def _near_or_far(x: Num, y: Num, limit: float) -> Num:
    """The remainder, where all quotients are below `limit` by one division each."""
    em, t = x.em, x.t
    slow, done = em.new_label("far"), em.new_label("divided")
    a, b = x.abs(), y.abs()
    quotient = a / b
    near = _near(a, b, quotient).with_sign_of(x)
    far = quotient >= limit  # false for NaN, whose rest is NaN as well
    some, before = far.text, em.block
    if t.lanes > 1:
        some = em.pure(f"call i1 @llvm.vector.reduce.or.{t.mask.suffix}({t.mask.text} {far.text})")
    em.branch_if(some, slow, done)
    em.label(slow)
    operands = f"{t.text} {x.text}, {t.text} {y.text}"
    exact = em.effect(f"call {t.text} @{_far(em.unit, t)}({operands})")
    em.branch(done)
    em.label(done)
    rest = em.effect(f"phi {t.text} [ {near.text}, %{before} ], [ {exact}, %{slow} ]")
    return Num(em, t, rest)


def _near(a: Num, b: Num, quotient: Num) -> Num:
    """What is left of magnitudes; less than the divisor, even an infinite one, is left as it is."""
    whole = trunc(quotient)
    fused = a.em.unit.abilities.fma
    rest = (-whole).call("fma", b, a) if fused else a - whole * b
    rest = (rest < 0.0).select(rest + b, rest)
    return (a < b).select(a, rest)


def _far(unit: Unit, t: Ty) -> str:
    """The name of the out-of-line remainder for a type."""
    name = f"unity.fmod.far.{t.suffix}"
    if name in unit.functions:
        return name
    if "unity.fmod.one" not in unit.functions:
        unit.functions["unity.fmod.one"] = _ONE.replace("<attributes>", unit.attributes)
    em = Emitter(unit)
    result = "poison"
    for i in range(t.lanes):
        x, y = (_lane(em, t, v, i) for v in ("%x", "%y"))
        one = em.pure(f"call double @unity.fmod.one(double {x}, double {y})")
        one = one if t.bits == 64 else em.pure(f"fptrunc double {one} to {t.element}")
        into = f"insertelement {t.text} {result}, {t.element} {one}, i64 {i}"
        result = one if t.lanes == 1 else em.pure(into)
    em.do(f"ret {t.text} {result}")
    unit.functions[name] = em.function(
        f"define internal {t.text} @{name}({t.text} %x, {t.text} %y) noinline {unit.attributes}"
    )
    return name


def _lane(em: Emitter, t: Ty, vector: str, lane: int) -> str:
    """One lane as a double."""
    one = vector if t.lanes == 1 else em.pure(f"extractelement {t.text} {vector}, i64 {lane}")
    return one if t.bits == 64 else em.pure(f"fpext {t.element} {one} to {F64.text}")


# Long division of the mantissas, a bit for each step of the exponents' difference.
_ONE = """
define internal double @unity.fmod.one(double %x, double %y) <attributes> {
entry:
  %xb = bitcast double %x to i64
  %yb = bitcast double %y to i64
  %a = and i64 %xb, 9223372036854775807
  %b = and i64 %yb, 9223372036854775807
  %sign = xor i64 %xb, %a
  %xbad = icmp uge i64 %a, 9218868437227405312
  %ynan = icmp ugt i64 %b, 9218868437227405312
  %yzero = icmp eq i64 %b, 0
  %bad1 = or i1 %xbad, %ynan
  %bad = or i1 %bad1, %yzero
  br i1 %bad, label %invalid, label %valid
invalid:
  ret double 0x7FF8000000000000
valid:
  %less = icmp ult i64 %a, %b
  br i1 %less, label %itself, label %divide
itself:
  ret double %x
divide:
  %af = and i64 %a, 4503599627370495
  %ae = lshr i64 %a, 52
  %anormal = icmp ne i64 %ae, 0
  %aimplied = or i64 %af, 4503599627370496
  %am0 = select i1 %anormal, i64 %aimplied, i64 %af
  %ae0 = select i1 %anormal, i64 %ae, i64 1
  %az = call i64 @llvm.ctlz.i64(i64 %am0, i1 false)
  %as = sub i64 %az, 11
  %am = shl i64 %am0, %as
  %aexp = sub i64 %ae0, %as
  %bf = and i64 %b, 4503599627370495
  %be = lshr i64 %b, 52
  %bnormal = icmp ne i64 %be, 0
  %bimplied = or i64 %bf, 4503599627370496
  %bm0 = select i1 %bnormal, i64 %bimplied, i64 %bf
  %be0 = select i1 %bnormal, i64 %be, i64 1
  %bz = call i64 @llvm.ctlz.i64(i64 %bm0, i1 false)
  %bs = sub i64 %bz, 11
  %bm = shl i64 %bm0, %bs
  %bexp = sub i64 %be0, %bs
  br label %step
step:
  %m = phi i64 [ %am, %divide ], [ %twice, %again ]
  %e = phi i64 [ %aexp, %divide ], [ %e1, %again ]
  %d = sub i64 %m, %bm
  %fits = icmp sge i64 %d, 0
  %rest = select i1 %fits, i64 %d, i64 %m
  %more = icmp sgt i64 %e, %bexp
  br i1 %more, label %again, label %done
again:
  %twice = shl i64 %rest, 1
  %e1 = sub i64 %e, 1
  br label %step
done:
  %none = icmp eq i64 %rest, 0
  br i1 %none, label %zero, label %some
zero:
  %z = bitcast i64 %sign to double
  ret double %z
some:
  %rz = call i64 @llvm.ctlz.i64(i64 %rest, i1 false)
  %rs = sub i64 %rz, 11
  %rm = shl i64 %rest, %rs
  %re = sub i64 %bexp, %rs
  %normal = icmp sgt i64 %re, 0
  %rf = and i64 %rm, 4503599627370495
  %rp = shl i64 %re, 52
  %rn = or i64 %rf, %rp
  %under = sub i64 1, %re
  %shift = select i1 %normal, i64 0, i64 %under
  %rd = lshr i64 %rm, %shift
  %r = select i1 %normal, i64 %rn, i64 %rd
  %rb = or i64 %r, %sign
  %result = bitcast i64 %rb to double
  ret double %result
}
"""
