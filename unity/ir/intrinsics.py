"""The named scalar functions that an `Intrinsic` may call: one table, read by every layer.

The interpreter runs `evaluate`, te and the parser read `arity` and `result_dtype`, the code
generator has a row of its own for each name. Evaluation is numpy's, element by element, so a row
holds for scalars and for vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, Array, DType, dtype

Accepts: TypeAlias = Literal["float", "int", "number", "any"]
Gives: TypeAlias = Literal["same", "bool", "bits", "float"]


@dataclass(frozen=True, slots=True)
class IntrinsicDef:
    """A scalar function.

    Attributes:
        name: Its name, as in ``T.exp``.
        arity: How many arguments, all of one dtype.
        evaluate: What it means, on numpy arrays.
        doc: The same in words, of arguments x, y, z.
        accepts: The kinds of dtype it is defined on (``number`` is floats and integers).
        gives: The dtype of the result: the arguments', bool, or the integer or float of as many
            bits.
    """

    name: str
    arity: int
    evaluate: Callable[..., Array]
    doc: str
    accepts: Accepts = "float"
    gives: Gives = "same"

    def result_dtype(self, args: Sequence[DType]) -> DType:
        """The dtype of a call with arguments of these dtypes.

        Raises:
            UnityError: The number or the dtypes of the arguments do not fit.
        """
        if len(args) != self.arity:
            raise UnityError(f"{self.name} takes {self.arity} arguments, got {len(args)}")
        first = args[0]
        if any(a != first for a in args):
            raise UnityError(
                f"{self.name} takes arguments of one dtype, got {', '.join(map(str, args))}",
                hint="cast them to a common dtype",
            )
        fits = {
            "float": first.is_float,
            "int": first.is_int,
            "number": first.is_float or first.is_int,
            "any": True,
        }
        if not fits[self.accepts]:
            raise UnityError(
                f"{self.name} is defined on {self.accepts} dtypes, got {first}",
                hint="cast the argument first",
            )
        match self.gives:
            case "bool":
                return BOOL.with_lanes(first.lanes)
            case "bits":
                if first.element not in _BITS:
                    raise UnityError(
                        f"{self.name} is defined on float32 and float64, got {first}",
                        hint="cast the argument first",
                    )
                return _BITS[first.element].with_lanes(first.lanes)
            case "float":
                found = next((f for f, i in _BITS.items() if i == first.element), None)
                if found is None:
                    raise UnityError(
                        f"{self.name} is defined on int32 and int64, got {first}",
                        hint="cast the argument first",
                    )
                return found.with_lanes(first.lanes)
            case "same":
                return first


_BITS = {FLOAT32: INT32, FLOAT64: INT64}
"""The integers that hold the bits of floats."""


def _bits(x: Array) -> Array:
    values = np.asarray(x)
    return values.view(np.dtype(f"int{8 * values.itemsize}"))


def _of_bits(x: Array) -> Array:
    values = np.asarray(x)
    return values.view(np.dtype(f"float{8 * values.itemsize}"))


def _in_double(fn: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of `math` applied to each element, rounded back to the argument's dtype."""

    def apply(x: Array) -> Array:
        values = np.asarray(x)
        flat = [fn(v) for v in values.astype(np.float64).ravel().tolist()]
        return np.asarray(flat, dtype=np.float64).reshape(values.shape).astype(values.dtype)

    return apply


def _sigmoid(x: Array) -> Array:
    values = np.asarray(x)
    exact = values.astype(np.float64)
    with np.errstate(over="ignore"):
        return (1.0 / (1.0 + np.exp(-exact))).astype(values.dtype)


def _rsqrt(x: Array) -> Array:
    values = np.asarray(x)
    with np.errstate(divide="ignore"):
        return (1.0 / np.sqrt(values.astype(np.float64))).astype(values.dtype)


def _fma(a: Array, b: Array, c: Array) -> Array:
    return np.asarray(np.add(np.multiply(a, b), c))


def _leading_zeros(x: Array) -> Array:
    values = np.asarray(x)
    width = dtype(values.dtype).bits
    flat = [width - (int(v) & ((1 << width) - 1)).bit_length() for v in values.ravel()]
    return np.asarray(flat, np.int64).reshape(values.shape).astype(values.dtype)


def _same(x: Array) -> Array:
    return np.asarray(x)


_ROWS: tuple[IntrinsicDef, ...] = (
    IntrinsicDef("exp", 1, np.exp, "e to the power of x"),
    IntrinsicDef("exp2", 1, np.exp2, "2 to the power of x"),
    IntrinsicDef("expm1", 1, np.expm1, "e to the power of x, minus 1, exact near 0"),
    IntrinsicDef("log", 1, np.log, "The natural logarithm"),
    IntrinsicDef("log2", 1, np.log2, "The logarithm to base 2"),
    IntrinsicDef("log10", 1, np.log10, "The logarithm to base 10"),
    IntrinsicDef("log1p", 1, np.log1p, "The natural logarithm of 1 + x, exact near 0"),
    IntrinsicDef("sqrt", 1, np.sqrt, "The square root"),
    IntrinsicDef("rsqrt", 1, _rsqrt, "1 over the square root"),
    IntrinsicDef("sin", 1, np.sin, "The sine of an angle in radians"),
    IntrinsicDef("cos", 1, np.cos, "The cosine of an angle in radians"),
    IntrinsicDef("tan", 1, np.tan, "The tangent of an angle in radians"),
    IntrinsicDef("asin", 1, np.arcsin, "The angle of a sine"),
    IntrinsicDef("acos", 1, np.arccos, "The angle of a cosine"),
    IntrinsicDef("atan", 1, np.arctan, "The angle of a tangent"),
    IntrinsicDef("atan2", 2, np.arctan2, "The angle of the point with ordinate x and abscissa y"),
    IntrinsicDef("sinh", 1, np.sinh, "The hyperbolic sine"),
    IntrinsicDef("cosh", 1, np.cosh, "The hyperbolic cosine"),
    IntrinsicDef("tanh", 1, np.tanh, "The hyperbolic tangent"),
    IntrinsicDef("asinh", 1, np.arcsinh, "The inverse of sinh"),
    IntrinsicDef("acosh", 1, np.arccosh, "The inverse of cosh"),
    IntrinsicDef("atanh", 1, np.arctanh, "The inverse of tanh"),
    IntrinsicDef("erf", 1, _in_double(math.erf), "The error function"),
    IntrinsicDef("sigmoid", 1, _sigmoid, "1 / (1 + exp(-x))"),
    IntrinsicDef("floor", 1, np.floor, "The greatest integer not above x"),
    IntrinsicDef("ceil", 1, np.ceil, "The least integer not below x"),
    IntrinsicDef("round", 1, np.rint, "The nearest integer, half to even as in ONNX and numpy"),
    IntrinsicDef("trunc", 1, np.trunc, "The integer part"),
    IntrinsicDef("abs", 1, np.abs, "The absolute value", "number"),
    IntrinsicDef("sign", 1, np.sign, "-1, 0 or 1", "number"),
    IntrinsicDef("pow", 2, np.power, "x to the power of y", "number"),
    IntrinsicDef("fmod", 2, np.fmod, "The remainder of x / y, with the sign of x", "float"),
    IntrinsicDef("fma", 3, _fma, "x * y + z, rounded once or twice as the code generator likes"),
    IntrinsicDef("isnan", 1, np.isnan, "Whether x is not a number", "float", "bool"),
    IntrinsicDef("isinf", 1, np.isinf, "Whether x is infinite", "float", "bool"),
    IntrinsicDef(
        "isfinite", 1, np.isfinite, "Whether x is a number, not infinite", "float", "bool"
    ),
    IntrinsicDef("popcount", 1, np.bitwise_count, "How many bits are set", "int"),
    IntrinsicDef("clz", 1, _leading_zeros, "How many bits above the first set one are not", "int"),
    IntrinsicDef(
        "bits",
        1,
        _bits,
        "The bits of a float, as an integer",
        "float",
        "bits",
    ),
    IntrinsicDef("of_bits", 1, _of_bits, "The float of such bits", "int", "float"),
    IntrinsicDef("likely", 1, _same, "The bool x, and a hint that it mostly is true", "any"),
    IntrinsicDef("prefetch", 1, _same, "Evaluated alone: what is loaded is needed soon", "any"),
)
INTRINSICS: dict[str, IntrinsicDef] = {row.name: row for row in _ROWS}
COSTLY = frozenset(INTRINSICS) - {
    "abs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "fma",
    "likely",
    "bits",
    "of_bits",
    "prefetch",
}
"""Those that take many instructions."""
