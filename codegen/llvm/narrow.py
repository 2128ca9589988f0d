"""Floats narrower than 32 bits: from and to ``float``, by integer arithmetic on every target.

Rounding is to nearest even from the exact value; what does not fit becomes infinity, or NaN in the
types that have none (as ml_dtypes does). ``float16`` uses the target's instructions where it can,
and so does ``bfloat16`` in whole registers: those of AVX-512 give 0 for what is subnormal.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.dtype import DType

from .emitter import Emitter, float_text, int_text
from .types import Ty, memory_type


@dataclass(frozen=True, slots=True)
class _Format:
    """Layout of a narrow float.

    Attributes:
        exponent: Bits of the exponent.
        mantissa: Bits of the mantissa.
        bias: Of the exponent.
        infinite: The exponent of all ones means infinity and NaN.
        unsigned_zero: There is no negative zero; its code is the one NaN.
        finite: There is neither infinity nor NaN: what is too big becomes the largest number, and
            NaN a zero of the other sign (as in ml_dtypes).
    """

    exponent: int
    mantissa: int
    bias: int
    infinite: bool
    unsigned_zero: bool = False
    finite: bool = False

    @property
    def bits(self) -> int:
        """Width."""
        return 1 + self.exponent + self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def nan(self) -> int:
        """The code of a NaN."""
        if self.finite:
            return 0
        if self.unsigned_zero:
            return self.sign
        if self.infinite:
            return ((1 << self.exponent) - 1) << self.mantissa | 1 << (self.mantissa - 1)
        return self.sign - 1

    @property
    def overflow(self) -> int:
        """The least code, of a magnitude, that is too big to be finite."""
        if self.unsigned_zero or self.finite:
            return self.sign
        if self.infinite:
            return ((1 << self.exponent) - 1) << self.mantissa
        return self.sign - 1

    @property
    def too_big(self) -> int:
        """The code that overflow gives."""
        if self.finite:
            return self.sign - 1
        return self.overflow if self.infinite else self.nan


_FORMATS: dict[str, _Format] = {
    "float16": _Format(5, 10, 15, infinite=True),
    "float8_e4m3fn": _Format(4, 3, 7, infinite=False),
    "float8_e4m3fnuz": _Format(4, 3, 8, infinite=False, unsigned_zero=True),
    "float8_e5m2": _Format(5, 2, 15, infinite=True),
    "float8_e5m2fnuz": _Format(5, 2, 16, infinite=False, unsigned_zero=True),
    "float4_e2m1fn": _Format(2, 1, 1, infinite=False, finite=True),
}


def widen(em: Emitter, dtype: DType, bits: str) -> str:
    """The ``float`` of a narrow float's storage bits."""
    value = _widened(em, dtype, bits)
    em.narrow[dtype.name, value] = bits
    return value


def _widened(em: Emitter, dtype: DType, bits: str) -> str:
    stored = memory_type(dtype)
    wide, word = stored.of("float"), stored.of("i32")
    if dtype.name == "float16" and em.unit.abilities.half:
        half = em.pure(f"bitcast {stored.text} {bits} to {stored.of('half').text}")
        return em.pure(f"fpext {stored.of('half').text} {half} to {wide.text}")
    raw = em.pure(f"zext {stored.text} {bits} to {word.text}")
    if dtype.name == "bfloat16":
        raw = em.pure(f"shl {word.text} {raw}, {int_text(16, word)}")
        return em.pure(f"bitcast {word.text} {raw} to {wide.text}")
    return _widen(em, _FORMATS[dtype.name], raw, word, wide)


def _widen(em: Emitter, f: _Format, raw: str, word: Ty, wide: Ty) -> str:
    """Shift into place, then multiply by the biases' power of two: exact, subnormals too."""
    magnitude = em.pure(f"and {word.text} {raw}, {int_text(f.sign - 1, word)}")
    placed = em.pure(f"shl {word.text} {magnitude}, {int_text(23 - f.mantissa, word)}")
    small = em.pure(f"bitcast {word.text} {placed} to {wide.text}")
    value = em.pure(f"fmul {wide.text} {small}, {float_text(2.0 ** (127 - f.bias), wide)}")
    bits = em.pure(f"bitcast {wide.text} {value} to {word.text}")
    sign = em.pure(f"and {word.text} {raw}, {int_text(f.sign, word)}")
    sign = em.pure(f"shl {word.text} {sign}, {int_text(32 - f.bits, word)}")
    if f.finite:
        bits = em.pure(f"or {word.text} {bits}, {sign}")
        return em.pure(f"bitcast {word.text} {bits} to {wide.text}")
    if f.unsigned_zero:
        special = em.pure(f"icmp eq {word.text} {raw}, {int_text(f.sign, word)}")
        rest = int_text(0x7FC00000, word)
    elif f.infinite:
        special = em.pure(f"icmp uge {word.text} {magnitude}, {int_text(f.overflow, word)}")
        rest = em.pure(f"or {word.text} {placed}, {int_text(0x7F800000, word)}")
    else:
        special = em.pure(f"icmp eq {word.text} {magnitude}, {int_text(f.nan, word)}")
        rest = int_text(0x7FC00000, word)
    bits = em.pure(f"select {word.mask.text} {special}, {word.text} {rest}, {word.text} {bits}")
    bits = em.pure(f"or {word.text} {bits}, {sign}")
    return em.pure(f"bitcast {word.text} {bits} to {wide.text}")


def narrow(em: Emitter, dtype: DType, value: str) -> str:
    """The storage bits of the narrow float nearest to a ``float``."""
    known = em.narrow.get((dtype.name, value))
    if known is not None:
        return known
    stored = memory_type(dtype)
    wide, word = stored.of("float"), stored.of("i32")
    if dtype.name == "float16" and em.unit.abilities.half:
        half = em.pure(f"fptrunc {wide.text} {value} to {stored.of('half').text}")
        return em.pure(f"bitcast {stored.of('half').text} {half} to {stored.text}")
    if (
        dtype.name == "bfloat16"
        and "avx512bf16" in em.unit.abilities.dots
        and stored.lanes in (16, 32)
    ):
        return _narrow_by_instruction(em, value, stored)
    raw = em.pure(f"bitcast {wide.text} {value} to {word.text}")
    if dtype.name == "bfloat16":
        code = _narrow_bfloat(em, value, raw, word, wide)
    else:
        code = _narrow(em, _FORMATS[dtype.name], raw, word, wide)
    return em.pure(f"trunc {word.text} {code} to {stored.text}")


def _narrow_by_instruction(em: Emitter, value: str, stored: Ty) -> str:
    """AVX-512 BF16, which takes subnormal numbers for zeros."""
    lanes, pairs = stored.lanes, f"<{stored.lanes} x bfloat>"
    if lanes == 16:
        call = f"@llvm.x86.avx512bf16.cvtneps2bf16.512(<16 x float> {value})"
    else:
        high, low = (
            em.pure(
                f"shufflevector <32 x float> {value}, <32 x float> poison, <16 x i32> <"
                + ", ".join(f"i32 {i}" for i in range(first, first + 16))
                + ">"
            )
            for first in (16, 0)
        )
        call = f"@llvm.x86.avx512bf16.cvtne2ps2bf16.512(<16 x float> {high}, <16 x float> {low})"
    rounded = em.pure(f"call {pairs} {call}")
    return em.pure(f"bitcast {pairs} {rounded} to {stored.text}")


def _narrow_bfloat(em: Emitter, value: str, raw: str, word: Ty, wide: Ty) -> str:
    w = word.text
    high = em.pure(f"lshr {w} {raw}, {int_text(16, word)}")
    odd = em.pure(f"and {w} {high}, {int_text(1, word)}")
    rounded = em.pure(f"add {w} {raw}, {int_text(0x7FFF, word)}")
    rounded = em.pure(f"add {w} {rounded}, {odd}")
    rounded = em.pure(f"lshr {w} {rounded}, {int_text(16, word)}")
    quiet = em.pure(f"or {w} {high}, {int_text(0x40, word)}")
    nan = em.pure(f"fcmp uno {wide.text} {value}, {value}")
    return em.pure(f"select {word.mask.text} {nan}, {w} {quiet}, {w} {rounded}")


def _narrow(em: Emitter, f: _Format, raw: str, word: Ty, wide: Ty) -> str:
    w, mask = word.text, word.mask.text

    def number(value: int) -> str:
        return int_text(value, word)

    magnitude = em.pure(f"and {w} {raw}, {number(0x7FFFFFFF)}")
    # Normal results: round the mantissa in place, carrying into the exponent, and change the bias.
    shift = 23 - f.mantissa
    odd = em.pure(f"lshr {w} {magnitude}, {number(shift)}")
    odd = em.pure(f"and {w} {odd}, {number(1)}")
    normal = em.pure(f"add {w} {magnitude}, {number((1 << (shift - 1)) - 1)}")
    normal = em.pure(f"add {w} {normal}, {odd}")
    normal = em.pure(f"lshr {w} {normal}, {number(shift)}")
    normal = em.pure(f"sub {w} {normal}, {number((127 - f.bias) << f.mantissa)}")
    # Subnormal ones: adding a number whose last place is theirs makes the float unit round.
    magic = 2.0 ** (1 - f.bias - f.mantissa + 23)
    absolute = em.pure(f"bitcast {w} {magnitude} to {wide.text}")
    summed = em.pure(f"fadd {wide.text} {absolute}, {float_text(magic, wide)}")
    summed = em.pure(f"bitcast {wide.text} {summed} to {w}")
    tiny = em.pure(f"sub {w} {summed}, {number((127 + 1 - f.bias - f.mantissa + 23) << 23)}")
    least_normal = (127 + 1 - f.bias) << 23
    is_tiny = em.pure(f"icmp ult {w} {magnitude}, {number(least_normal)}")
    code = em.pure(f"select {mask} {is_tiny}, {w} {tiny}, {w} {normal}")
    # The greatest magnitude code compared signed: a huge input has not wrapped, it is below 2**31.
    over = em.pure(f"icmp sge {w} {code}, {number(f.overflow)}")
    code = em.pure(f"select {mask} {over}, {w} {number(f.too_big)}, {w} {code}")
    nan = em.pure(f"icmp ugt {w} {magnitude}, {number(0x7F800000)}")
    code = em.pure(f"select {mask} {nan}, {w} {number(f.nan)}, {w} {code}")
    sign = em.pure(f"lshr {w} {raw}, {number(32 - f.bits)}")
    sign = em.pure(f"and {w} {sign}, {number(f.sign)}")
    if f.finite:
        turned = em.pure(f"xor {w} {sign}, {number(f.sign)}")
        sign = em.pure(f"select {mask} {nan}, {w} {turned}, {w} {sign}")
    signed = em.pure(f"or {w} {code}, {sign}")
    if not f.unsigned_zero:
        return signed
    zero = em.pure(f"icmp eq {w} {code}, {number(0)}")
    return em.pure(f"select {mask} {zero}, {w} {number(0)}, {w} {signed}")


def round_to(em: Emitter, dtype: DType, value: str) -> str:
    """A ``float`` rounded to the nearest value of a narrow type."""
    return widen(em, dtype, narrow(em, dtype, value))


def halve_exactly(em: Emitter, value: str, wide: Ty) -> str:
    """A ``double`` as ``float`` rounded to odd, so that rounding once more is as if done once."""
    single, word = wide.of("float"), wide.of("i32")
    near = em.pure(f"fptrunc {wide.text} {value} to {single.text}")
    back = em.pure(f"fpext {single.text} {near} to {wide.text}")
    bits = em.pure(f"bitcast {single.text} {near} to {word.text}")
    above = em.pure(
        f"fcmp ogt {wide.text} {em.intrinsic('fabs', wide, back)}, "
        f"{em.intrinsic('fabs', wide, value)}"
    )
    inexact = em.pure(f"fcmp one {wide.text} {back}, {value}")
    down = em.pure(f"sext {word.mask.text} {above} to {word.text}")
    odd = em.pure(f"add {word.text} {bits}, {down}")
    odd = em.pure(f"or {word.text} {odd}, {int_text(1, word)}")
    bits = em.pure(f"select {word.mask.text} {inexact}, {word.text} {odd}, {word.text} {bits}")
    return em.pure(f"bitcast {word.text} {bits} to {single.text}")
