"""What each operator hands back to its operands: derivatives by the chain rule, backwards.

A rule takes a node whose values are known, what it gave, and the derivative of the target with
respect to that, and gives those with respect to its operands; None where there is none to give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt

from unity.frontend.onnx.node import Node
from unity.frontend.run_time.vectors import vector_of
from unity.ir.dims import equal, product
from unity.ir.graph import Expr
from unity.ir.types import Shape

Rule = Callable[[Node, Expr, Expr], Sequence[Expr | None]]


def summed_to(c: Node, d: Expr, shape: Shape) -> Expr:
    """The derivative of what was broadcast: summed over the axes along which it was repeated."""
    wide = c.shape_of(d)
    lead = len(wide) - len(shape)
    axes = [*range(lead)]
    for k, (extent, own) in enumerate(zip(wide[lead:], shape, strict=True)):
        if equal(extent, own):
            continue
        if own != 1:
            raise c.symbolic_gap(f"the derivative of {shape} broadcast to {wide}", extent, own)
        axes.append(lead + k)
    if not axes:
        return d
    return c.op("reshape", c.op("sum", d, axis=tuple(axes), keepdims=True), shape)


def _alike(rule: Callable[[Node, Expr, Expr, Expr, Expr], tuple[Expr, Expr]]) -> Rule:
    """Of two operands that broadcast: a rule takes both, the result and its derivative."""

    def backward(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
        a, b = c.tensor(0), c.tensor(1)
        return [
            summed_to(c, part, c.shape_of(x))
            for part, x in zip(rule(c, a, b, out, d), (a, b), strict=True)
        ]

    return backward


def _each(rule: Callable[[Node, Expr, Expr, Expr], Expr]) -> Rule:
    """Of one operand, element by element."""
    return lambda c, out, d: [rule(c, c.tensor(0), out, d)]


def _quotient(c: Node, a: Expr, b: Expr, out: Expr, d: Expr) -> tuple[Expr, Expr]:
    first = c.op("divide", d, b)
    return first, c.op("negative", c.op("multiply", first, out))


def _power(c: Node, a: Expr, b: Expr, out: Expr, d: Expr) -> tuple[Expr, Expr]:
    less = c.op("power", a, c.op("subtract", b, c.number(1, b)))
    return (
        c.op("multiply", d, c.op("multiply", b, less)),
        c.op("multiply", d, c.op("multiply", out, c.op("log", a))),
    )


def _relu(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    return c.op("where", c.op("greater", x, c.number(0, x)), d, c.op("zeros_like", d))


def _from_one(c: Node, value: Expr) -> Expr:
    return c.op("subtract", c.number(1, value), value)


def _sigmoid(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    return c.op("multiply", d, c.op("multiply", out, _from_one(c, out)))


def _tanh(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    return c.op("multiply", d, _from_one(c, c.op("multiply", out, out)))


def _sqrt(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    return c.op("divide", c.op("multiply", d, c.number(0.5, d)), out)


def _reciprocal(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    return c.op("negative", c.op("multiply", d, c.op("multiply", out, out)))


def _cos(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    return c.op("negative", c.op("multiply", d, c.op("sin", x)))


def _erf(c: Node, x: Expr, out: Expr, d: Expr) -> Expr:
    bell = c.op("exp", c.op("negative", c.op("multiply", x, x)))
    return c.op("multiply", d, c.op("multiply", bell, c.number(2 / sqrt(pi), bell)))


def _matmul(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
    a, b = c.tensor(0), c.tensor(1)
    if min(len(c.shape_of(x)) for x in (a, b)) < 2:
        raise c.gap("the derivative of a product by a vector")
    first, second = c.op("matmul", d, _turned(c, b)), c.op("matmul", _turned(c, a), d)
    return [summed_to(c, first, c.shape_of(a)), summed_to(c, second, c.shape_of(b))]


def _turned(c: Node, x: Expr) -> Expr:
    rank = len(c.shape_of(x))
    return c.op("permute_dims", x, axes=(*range(rank - 2), rank - 1, rank - 2))


def _sum(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
    return [summed_to(c, d, c.shape_of(c.tensor(k))) for k in range(c.count)]


def _where(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
    condition, none = c.tensor(0), c.op("zeros_like", d)
    parts = c.op("where", condition, d, none), c.op("where", condition, none, d)
    shapes = (c.shape_of(c.tensor(k)) for k in (1, 2))
    return [None, *(summed_to(c, p, s) for p, s in zip(parts, shapes, strict=True))]


def _reshaped(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
    return [c.op("reshape", d, c.shape_of(c.tensor(0))), *[None] * (c.count - 1)]


def _transposed(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
    rank = c.rank(0)
    axes = c.ints_of("perm") or tuple(reversed(range(rank)))
    return [c.op("permute_dims", d, axes=tuple(axes.index(k) for k in range(rank)))]


def _reduced(c: Node, out: Expr, d: Expr, *, mean: bool) -> list[Expr | None]:
    x, shape = c.tensor(0), c.shape_of(c.tensor(0))
    given = c.ints_of("axes") or (c.ints(1, "axes") if c.has(1) else ())
    if not given and c.int_of("noop_with_empty_axes", 0):
        return [d]
    axes = {c.axis(a, len(shape)) for a in given} or {*range(len(shape))}
    kept = tuple(1 if k in axes else e for k, e in enumerate(shape))
    if mean:
        count = vector_of(c, (product(tuple(shape[k] for k in sorted(axes))),)).value
        by = c.op("reshape", c.cast(count, c.dtype_of(x)), ())
        d = c.op("divide", d, by)
    return [c.op("broadcast_to", c.op("reshape", d, kept), shape), *[None] * (c.count - 1)]


def _cast(c: Node, out: Expr, d: Expr) -> list[Expr | None]:
    kind = c.dtype_of(c.tensor(0))
    return [c.cast(d, kind) if kind.is_float else None]


RULES: dict[str, Rule] = {
    "Identity": _each(lambda c, x, out, d: d),
    "Add": _alike(lambda c, a, b, out, d: (d, d)),
    "Sub": _alike(lambda c, a, b, out, d: (d, c.op("negative", d))),
    "Mul": _alike(lambda c, a, b, out, d: (c.op("multiply", d, b), c.op("multiply", d, a))),
    "Div": _alike(_quotient),
    "Pow": _alike(_power),
    "Neg": _each(lambda c, x, out, d: c.op("negative", d)),
    "Abs": _each(lambda c, x, out, d: c.op("multiply", d, c.op("sign", x))),
    "Exp": _each(lambda c, x, out, d: c.op("multiply", d, out)),
    "Log": _each(lambda c, x, out, d: c.op("divide", d, x)),
    "Sqrt": _each(_sqrt),
    "Reciprocal": _each(_reciprocal),
    "Sin": _each(lambda c, x, out, d: c.op("multiply", d, c.op("cos", x))),
    "Cos": _each(_cos),
    "Relu": _each(_relu),
    "Sigmoid": _each(_sigmoid),
    "Tanh": _each(_tanh),
    "Softplus": _each(lambda c, x, out, d: c.op("multiply", d, c.op("sigmoid", x))),
    "Erf": _each(_erf),
    "MatMul": _matmul,
    "Sum": _sum,
    "Where": _where,
    "Reshape": _reshaped,
    "Flatten": _reshaped,
    "Squeeze": _reshaped,
    "Unsqueeze": _reshaped,
    "Transpose": _transposed,
    "ReduceSum": lambda c, out, d: _reduced(c, out, d, mean=False),
    "ReduceMean": lambda c, out, d: _reduced(c, out, d, mean=True),
    "Cast": _cast,
}
"""By operator; the derivatives of others are not known."""
