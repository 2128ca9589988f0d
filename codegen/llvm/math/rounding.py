"""floor, ceil, trunc, round to even, fmod: instructions where there are some, else arithmetic."""

from __future__ import annotations

from ..emitter import Emitter
from ..types import F64, Ty
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


def fmod(em: Emitter, t: Ty, a: str, b: str) -> str:
    """The exact remainder with the sign of the dividend, lane by lane."""
    if "unity.fmod" not in em.unit.functions:
        em.unit.functions["unity.fmod"] = _FMOD.replace("<attributes>", em.unit.attributes)
    wide = t.of("double")
    x, y = (v if t == wide else em.pure(f"fpext {t.text} {v} to {wide.text}") for v in (a, b))
    if t.lanes == 1:
        result = em.call("unity.fmod", F64, (F64, x), (F64, y))
    else:
        result = "poison"
        for i in range(t.lanes):
            p = em.pure(f"extractelement {wide.text} {x}, i64 {i}")
            q = em.pure(f"extractelement {wide.text} {y}, i64 {i}")
            one = em.call("unity.fmod", F64, (F64, p), (F64, q))
            result = em.pure(f"insertelement {wide.text} {result}, double {one}, i64 {i}")
    return result if t == wide else em.pure(f"fptrunc {wide.text} {result} to {t.text}")


# Long division of the mantissas, a bit for each step of the exponents' difference.
_FMOD = """
define internal double @unity.fmod(double %x, double %y) <attributes> {
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
