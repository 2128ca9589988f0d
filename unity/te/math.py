"""Scalar functions for the bodies of computes: each builds one node.

A Python number takes the dtype of the operand beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import INT64, DType, dtype
from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Intrinsic,
    Not,
    Operand,
    PrimExpr,
    Select,
    as_prim_expr,
    imm,
)


@public
def intrinsic(name: str, *args: Operand) -> Intrinsic:
    """A call of the named function; literals take the dtype of the first expression.

    Raises:
        UnityError: The arguments do not fit the function.
    """
    if name not in INTRINSICS:
        raise UnityError(f"there is no scalar function {name!r}", hint="see unity.script.T")
    values = _alike(*args)
    return Intrinsic(name, values, INTRINSICS[name].result_dtype([v.dtype for v in values]))


def _alike(*args: Operand) -> tuple[PrimExpr, ...]:
    """The arguments as expressions, numbers in the dtype of the first that is no number."""
    exprs = [a for a in args if not isinstance(a, bool | int | float)]
    like = as_prim_expr(exprs[0]).dtype if exprs else INT64
    return tuple(as_prim_expr(a, like) for a in args)


def _binary(op: BinaryOp, a: Operand, b: Operand) -> Binary:
    left, right = _alike(a, b)
    return Binary(op, left, right)


def _compare(op: CompareOp, a: Operand, b: Operand) -> Compare:
    left, right = _alike(a, b)
    return Compare(op, left, right)


@public
def cast(value: Operand, to: DType | str) -> PrimExpr:
    """The value converted by numpy's rules; itself when it has the dtype already."""
    expr, target = as_prim_expr(value), dtype(to)
    if expr.dtype == target:
        return expr
    if isinstance(expr, Imm) and (target.is_float or (target.is_int and expr.dtype.is_int)):
        return imm(expr.value, target)
    return Cast(target, expr)


@public
def select(condition: PrimExpr, then: Operand, orelse: Operand) -> Select:
    """`then` where the condition holds, else `orelse`; what is not taken is not loaded."""
    a, b = _alike(then, orelse)
    return Select(condition, a, b)


LONGEST_CHAIN = 64
"""Selects of one expression within another that every walk of it stands."""


@public
def one_of(
    count: int, value: Callable[[int], PrimExpr], before: Callable[[int], PrimExpr]
) -> PrimExpr:
    """The value n, the first for which `before(n + 1)` holds: a chain of selects, or halves.

    A chain is what storage planning and loop partitioning know concatenations by. One is as deep as
    there are values, and hundreds end the recursion of whoever walks the expression: so many are
    found by halves.

    Args:
        count: How many values there are, one at least.
        value: Each of them.
        before: The condition that a value before n is meant, for n from 1 to count - 1.
    """

    def among(first: int, last: int) -> PrimExpr:
        if last - first == 1:
            return value(first)
        middle = first + 1 if count <= LONGEST_CHAIN else (first + last) // 2
        return select(before(middle), among(first, middle), among(middle, last))

    return among(0, count)


@public
def eq(a: Operand, b: Operand) -> Compare:
    """Whether two values are equal."""
    return _compare("eq", a, b)


@public
def ne(a: Operand, b: Operand) -> Compare:
    """Whether two values differ."""
    return _compare("ne", a, b)


@public
def min_(a: Operand, b: Operand) -> Binary:
    """The smaller value; NaN when either is."""
    return _binary("min", a, b)


@public
def max_(a: Operand, b: Operand) -> Binary:
    """The larger value; NaN when either is."""
    return _binary("max", a, b)


@public
def fmin(a: Operand, b: Operand) -> Binary:
    """The smaller float; one of them where the other is NaN."""
    return _binary("fmin", a, b)


@public
def fmax(a: Operand, b: Operand) -> Binary:
    """The larger float; one of them where the other is NaN."""
    return _binary("fmax", a, b)


@public
def clamp(x: PrimExpr, low: Operand, high: Operand) -> PrimExpr:
    """``min(max(x, low), high)``."""
    return min_(max_(x, low), high)


@public
def and_(a: Operand, b: Operand) -> Binary:
    """Bitwise and, of bools or integers."""
    return _binary("and", a, b)


@public
def or_(a: Operand, b: Operand) -> Binary:
    """Bitwise or, of bools or integers."""
    return _binary("or", a, b)


@public
def xor(a: Operand, b: Operand) -> Binary:
    """Bitwise exclusive or, of bools or integers."""
    return _binary("xor", a, b)


@public
def not_(a: PrimExpr) -> Not:
    """Logical negation of a bool."""
    return Not(a)


@public
def all_true(*conditions: PrimExpr) -> PrimExpr:
    """Whether every condition holds; true of none."""
    result: PrimExpr = imm(True, dtype("bool"))
    for i, condition in enumerate(conditions):
        result = condition if i == 0 else Binary("and", result, condition)
    return result


@public
def any_true(*conditions: PrimExpr) -> PrimExpr:
    """Whether some condition holds; false of none."""
    result: PrimExpr = imm(False, dtype("bool"))
    for i, condition in enumerate(conditions):
        result = condition if i == 0 else Binary("or", result, condition)
    return result


@public
def shift_left(a: Operand, b: Operand) -> Binary:
    """``a << b``."""
    return _binary("shl", a, b)


@public
def shift_right(a: Operand, b: Operand) -> Binary:
    """``a >> b``, keeping the sign of a signed value."""
    return _binary("shr", a, b)


@public
def truncdiv(a: Operand, b: Operand) -> Binary:
    """Integer division rounding towards zero, as C."""
    return _binary("truncdiv", a, b)


@public
def truncmod(a: Operand, b: Operand) -> Binary:
    """The rest of `truncdiv`, with the sign of the dividend."""
    return _binary("truncmod", a, b)


@public
def exp(x: Operand) -> PrimExpr:
    """Euler's number to the power of x."""
    return intrinsic("exp", x)


@public
def exp2(x: Operand) -> PrimExpr:
    """2 to the power of x."""
    return intrinsic("exp2", x)


@public
def expm1(x: Operand) -> PrimExpr:
    """``exp(x) - 1``, exact near zero."""
    return intrinsic("expm1", x)


@public
def log(x: Operand) -> PrimExpr:
    """The natural logarithm."""
    return intrinsic("log", x)


@public
def log2(x: Operand) -> PrimExpr:
    """The logarithm to base 2."""
    return intrinsic("log2", x)


@public
def log10(x: Operand) -> PrimExpr:
    """The logarithm to base 10."""
    return intrinsic("log10", x)


@public
def log1p(x: Operand) -> PrimExpr:
    """``log(1 + x)``, exact near zero."""
    return intrinsic("log1p", x)


@public
def sqrt(x: Operand) -> PrimExpr:
    """The square root."""
    return intrinsic("sqrt", x)


@public
def rsqrt(x: Operand) -> PrimExpr:
    """One over the square root."""
    return intrinsic("rsqrt", x)


@public
def sin(x: Operand) -> PrimExpr:
    """The sine."""
    return intrinsic("sin", x)


@public
def cos(x: Operand) -> PrimExpr:
    """The cosine."""
    return intrinsic("cos", x)


@public
def tan(x: Operand) -> PrimExpr:
    """The tangent."""
    return intrinsic("tan", x)


@public
def asin(x: Operand) -> PrimExpr:
    """The inverse sine."""
    return intrinsic("asin", x)


@public
def acos(x: Operand) -> PrimExpr:
    """The inverse cosine."""
    return intrinsic("acos", x)


@public
def atan(x: Operand) -> PrimExpr:
    """The inverse tangent."""
    return intrinsic("atan", x)


@public
def atan2(y: Operand, x: Operand) -> PrimExpr:
    """The angle of the point (x, y)."""
    return intrinsic("atan2", y, x)


@public
def sinh(x: Operand) -> PrimExpr:
    """The hyperbolic sine."""
    return intrinsic("sinh", x)


@public
def cosh(x: Operand) -> PrimExpr:
    """The hyperbolic cosine."""
    return intrinsic("cosh", x)


@public
def tanh(x: Operand) -> PrimExpr:
    """The hyperbolic tangent."""
    return intrinsic("tanh", x)


@public
def asinh(x: Operand) -> PrimExpr:
    """The inverse hyperbolic sine."""
    return intrinsic("asinh", x)


@public
def acosh(x: Operand) -> PrimExpr:
    """The inverse hyperbolic cosine."""
    return intrinsic("acosh", x)


@public
def atanh(x: Operand) -> PrimExpr:
    """The inverse hyperbolic tangent."""
    return intrinsic("atanh", x)


@public
def erf(x: Operand) -> PrimExpr:
    """The error function."""
    return intrinsic("erf", x)


@public
def sigmoid(x: Operand) -> PrimExpr:
    """``1 / (1 + exp(-x))``."""
    return intrinsic("sigmoid", x)


@public
def floor(x: Operand) -> PrimExpr:
    """Rounded down."""
    return intrinsic("floor", x)


@public
def ceil(x: Operand) -> PrimExpr:
    """Rounded up."""
    return intrinsic("ceil", x)


@public
def round_(x: Operand) -> PrimExpr:
    """Rounded to the nearest, halves to even."""
    return intrinsic("round", x)


@public
def trunc(x: Operand) -> PrimExpr:
    """Rounded towards zero."""
    return intrinsic("trunc", x)


@public
def abs_(x: Operand) -> PrimExpr:
    """The magnitude."""
    return intrinsic("abs", x)


@public
def sign(x: Operand) -> PrimExpr:
    """-1, 0 or 1; NaN of NaN."""
    return intrinsic("sign", x)


@public
def power(x: Operand, y: Operand) -> PrimExpr:
    """X to the power of y."""
    return intrinsic("pow", x, y)


@public
def fmod(x: Operand, y: Operand) -> PrimExpr:
    """The rest of a float division, with the sign of the dividend."""
    return intrinsic("fmod", x, y)


@public
def fma(a: Operand, b: Operand, c: Operand) -> PrimExpr:
    """``a * b + c``, rounded once or twice as the target likes."""
    return intrinsic("fma", a, b, c)


@public
def isnan(x: Operand) -> PrimExpr:
    """Whether x is NaN."""
    return intrinsic("isnan", x)


@public
def isinf(x: Operand) -> PrimExpr:
    """Whether x is an infinity."""
    return intrinsic("isinf", x)


@public
def isfinite(x: Operand) -> PrimExpr:
    """Whether x is neither NaN nor an infinity."""
    return intrinsic("isfinite", x)


@public
def bits(x: Operand) -> PrimExpr:
    """A float32's or float64's bits, as an integer of as many."""
    return intrinsic("bits", x)


@public
def of_bits(x: Operand) -> PrimExpr:
    """The float32 or float64 whose bits are an int32 or int64."""
    return intrinsic("of_bits", x)


@public
def clz(x: Operand) -> PrimExpr:
    """How many bits of an integer above its first set one are not set; all of zero."""
    return intrinsic("clz", x)


@public
def popcount(x: Operand) -> PrimExpr:
    """The number of one bits of an integer."""
    return intrinsic("popcount", x)


@public
def likely(condition: PrimExpr) -> PrimExpr:
    """The bool itself, marked as nearly always true."""
    return intrinsic("likely", condition)


_LARGEST = {
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2fnuz": 57344.0,
    "float4_e2m1fn": 6.0,
}
"""The greatest finite value of the float types that have no infinity."""


@public
def min_value(of: DType) -> Imm:
    """The least value of a dtype: minus infinity where there is one."""
    if of.is_float:
        return imm(-_LARGEST.get(of.name, float("inf")), of)
    return imm(-(1 << (of.bits - 1)) if of.kind == "int" else 0, of)


@public
def max_value(of: DType) -> Imm:
    """The greatest value of a dtype: infinity where there is one."""
    if of.is_float:
        return imm(_LARGEST.get(of.name, float("inf")), of)
    if of.kind == "bool":
        return imm(True, of)
    return imm((1 << (of.bits - 1 if of.kind == "int" else of.bits)) - 1, of)
