"""Intrinsics by name: what each becomes on registers.

A function of some size is one internal LLVM function a module and vector width, inlined by LLVM;
`ULPS` is the documented bound of its error, which the tests hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from unity.errors import UnsupportedError
from unity.ir.dtype import DType

from ..arithmetic import in_range
from ..emitter import Emitter, Unit, int_text
from ..narrow import round_to
from ..types import Ty, is_narrow, value_type
from . import error, exponential, inverse, logarithm, power, remainder, rounding, trigonometric
from .lanes import Num

Formula: TypeAlias = Callable[..., Num]

EXP_NONPOSITIVE = "exp_nonpositive"
"""What ``exp`` is called where its argument is certainly not above zero."""
_FUNCTIONS: Mapping[str, tuple[Formula, int]] = {
    "exp": (exponential.exp, 1),
    EXP_NONPOSITIVE: (exponential.exp_nonpositive, 1),
    "exp2": (exponential.exp2, 1),
    "expm1": (exponential.expm1, 1),
    "sinh": (exponential.sinh, 1),
    "cosh": (exponential.cosh, 1),
    "tanh": (exponential.tanh, 1),
    "sigmoid": (exponential.sigmoid, 1),
    "log": (logarithm.log, 1),
    "log2": (logarithm.log2, 1),
    "log10": (logarithm.log10, 1),
    "log1p": (logarithm.log1p, 1),
    "asinh": (logarithm.asinh, 1),
    "acosh": (logarithm.acosh, 1),
    "atanh": (logarithm.atanh, 1),
    "sin": (trigonometric.sin, 1),
    "cos": (trigonometric.cos, 1),
    "tan": (trigonometric.tan, 1),
    "asin": (inverse.asin, 1),
    "acos": (inverse.acos, 1),
    "atan": (inverse.atan, 1),
    "atan2": (inverse.atan2, 2),
    "erf": (error.erf, 1),
    "pow": (power.power, 2),
    "fmod": (remainder.fmod, 2),
}
"""Functions of floats that are worth a call: their rule and how many arguments they take."""

_INLINE: Mapping[str, Formula] = {
    "sqrt": Num.sqrt,
    "rsqrt": lambda x: 1.0 / x.sqrt(),
    "abs": Num.abs,
    "floor": rounding.floor,
    "ceil": rounding.ceil,
    "round": rounding.round_even,
    "trunc": rounding.trunc,
    "fma": Num.times_plus,
    "sign": lambda x: _sign(x),
}
"""Functions of floats that are a few instructions."""

_TESTS: Mapping[str, Formula] = {
    "isnan": Num.is_nan,
    "isinf": lambda x: x.abs().equals(float("inf")),
    "isfinite": lambda x: x.abs() < float("inf"),
}
"""Predicates of floats."""

ULPS: Mapping[str, tuple[float, float]] = {
    "exp": (1.1, 1.1),
    "exp2": (1.1, 1.1),
    "expm1": (2.0, 2.0),
    "sinh": (3.0, 3.0),
    "cosh": (3.0, 3.0),
    "tanh": (5.0, 3.0),
    "sigmoid": (2.5, 2.5),
    "log": (1.0, 1.0),
    "log2": (2.0, 2.0),
    "log10": (2.0, 2.0),
    "log1p": (2.0, 2.0),
    "asinh": (4.0, 4.0),
    "acosh": (4.0, 4.0),
    "atanh": (3.0, 3.0),
    "sin": (1.5, 1.5),
    "cos": (1.5, 1.5),
    "tan": (3.0, 3.0),
    "asin": (2.5, 2.5),
    "acos": (2.0, 2.0),
    "atan": (2.0, 2.0),
    "atan2": (2.5, 2.5),
    "erf": (6.0, 3.0),
    "pow": (1.0, 2.0),
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
}
"""Greatest error in units of the last place, for float and for double."""


def intrinsic(em: Emitter, name: str, dtype: DType, args: list[str]) -> str:
    """The result of a named function on values of one dtype.

    Raises:
        UnsupportedError: The function has no code for this dtype.
    """
    t = value_type(dtype)
    if name in ("likely", "prefetch"):
        return args[0]
    if dtype.is_float:
        return _of_floats(em, name, dtype, t, args)
    if dtype.is_int:
        return _of_ints(em, name, dtype, t, args)
    raise _unsupported(name, dtype)


def _of_floats(em: Emitter, name: str, dtype: DType, t: Ty, args: list[str]) -> str:
    numbers = [Num(em, t, a) for a in args]
    if name in _TESTS:
        return _TESTS[name](*numbers).text
    if name in _INLINE:
        value = _INLINE[name](*numbers).text
    elif name in _FUNCTIONS:
        value = em.call(_defined(em.unit, name, t), t, *((t, a) for a in args))
    elif name == "bits" and not is_narrow(dtype):
        return em.pure(f"bitcast {t.text} {args[0]} to {t.int.text}")
    else:
        raise _unsupported(name, dtype)
    return round_to(em, dtype, value) if is_narrow(dtype) else value


def _of_ints(em: Emitter, name: str, dtype: DType, t: Ty, args: list[str]) -> str:
    x = Num(em, t, args[0])
    signed = dtype.kind == "int"
    match name:
        case "abs":
            value = em.pure(
                f"call {t.text} @llvm.abs.{t.suffix}({t.text} {args[0]}, i1 false)"
            ) if signed else args[0]  # fmt: skip
        case "sign":
            if not signed:
                return em.intrinsic("umin", t, args[0], int_text(1, t))
            high = em.intrinsic("smin", t, args[0], int_text(1, t))
            return em.intrinsic("smax", t, high, int_text(-1, t))
        case "of_bits" if dtype.bits in (32, 64):
            return x.as_float().text
        case "popcount":
            own = x.like((1 << dtype.bits) - 1) & x if dtype.bits < 8 else x
            value = own.call("ctpop").text
        case "clz":
            own = x.like((1 << dtype.bits) - 1) & x if dtype.bits < 8 else x
            call = f"call {t.text} @llvm.ctlz.{t.suffix}({t.text} {own.text}, i1 false)"
            value = (Num(em, t, em.pure(call)) - x.like(t.bits - dtype.bits)).text
        case "pow":
            value = power.int_power(em, t, signed, args[0], args[1])
        case _:
            raise _unsupported(name, dtype)
    return in_range(em, dtype, value)


def _sign(x: Num) -> Num:
    """-1, 0 or 1; NaN for NaN."""
    one = x.like(1.0).with_sign_of(x)
    return (x.abs() > 0.0).select(one, x + 0.0)  # which makes -0 the zero that numpy gives


def _defined(unit: Unit, name: str, t: Ty) -> str:
    """The symbol of a function on a type, defined in the module on first use."""
    symbol = f"unity.{name}.{t.suffix}"
    if symbol not in unit.functions:
        rule, arity = _FUNCTIONS[name]
        em = Emitter(unit)
        result = rule(*(Num(em, t, f"%x{i}") for i in range(arity)))
        em.do(f"ret {t.text} {result.text}")
        params = ", ".join(f"{t.text} %x{i}" for i in range(arity))
        unit.functions[symbol] = em.function(
            f"define internal {t.text} @{symbol}({params}) alwaysinline {unit.attributes}"
        )
    return symbol


def _unsupported(name: str, dtype: DType) -> UnsupportedError:
    return UnsupportedError(f"no code for the intrinsic {name} on {dtype}", [f"{name}({dtype})"])
