"""Operators of one element, and of two that broadcast."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.frontend.sampling import half_away
from unity.ir.dtype import BOOL, FLOAT64, DType
from unity.ir.graph import Expr

_ANY = {
    "abs": "abs",
    "negative": "negative",
    "sign": "sign",
    "nn.relu": "nn.relu",
    "bitwise_not": "bitwise_not",
}
_FLOAT = {
    "exp": "exp",
    "fast_exp": "exp",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "rsqrt": "rsqrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "fast_tanh": "tanh",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "erf": "erf",
    "fast_erf": "erf",
    "sigmoid": "sigmoid",
}
"""Defined of floats; the ``fast_`` ones are approximations of them, which ours need not be."""
_WHOLE = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_TESTS = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}
_BINARY = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "trunc_divide": "divide",
    "floor_divide": "floor_divide",
    "mod": "mod",
    "trunc_mod": "mod",
    "floor_mod": "floor_mod",
    "power": "power",
    "maximum": "maximum",
    "minimum": "minimum",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "left_shift": "left_shift",
    "right_shift": "right_shift",
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}


def _any(name: str) -> Converter:
    return lambda c: c.op(name, c.tensor(0))


def _float(name: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        kind = c.dtype_of(c.tensor(0))
        if not kind.is_float:
            raise c.gap(f"elements of {kind}")
        return c.op(name, c.tensor(0))

    return convert


def _whole(name: str) -> Converter:
    """Operators that leave integers as they are."""
    return lambda c: c.op(name, c.tensor(0)) if c.dtype_of(c.tensor(0)).is_float else c.tensor(0)


def _binary(name: str) -> Converter:
    def convert(c: RelayCall) -> Expr:
        a, b = c.tensor(0), c.tensor(1)
        left, right = c.dtype_of(a), c.dtype_of(b)
        if left != right:
            raise UnityError(
                f"takes operands of one dtype, got {left} and {right}", hint="Relay promotes none"
            )
        return c.op(name, *c.of(a, b))

    return convert


def _sqrt(c: RelayCall) -> Expr:
    """Of integers the root is rounded down."""
    x = c.tensor(0)
    kind = c.dtype_of(x)
    return c.op("sqrt", x) if kind.is_float else c.cast(c.op("sqrt", c.cast(x, FLOAT64)), kind)


def _round(c: RelayCall) -> Expr:
    return half_away(c, c.tensor(0)) if c.dtype_of(c.tensor(0)).is_float else c.tensor(0)


def _logical_not(c: RelayCall) -> Expr:
    return c.op("logical_not", as_bool(c, c.tensor(0)))


def as_bool(c: RelayCall, x: Expr) -> Expr:
    """A condition: what is not 0 holds."""
    return x if c.dtype_of(x) == BOOL else c.op("not_equal", x, c.number(0, x))


def _clip(c: RelayCall) -> Expr:
    low, high = c.real("a_min"), c.real("a_max")
    return clipped(c, c.tensor(0), low, high)


def clipped(c: RelayCall, x: Expr, low: float, high: float) -> Expr:
    """Elements no less than `low` and no more than `high`, of which integers see the whole part."""
    if c.dtype_of(x).is_float:
        return c.op("clip", x, min=float(low), max=float(high))
    least, most = limits(c.dtype_of(x))
    bounds = (max(least, min(most, low)), max(least, min(most, high)))
    return c.op("clip", x, min=int(bounds[0]), max=int(bounds[1]))


def limits(kind: DType) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    if kind.name.startswith("u"):
        return 0, (1 << kind.bits) - 1
    return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1


def _where(c: RelayCall) -> Expr:
    condition, a, b = c.of(as_bool(c, c.tensor(0)), c.tensor(1), c.tensor(2))
    return c.op("where", condition, a, b)


def _same(c: RelayCall) -> Expr:
    return c.operands[0]


def _cast(c: RelayCall) -> Expr:
    x = c.tensor(0)
    return c.cast(x, c.dtype_or("dtype", c.dtype_of(x)))


def _cast_like(c: RelayCall) -> Expr:
    return c.cast(c.tensor(0), c.dtype_of(c.tensor(1)))


CONVERTERS: dict[str, Converter] = {
    **{relay: _any(ours) for relay, ours in _ANY.items()},
    **{relay: _float(ours) for relay, ours in {**_FLOAT, **_TESTS}.items()},
    **{relay: _whole(ours) for relay, ours in _WHOLE.items()},
    **{relay: _binary(ours) for relay, ours in _BINARY.items()},
    "sqrt": _sqrt,
    "round": _round,
    "logical_not": _logical_not,
    "clip": _clip,
    "where": _where,
    "copy": _same,
    "cast": _cast,
    "cast_like": _cast_like,
}
