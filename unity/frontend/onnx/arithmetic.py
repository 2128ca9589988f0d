"""Arithmetic, comparison and logic of several inputs; on sizes it is done during the import."""

from __future__ import annotations

from functools import reduce

from unity.errors import UnityError
from unity.frontend.broadcasting import broadcast
from unity.frontend.sizes import (
    ARITHMETIC,
    COMPARISONS,
    LOGIC,
    SizeRule,
    Sizes,
    choose,
    combine,
    exact_divide,
    is_symbolic,
)
from unity.ir.dims import always_ge, dim_max, floordiv
from unity.ir.dtype import BOOL, FLOAT64, dtype
from unity.ir.graph import Expr
from unity.op.table import OF_ONNX

from .node import Converter, Node, Value

_BINARY = [n for n, op in OF_ONNX.items() if op.pattern == "broadcast" and len(op.params) == 2]
_VARIADIC = ("Max", "Min", "Sum")


def _on_sizes(node: Node, op_type: str) -> Value | None:
    known = node.symbolic(0, 1) if node.count == 2 else None
    if known is None:
        return None
    a, b = known
    if op_type in COMPARISONS:
        return combine(a, b, COMPARISONS[op_type], BOOL)
    if op_type in LOGIC and a.dtype == BOOL:
        return combine(a, b, LOGIC[op_type], BOOL)
    rule = ARITHMETIC.get(op_type)
    if op_type == "Div" and a.dtype.is_float:
        rule = exact_divide
    if rule is None:
        return None
    if op_type in ("Div", "Mod") and a.dtype.is_int:
        return _divided(node, rule, a, b)
    return combine(a, b, rule)


def _divided(node: Node, rule: SizeRule, a: Sizes, b: Sizes) -> Sizes | None:
    """What a division of integers gives; that no divisor is 0 is checked when it runs."""
    unsure = [d for d in b.flat if is_symbolic(d) and not always_ge(d, 1)]
    if not all(always_ge(d, 0) for d in unsure):
        return None
    found = combine(a, b, rule)
    if found is None:
        found = combine(a, b, lambda x, y: floordiv(x, y) if always_ge(x, 0) else None)
    for divisor in unsure if found is not None else ():
        node.require(divisor, dim_max(divisor, 1), "divides_by_0", "it divides by 0")
    return found


def _binary(op_type: str) -> Converter:
    def convert(node: Node) -> Value:
        known = _on_sizes(node, op_type)
        if known is not None:
            return known
        if op_type == "Div":
            _require_no_zero(node)
        found = node.binary(OF_ONNX[op_type].name, node.tensor(0), node.tensor(1))
        noted = {"Equal": node.graph.equated, "Less": node.graph.compared}.get(op_type)
        sizes = None if noted is None else node.symbolic(0, 1)
        if noted is not None and sizes is not None and all(len(s.flat) == 1 for s in sizes):
            noted[found] = sizes[0].flat[0], sizes[1].flat[0]
        return found

    return convert


def _require_no_zero(node: Node) -> None:
    """Refuse a constant divisor of integers that is 0 (one known at run time: `check_bounds`)."""
    known = node.constant(1)
    if known is not None and dtype(known.dtype).is_int and not known.all():
        raise UnityError("it divides integers by a constant 0")


def _variadic(op_type: str) -> Converter:
    name = "add" if op_type == "Sum" else OF_ONNX[op_type].name

    def convert(node: Node) -> Value:
        known = _on_sizes(node, op_type)
        if known is not None:
            return known
        tensors = [node.tensor(i) for i in range(node.count)]
        return reduce(lambda a, b: node.binary(name, a, b), tensors)

    return convert


def _mean(node: Node) -> Value:
    tensors = [node.tensor(i) for i in range(node.count)]
    total = reduce(lambda a, b: node.binary("add", a, b), tensors)
    return node.op("divide", total, node.number(len(tensors), total))


def _mod(node: Node) -> Value:
    fmod = node.int_of("fmod", 0)
    known = None if fmod else _on_sizes(node, "Mod")
    if known is not None:
        return known
    a, b = node.tensor(0), node.tensor(1)
    _require_no_zero(node)
    return node.binary("mod" if fmod else "floor_mod", a, b)


def _pow(node: Node) -> Value:
    base, exponent = node.tensor(0), node.tensor(1)
    kind = node.dtype_of(base)
    known = node.constant(1)
    if known is not None and known.size == 1 and float(known.reshape(())) == 2 and known.ndim == 0:
        return node.op("square", base)
    if kind.is_float:
        return node.binary("power", base, node.cast(exponent, kind))
    if node.dtype_of(exponent).is_int:
        return _whole_power(node, base, exponent)
    wide = node.binary("power", node.cast(base, FLOAT64), node.cast(exponent, FLOAT64))
    return node.cast(_truncated(node, wide), kind)


def _truncated(node: Node, x: Expr) -> Expr:
    """Rounded towards zero, but what is a whole number up to the rounding of `power`."""
    near = node.op("round", x)
    off = node.op("abs", node.op("subtract", x, near))
    slack = node.op("multiply", node.op("abs", x), node.number(2.0**-50, x))
    return node.op("where", node.op("less_equal", off, slack), near, node.op("trunc", x))


def _whole_power(node: Node, base: Expr, exponent: Expr) -> Expr:
    """A power of integers, exact and wrapping: a product of squares, one for each bit.

    Where the exponent is negative, or has more than six bits, it is 0 but for the bases 1 and -1:
    truncated, or more than any integer holds.
    """
    known = node.constant(1)
    if known is not None and known.ndim == 0 and 0 <= int(known) < 64:
        return _product_of_squares(node, base, int(known))
    base, exponent = broadcast(node, (base, exponent))
    one, zero = node.number(1, base), node.number(0, exponent)
    result: Expr = one
    square = base
    for bit in range(6):
        shifted = node.op("right_shift", exponent, node.number(bit, exponent))
        odd = node.op("not_equal", node.op("bitwise_and", shifted, node.number(1, exponent)), zero)
        result = node.op("multiply", result, node.op("where", odd, square, one))
        square = node.op("multiply", square, square)
    below = node.op("less", exponent, node.number(64, exponent))
    exact = node.op("logical_and", node.op("greater_equal", exponent, zero), below)
    held = node.op("logical_or", exact, node.op("equal", base, one))
    if node.dtype_of(base).kind == "int":
        held = node.op("logical_or", held, node.op("equal", base, node.number(-1, base)))
    return node.op("where", held, result, node.number(0, base))


def _product_of_squares(node: Node, base: Expr, exponent: int) -> Expr:
    """A power by a known exponent."""
    result: Expr | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else node.op("multiply", result, base)
        exponent >>= 1
        base = node.op("square", base) if exponent else base
    return node.op("ones_like", base, dtype=node.dtype_of(base)) if result is None else result


def _where(node: Node) -> Value:
    known = node.symbolic(0, 1, 2)
    if known is not None and all(isinstance(d, int) for d in known[0].flat):
        return choose(*known)
    return node.op("where", *broadcast(node, [node.tensor(i) for i in range(3)]))


def _shift(node: Node) -> Value:
    direction = node.text_of("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise node.gap(f"direction {direction!r}")
    name = "left_shift" if direction == "LEFT" else "right_shift"
    return node.binary(name, node.tensor(0), node.tensor(1))


CONVERTERS: dict[str, Converter] = {
    **{op_type: _binary(op_type) for op_type in _BINARY},
    **{op_type: _variadic(op_type) for op_type in _VARIADIC},
    "Mean": _mean,
    "Mod": _mod,
    "Pow": _pow,
    "Where": _where,
    "BitShift": _shift,
}
