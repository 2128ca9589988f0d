"""Binary operations and comparisons on registers: wrapping, Python's division, NaN rules."""

from __future__ import annotations

from typing import Literal

from unity.ir.dtype import DType
from unity.ir.prim_expr import BinaryOp, CompareOp

from .emitter import Emitter, int_text
from .math.quotient import by_doubles, truncated
from .narrow import round_to
from .types import Ty, is_narrow, value_type

_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INT_OPS = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT_TESTS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INT_TESTS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def float_binary(em: Emitter, op: BinaryOp, dtype: DType, a: str, b: str, flags: str) -> str:
    """Arithmetic on floats; `flags` are fast-math flags."""
    t = value_type(dtype)
    match op:
        case "min" | "max":
            return minmax(em, op, t, a, b)
        case "add" | "sub" | "mul" | "div":
            value = em.pure(f"{_FLOAT_OPS[op]} {flags}{t.text} {a}, {b}")
        case _:
            raise AssertionError(f"{op} of {dtype}")
    return round_to(em, dtype, value) if is_narrow(dtype) else value


def minmax(em: Emitter, op: BinaryOp, t: Ty, a: str, b: str) -> str:
    """The smaller or greater float; NaN when either is NaN."""
    if em.unit.abilities.nan_minmax:
        return em.intrinsic("minimum" if op == "min" else "maximum", t, a, b)
    test = "olt" if op == "min" else "ogt"
    if b[0] != "%":
        # `select(a < b, a, b)` is one instruction that gives b for NaN: let the constant be a.
        a, b = b, a
        if _is_nan(a):
            return a
    if a[0] == "%" and t.lanes > 1 and em.unit.abilities.masks:
        # `maxps` where the second is no NaN, else the second. What a sum so far is compared with
        # is the second, often for several sums: it is tested once, and none waits for the test.
        less = em.pure(f"fcmp {test} {t.text} {b}, {a}")
        value = em.pure(f"select {t.mask.text} {less}, {t.text} {b}, {t.text} {a}")
        number = em.pure(f"fcmp ord {t.text} {b}, {b}")
        return em.pure(f"select {t.mask.text} {number}, {t.text} {value}, {t.text} {b}")
    if a[0] == "%" and em.unit.abilities.arch.startswith(("x86", "i")):
        # `maxps`, and a repair where the first is NaN; LLVM has worse ideas of two selects.
        return em.intrinsic("minimum" if op == "min" else "maximum", t, a, b, flags="nsz ")
    less = em.pure(f"fcmp {test} {t.text} {a}, {b}")
    value = em.pure(f"select {t.mask.text} {less}, {t.text} {a}, {t.text} {b}")
    if a[0] != "%":
        return value
    nan = em.pure(f"fcmp uno {t.text} {a}, {a}")
    return em.pure(f"select {t.mask.text} {nan}, {t.text} {a}, {t.text} {value}")


def passing_nan(
    em: Emitter, op: Literal["fmin", "fmax"], t: Ty, a: str, b: str, numbers: tuple[bool, ...]
) -> str:
    """The smaller or greater float; where one is NaN, the other.

    Args:
        em: Where to emit.
        op: The operation.
        t: The operands' type.
        a: The first.
        b: The second.
        numbers: Whether each is certainly no NaN.
    """
    if em.unit.abilities.nan_minmax or not any(numbers):
        return em.intrinsic("minnum" if op == "fmin" else "maxnum", t, a, b)
    first, _ = numbers
    number, other = (a, b) if first else (b, a)
    # `maxps`, which gives the second where either is NaN.
    beats = em.pure(f"fcmp {'olt' if op == 'fmin' else 'ogt'} {t.text} {other}, {number}")
    return em.pure(f"select {t.mask.text} {beats}, {t.text} {other}, {t.text} {number}")


def _is_nan(constant: str) -> bool:
    """Whether a constant's text, `float_text`, is a NaN's: an exponent of ones, and a fraction."""
    _, hexadecimal, digits = constant.rpartition("0x")
    bits = int(digits.rstrip(")"), 16) if hexadecimal else 0
    return bits & (1 << 63) - 1 > 0x7FF << 52


def int_binary(
    em: Emitter,
    op: BinaryOp,
    dtype: DType,
    a: str,
    b: str,
    *,
    nonnegative: bool = False,
    safe: bool = False,
) -> str:
    """Arithmetic on integers.

    Args:
        em: Where to emit.
        op: The operation.
        dtype: Of the operands.
        a: The first.
        b: The second.
        nonnegative: Both operands of a division are.
        safe: A divisor is neither 0 nor -1.
    """
    t = value_type(dtype)
    signed = dtype.kind == "int"
    match op:
        case "add" | "sub" | "mul" | "and" | "or" | "xor":
            value = em.pure(f"{_INT_OPS[op]} {t.text} {a}, {b}")
        case "min" | "max":
            return em.intrinsic(f"{'s' if signed else 'u'}{op}", t, a, b)
        case "shl" | "shr":
            value = _shift(em, op, t, a, b, signed=signed, bits=dtype.bits)
        case "floordiv" | "floormod" | "truncdiv" | "truncmod":
            value = _divide(em, op, t, a, b, signed=signed and not nonnegative, safe=safe)
        case _:
            raise AssertionError(f"{op} of {dtype}")
    return in_range(em, dtype, value)


def in_range(em: Emitter, dtype: DType, value: str) -> str:
    """An integer of 2 or 4 bits brought back into range; others as they are."""
    if dtype.bits >= 8:
        return value
    t = value_type(dtype)
    if dtype.kind == "uint":
        return em.pure(f"and {t.text} {value}, {int_text((1 << dtype.bits) - 1, t)}")
    above = int_text(8 - dtype.bits, t)
    high = em.pure(f"shl {t.text} {value}, {above}")
    return em.pure(f"ashr {t.text} {high}, {above}")


def _shift(em: Emitter, op: BinaryOp, t: Ty, a: str, b: str, *, signed: bool, bits: int) -> str:
    """A shift by any amount: past the width gives zero, or the sign on the way right."""
    last = int_text(bits - 1, t)
    if op == "shr" and signed:
        amount = em.intrinsic("umin", t, b, last)
        return em.pure(f"ashr {t.text} {a}, {amount}")
    fits = em.pure(f"icmp ule {t.text} {b}, {last}")
    amount = em.pure(f"select {t.mask.text} {fits}, {t.text} {b}, {t.text} {int_text(0, t)}")
    shifted = em.pure(f"{'shl' if op == 'shl' else 'lshr'} {t.text} {a}, {amount}")
    return em.pure(f"select {t.mask.text} {fits}, {t.text} {shifted}, {t.text} {int_text(0, t)}")


def _constant(text: str) -> int | None:
    """The integer of a constant's text, a splat included."""
    if text[0] == "%":
        return None
    digits = text[text.rindex(" ") + 1 : -1] if text.startswith("splat") else text
    return int(digits) if digits.lstrip("-").isdigit() else None


def _divide(em: Emitter, op: BinaryOp, t: Ty, a: str, b: str, *, signed: bool, safe: bool) -> str:
    """Division that cannot trap: by zero gives zero, the least integer by -1 wraps."""
    floor, want_quotient = op.startswith("floor"), op.endswith("div")
    divisor = _constant(b)
    if divisor is not None and divisor > 0:
        return _divide_by(em, t, a, b, divisor, signed, floor, want_quotient)
    if safe:
        return _divide_plain(em, t, a, b, signed, floor, want_quotient)
    zero, one = int_text(0, t), int_text(1, t)
    none = em.pure(f"icmp eq {t.text} {b}, {zero}")
    minus = em.pure(f"icmp eq {t.text} {b}, {int_text(-1, t)}")
    unsafe = em.pure(f"or {t.mask.text} {none}, {minus}") if signed else none
    other = em.pure(f"select {t.mask.text} {unsafe}, {t.text} {one}, {t.text} {b}")
    value = _divide_plain(em, t, a, other, signed, floor, want_quotient)
    if signed and want_quotient:
        negated = em.pure(f"sub {t.text} {zero}, {a}")
        value = em.pure(f"select {t.mask.text} {minus}, {t.text} {negated}, {t.text} {value}")
    return em.pure(f"select {t.mask.text} {none}, {t.text} {zero}, {t.text} {value}")


def _divide_by(
    em: Emitter, t: Ty, a: str, b: str, divisor: int, signed: bool, floor: bool, quotient: bool
) -> str:
    """Division by a positive constant."""
    if divisor & (divisor - 1) == 0 and (floor or not signed):
        if quotient:
            shift = int_text(divisor.bit_length() - 1, t)
            return em.pure(f"{'ashr' if signed else 'lshr'} {t.text} {a}, {shift}")
        return em.pure(f"and {t.text} {a}, {int_text(divisor - 1, t)}")
    return _divide_plain(em, t, a, b, signed, floor, quotient)


def _divide_plain(
    em: Emitter, t: Ty, a: str, b: str, signed: bool, floor: bool, quotient: bool
) -> str:
    """Division where no operand traps."""
    if not signed:
        return em.pure(f"{'udiv' if quotient else 'urem'} {t.text} {a}, {b}")
    fast = _constant(b) is None and by_doubles(em, t, signed)
    if fast:
        whole, left = truncated(em, t, a, b)
        if not floor:
            return whole if quotient else left
    elif not floor:
        return em.pure(f"{'sdiv' if quotient else 'srem'} {t.text} {a}, {b}")
    else:
        whole, left = "", em.pure(f"srem {t.text} {a}, {b}")
    zero = int_text(0, t)
    differ = em.pure(f"xor {t.text} {left}, {b}")
    opposite = em.pure(f"icmp slt {t.text} {differ}, {zero}")
    some = em.pure(f"icmp ne {t.text} {left}, {zero}")
    fix = em.pure(f"and {t.mask.text} {opposite}, {some}")
    if quotient:
        whole = whole or em.pure(f"sdiv {t.text} {a}, {b}")
        down = em.pure(f"sext {t.mask.text} {fix} to {t.text}")
        return em.pure(f"add {t.text} {whole}, {down}")
    up = em.pure(f"add {t.text} {left}, {b}")
    return em.pure(f"select {t.mask.text} {fix}, {t.text} {up}, {t.text} {left}")


def bool_binary(em: Emitter, op: BinaryOp, t: Ty, a: str, b: str) -> str:
    """Arithmetic on bools, as numpy does it: add is or, multiply is and."""
    match op:
        case "and" | "mul" | "min":
            return em.pure(f"and {t.text} {a}, {b}")
        case "or" | "add" | "max":
            return em.pure(f"or {t.text} {a}, {b}")
        case "xor":
            return em.pure(f"xor {t.text} {a}, {b}")
        case _:
            raise AssertionError(f"{op} of bool")


def compare(em: Emitter, op: CompareOp, dtype: DType, a: str, b: str) -> str:
    """A comparison; with NaN every one but ``ne`` is false."""
    t = value_type(dtype)
    if dtype.is_float:
        return em.pure(f"fcmp {_FLOAT_TESTS[op]} {t.text} {a}, {b}")
    test = _INT_TESTS[op]
    if op not in ("eq", "ne"):
        test = ("s" if dtype.kind == "int" else "u") + test
    return em.pure(f"icmp {test} {t.text} {a}, {b}")
