"""Quotients of vectors of integers, by floating point: machines divide no vectors of integers.

A double's quotient of 32-bit integers is right once it is truncated: both are exact, and what lies
below a whole number lies below it by more than a rounding. One of 64-bit integers is wrong by a few
thousand at most, so what is left is divided again; the second time it is wrong by one at most,
which the rest tells. Products and differences wrap, and the rests in between are small.
"""

from __future__ import annotations

from ..emitter import Emitter, float_text, int_text
from ..types import Ty

BELOW_LIMIT = float(2**63 - 2**10)
"""The largest double that is an int64."""


def by_doubles(em: Emitter, t: Ty, signed: bool) -> bool:
    """Whether quotients are had so: where conversions of such vectors are instructions."""
    able = em.unit.abilities
    narrow = t.bits == 32 and able.arch == "x86_64"  # others divide numbers one by one fast enough
    return signed and t.lanes > 1 and (narrow or (t.bits == 64 and able.wide_integers))


def truncated(em: Emitter, t: Ty, a: str, b: str) -> tuple[str, str]:
    """The quotient, towards zero, and the rest; no divisor is 0 or -1."""
    d = t.of("double")
    divisor = em.pure(f"sitofp {t.text} {b} to {d.text}")
    if t.bits == 32:
        whole = em.pure(f"sitofp {t.text} {a} to {d.text}")
        real = em.pure(f"fdiv {d.text} {whole}, {divisor}")
        quotient = em.pure(f"fptosi {d.text} {real} to {t.text}")
        return quotient, _rest(em, t, a, b, quotient)
    inverse = em.pure(f"fdiv {d.text} {float_text(1.0, d)}, {divisor}")
    first = _times(em, t, d, a, inverse)
    left = _rest(em, t, a, b, first)
    second = _times(em, t, d, left, inverse)
    quotient = em.pure(f"add {t.text} {first}, {second}")
    return _corrected(em, t, a, b, quotient, _rest(em, t, left, b, second))


def _times(em: Emitter, t: Ty, d: Ty, a: str, inverse: str) -> str:
    """A quotient about right."""
    whole = em.pure(f"sitofp {t.text} {a} to {d.text}")
    real = em.pure(f"fmul {d.text} {whole}, {inverse}")
    large = em.pure(f"fcmp ogt {d.text} {real}, {float_text(BELOW_LIMIT, d)}")
    least = em.pure(
        f"select {d.mask.text} {large}, {d.text} {float_text(BELOW_LIMIT, d)}, {d.text} {real}"
    )
    return em.pure(f"fptosi {d.text} {least} to {t.text}")


def _rest(em: Emitter, t: Ty, a: str, b: str, quotient: str) -> str:
    return em.pure(f"sub {t.text} {a}, {em.pure(f'mul {t.text} {quotient}, {b}')}")


def _corrected(em: Emitter, t: Ty, a: str, b: str, quotient: str, rest: str) -> tuple[str, str]:
    """A quotient that is wrong by one at most, and its rest, made right."""
    zero, sign = int_text(0, t), int_text(t.bits - 1, t)
    one = em.pure(f"or {t.text} {_shifted(em, t, a, b, sign)}, {int_text(1, t)}")
    # The rest has the sign of what is divided, or the quotient is too far from zero.
    other = em.pure(f"icmp slt {t.text} {em.pure(f'xor {t.text} {rest}, {a}')}, {zero}")
    some = em.pure(f"icmp ne {t.text} {rest}, {zero}")
    over = em.pure(f"and {t.mask.text} {other}, {some}")
    size, most = (
        em.pure(f"call {t.text} @llvm.abs.{t.suffix}({t.text} {x}, i1 false)") for x in (rest, b)
    )
    short = em.pure(f"icmp uge {t.text} {size}, {most}")
    step = em.pure(f"select {t.mask.text} {short}, {t.text} {one}, {t.text} {zero}")
    back = em.pure(f"sub {t.text} {zero}, {one}")
    step = em.pure(f"select {t.mask.text} {over}, {t.text} {back}, {t.text} {step}")
    right = em.pure(f"add {t.text} {quotient}, {step}")
    return right, _rest(em, t, rest, b, step)


def _shifted(em: Emitter, t: Ty, a: str, b: str, sign: str) -> str:
    """All ones where two numbers have different signs, else zero."""
    return em.pure(f"ashr {t.text} {em.pure(f'xor {t.text} {a}, {b}')}, {sign}")
