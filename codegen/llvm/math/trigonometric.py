"""sin, cos, tan: arguments of any size.

``x = n pi/2 + r``. Up to a million by subtracting n times parts of pi/2 (Cody and Waite), beyond
by multiplying with the needed bits of 2/pi (Payne and Hanek) lane by lane, out of line.
"""

from __future__ import annotations

from ..emitter import Unit
from ..types import Ty
from .coefficients import COS, SIN
from .exact import two_sum
from .lanes import Num

_MAGIC = 6755399441055744.0
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_PARTS = (
    1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32,
)  # fmt: skip
_FAR = 1e6
_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1"
    "921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ff"
    "de05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb"
    "5fb11f8d5d0856033046fc7b6babf0cfbc209af4361da9e391615ee61b08",
    16,
)
"""2/pi, 1344 bits."""


def _reduce(x: Num, single: bool) -> tuple[Num, Num, Num]:
    """The quadrant (in the low two bits), and what is left as a sum of two doubles.

    With `single` the first of them will be rounded to a float and the second is not used.
    """
    em, t = x.em, x.t
    slow, done = em.new_label("far"), em.new_label("reduced")
    near = _reduce_single(x) if single else _reduce_near(x)
    far = x.abs() >= _FAR
    some, before = far.text, em.block
    if t.lanes > 1:
        some = em.pure(f"call i1 @llvm.vector.reduce.or.{t.mask.suffix}({t.mask.text} {far.text})")
    em.branch_if(some, slow, done)
    em.label(slow)
    triple = f"{{ {t.int.text}, {t.text}, {t.text} }}"
    made = em.effect(f"call {triple} @{_far_function(em.unit, t)}({t.text} {x.text})")
    mixed: list[Num] = []
    for i, value in enumerate(near):
        exact = Num(em, value.t, em.effect(f"extractvalue {triple} {made}, {i}"))
        mixed.append(far.select(exact, value))
    em.branch(done)
    em.label(done)
    a, b, c = (
        Num(em, v.t, em.effect(f"phi {v.t.text} [ {v.text}, %{before} ], [ {w.text}, %{slow} ]"))
        for v, w in zip(near, mixed, strict=True)
    )
    return a, b, c


def _reduce_near(x: Num) -> tuple[Num, Num, Num]:
    shifted = x.times_plus(_TWO_OVER_PI, _MAGIC)
    n = -(shifted - _MAGIC)
    p1, p2, p3, p4 = _HALF_PI_PARTS
    high, low = two_sum(n.times_plus(p1, x), n * p2)
    low = low + n * p3 + n * p4
    r = high + low
    return shifted.bits(), r, (high - r) + low


def _reduce_single(x: Num) -> tuple[Num, Num, Num]:
    """The product with the first part is exact; of floats below a million at least 4e-9 is left."""
    shifted = x.times_plus(_TWO_OVER_PI, _MAGIC)
    n = -(shifted - _MAGIC)
    p1, p2, p3, p4 = _HALF_PI_PARTS
    r = n.times_plus(p3, n.times_plus(p2, n.times_plus(p1, x)))
    return shifted.bits(), r, n * p4


def _far_function(unit: Unit, t: Ty) -> str:
    """The name of the out-of-line reduction for a type."""
    name = f"unity.reduce.{t.suffix}"
    if name in unit.functions:
        return name
    words = [_BITS >> (1344 - 64 * (i + 1)) & (2**64 - 1) for i in range(21)]
    table = ", ".join(f"i64 {w}" for w in (0, *words, 0, 0, 0))
    unit.globals["unity.two_over_pi"] = (
        f"@unity.two_over_pi = internal constant [25 x i64] [{table}]"
    )
    if "unity.reduce.f64" not in unit.functions:
        unit.functions["unity.reduce.f64"] = _FAR_TEXT.replace("<attributes>", unit.attributes)
    if t.lanes == 1:
        return name
    triple = f"{{ {t.int.text}, {t.text}, {t.text} }}"
    lines = [f"define internal {triple} @{name}({t.text} %x) noinline {unit.attributes} {{"]
    kept = ["poison", "poison", "poison"]
    kinds = (t.int, t, t)
    for i in range(t.lanes):
        lines.append(f"  %x{i} = extractelement {t.text} %x, i64 {i}")
        lines.append(f"  %r{i} = call {{ i64, double, double }} @unity.reduce.f64(double %x{i})")
        for k, kind in enumerate(kinds):
            lines.append(f"  %e{i}.{k} = extractvalue {{ i64, double, double }} %r{i}, {k}")
            lines.append(
                f"  %v{i}.{k} = insertelement {kind.text} {kept[k]}, "
                f"{kind.element} %e{i}.{k}, i64 {i}"
            )
            kept[k] = f"%v{i}.{k}"
    result = "poison"
    for k, kind in enumerate(kinds):
        lines.append(f"  %s{k} = insertvalue {triple} {result}, {kind.text} {kept[k]}, {k}")
        result = f"%s{k}"
    lines += [f"  ret {triple} {result}", "}", ""]
    unit.functions[name] = "\n".join(lines)
    return name


def _sincos(x: Num) -> tuple[Num, Num, Num]:
    """The quadrant, and sine and cosine of what is left."""
    wide = x.convert("fpext", "double") if x.single else x
    quadrant, r, low = _reduce(wide, x.single)
    if x.single:
        quadrant, r = quadrant.convert("trunc", "i32"), r.convert("fptrunc", "float")
    z = r * r
    sine = (r * z).times_plus(z.horner(SIN[x.t.bits]), r)
    half = z * 0.5
    w = 1.0 - half
    cosine = w + (((1.0 - w) - half) + z * z * z.horner(COS[x.t.bits]))
    if not x.single:
        sine = sine + low * (1.0 - half)
        cosine = cosine - r * low
    return quadrant, sine, cosine


def _in_quadrant(quadrant: Num, even: Num, odd: Num) -> Num:
    """The one of two values that the quadrant asks for, negated in the upper two."""
    swap = (quadrant & 1).differs(0)
    bits = quadrant.t.bits
    sign = (quadrant & 2) << (bits - 2)
    return (swap.select(odd, even).bits() ^ sign).as_float()


def sin(x: Num) -> Num:
    """Sine: 1.5 ulp."""
    quadrant, sine, cosine = _sincos(x)
    y = _in_quadrant(quadrant, sine, cosine)
    return x.equals(0.0).select(x, y)


def cos(x: Num) -> Num:
    """Cosine: 1.5 ulp."""
    quadrant, sine, cosine = _sincos(x)
    return _in_quadrant(quadrant + 1, sine, cosine)


def tan(x: Num) -> Num:
    """Tangent: 3 ulp."""
    quadrant, sine, cosine = _sincos(x)
    swap = (quadrant & 1).differs(0)
    y = swap.select(-cosine, sine) / swap.select(sine, cosine)
    return x.equals(0.0).select(x, y)


# x = m 2**e. Of the product m 2**e 2/pi only the bits from 2 upwards matter less than four, so the
# product is taken with 192 bits of 2/pi from place e - 1 on: quadrant and 190 bits of fraction.
_FAR_TEXT = """
define internal { i64, double, double } @unity.reduce.f64(double %x) noinline <attributes> {
entry:
  %b = bitcast double %x to i64
  %a = and i64 %b, 9223372036854775807
  %finite = icmp ult i64 %a, 9218868437227405312
  br i1 %finite, label %go, label %bad
bad:
  ret { i64, double, double } { i64 0, double 0x7FF8000000000000, double 0.0 }
go:
  %ef = lshr i64 %a, 52
  %mf = and i64 %a, 4503599627370495
  %sub = icmp eq i64 %ef, 0
  %mi = or i64 %mf, 4503599627370496
  %m = select i1 %sub, i64 %mf, i64 %mi
  %en = select i1 %sub, i64 1, i64 %ef
  ; the window begins e - 2 bits into 2/pi, 64 zero bits lie before the table: e - 2 + 64
  %start0 = sub i64 %en, 1013
  %start = call i64 @llvm.smax.i64(i64 %start0, i64 0)
  %word = lshr i64 %start, 6
  %bit = and i64 %start, 63
  %p0 = getelementptr i64, ptr @unity.two_over_pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %t0 = load i64, ptr %p0
  %t1 = load i64, ptr %p1
  %t2 = load i64, ptr %p2
  %t3 = load i64, ptr %p3
  %w2 = call i64 @llvm.fshl.i64(i64 %t0, i64 %t1, i64 %bit)
  %w1 = call i64 @llvm.fshl.i64(i64 %t1, i64 %t2, i64 %bit)
  %w0 = call i64 @llvm.fshl.i64(i64 %t2, i64 %t3, i64 %bit)
  %mw = zext i64 %m to i128
  %w0w = zext i64 %w0 to i128
  %w1w = zext i64 %w1 to i128
  %q0 = mul i128 %mw, %w0w
  %q1 = mul i128 %mw, %w1w
  %q2 = mul i64 %m, %w2
  %q0h = lshr i128 %q0, 64
  %mid = add i128 %q0h, %q1
  %l1 = trunc i128 %mid to i64
  %midh = lshr i128 %mid, 64
  %c = trunc i128 %midh to i64
  %l2 = add i64 %q2, %c
  %l0 = trunc i128 %q0 to i64
  ; the top two bits are the quadrant, the rest a fraction of it
  %quad = lshr i64 %l2, 62
  %f2 = call i64 @llvm.fshl.i64(i64 %l2, i64 %l1, i64 2)
  %f1 = call i64 @llvm.fshl.i64(i64 %l1, i64 %l0, i64 2)
  %up = lshr i64 %f2, 63
  %n = add i64 %quad, %up
  %hi = sitofp i64 %f2 to double
  %back = fptosi double %hi to i64
  %lost = sub i64 %f2, %back
  %lostf = sitofp i64 %lost to double
  %f1f = uitofp i64 %f1 to double
  %f1s = fmul double %f1f, 0x3BF0000000000000
  %lo0 = fadd double %lostf, %f1s
  %his = fmul double %hi, 0x3BF0000000000000
  %los = fmul double %lo0, 0x3BF0000000000000
  ; times pi/2
  %c1 = fmul double %his, 134217729.0
  %c2 = fsub double %c1, %his
  %hh = fsub double %c1, %c2
  %hl = fsub double %his, %hh
  %r = fmul double %his, 0x3FF921FB54442D18
  %k1 = fmul double %hh, 0x3FF921FB58000000
  %k2 = fsub double %k1, %r
  %k3 = fmul double %hh, 0xBE4DDE9740000000
  %k4 = fadd double %k2, %k3
  %k5 = fmul double %hl, 0x3FF921FB58000000
  %k6 = fadd double %k4, %k5
  %k7 = fmul double %hl, 0xBE4DDE9740000000
  %k8 = fadd double %k6, %k7
  %k9 = fmul double %his, 0x3C91A62633145C07
  %k10 = fadd double %k8, %k9
  %k11 = fmul double %los, 0x3FF921FB54442D18
  %k12 = fadd double %k10, %k11
  %sum = fadd double %r, %k12
  %d1 = fsub double %r, %sum
  %tail = fadd double %d1, %k12
  %negative = icmp slt i64 %b, 0
  %rn = fneg double %sum
  %tn = fneg double %tail
  %nn = sub i64 0, %n
  %rs = select i1 %negative, double %rn, double %sum
  %ts = select i1 %negative, double %tn, double %tail
  %ns = select i1 %negative, i64 %nn, i64 %n
  %o0 = insertvalue { i64, double, double } poison, i64 %ns, 0
  %o1 = insertvalue { i64, double, double } %o0, double %rs, 1
  %o2 = insertvalue { i64, double, double } %o1, double %ts, 2
  ret { i64, double, double } %o2
}
"""
