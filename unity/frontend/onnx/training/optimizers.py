"""Adagrad, Adam and Momentum: one step for each tensor that is optimized."""

from __future__ import annotations

from collections.abc import Callable

from unity.errors import UnityError
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.run_time.slicing import scalar
from unity.ir.dtype import FLOAT32
from unity.ir.graph import Expr

DOMAIN = "ai.onnx.preview.training"
Step = Callable[["Node", Expr, "list[Expr]"], "list[Expr]"]
"""From a rate and one tensor with its gradient and states to what they become."""


def _optimizer(states: int, step: Step) -> Converter:
    """Inputs are a rate, a count, then all tensors, all gradients, and each kind of state."""

    def convert(node: Node) -> list[Value]:
        kinds = states + 2
        count, rest = divmod(node.count - 2, kinds)
        if rest or not count or len(node.proto.output) > count * (states + 1):
            raise UnityError(f"{node.count} inputs, of which {kinds} belong to each tensor")
        rate = node.cast(scalar(node, node.tensor(0)), FLOAT32)
        found: list[list[Value]] = [[] for _ in range(states + 1)]
        for k in range(count):
            own = [node.tensor(2 + k + count * kind) for kind in range(kinds)]
            for of, value in zip(found, step(node, rate, own), strict=True):
                of.append(value)
        return [value for of in found for value in of]

    return convert


def _times(node: Node, x: Expr, factor: Expr | float) -> Expr:
    if isinstance(factor, float | int):
        return node.op("multiply", x, node.number(factor, x))
    return node.op("multiply", x, node.cast(factor, node.dtype_of(x)))


def _regularized(node: Node, x: Expr, gradient: Expr) -> Expr:
    return node.op("add", _times(node, x, node.float_of("norm_coefficient", 0.0)), gradient)


def _power(node: Node, base: float) -> Expr:
    """A coefficient to the power of the number of steps so far."""
    steps = node.cast(scalar(node, node.tensor(1)), FLOAT32)
    return node.op("power", node.number(base, steps), steps)


def _is_first(node: Node) -> Expr:
    steps = scalar(node, node.tensor(1))
    return node.op("equal", steps, node.number(0, steps))


def _adagrad(node: Node, rate: Expr, own: list[Expr]) -> list[Expr]:
    x, gradient, squares = own
    steps = node.cast(scalar(node, node.tensor(1)), FLOAT32)
    decay = node.op("multiply", steps, node.number(node.float_of("decay_factor", 0.0), steps))
    rate = node.op("divide", rate, node.op("add", decay, node.number(1.0, steps)))
    gradient = _regularized(node, x, gradient)
    squares = node.op("add", squares, node.op("square", gradient))
    root = node.op("sqrt", squares)
    root = node.op("add", root, node.number(node.float_of("epsilon", 1e-6), root))
    moved = node.op("divide", _times(node, gradient, rate), root)
    return [node.op("subtract", x, moved), squares]


def _adam(node: Node, rate: Expr, own: list[Expr]) -> list[Expr]:
    x, gradient, mean, squares = own
    alpha, beta = node.float_of("alpha", 0.9), node.float_of("beta", 0.999)
    gradient = _regularized(node, x, gradient)
    mean = node.op("add", _times(node, mean, alpha), _times(node, gradient, 1.0 - alpha))
    new = node.op("square", gradient)
    squares = node.op("add", _times(node, squares, beta), _times(node, new, 1.0 - beta))
    one = node.number(1.0, rate)
    # At the first step nothing is corrected: both powers are 1 then.
    unbiased = node.op("sqrt", node.op("subtract", one, _power(node, beta)))
    corrected = node.op("divide", unbiased, node.op("subtract", one, _power(node, alpha)))
    corrected = node.op("where", _is_first(node), one, corrected)
    root = node.op("sqrt", squares)
    root = node.op("add", root, node.number(node.float_of("epsilon", 1e-6), root))
    rate = node.op("multiply", rate, corrected)
    moved = node.op("divide", _times(node, mean, rate), root)
    after = node.float_of("norm_coefficient_post", 0.0)
    found = _times(node, node.op("subtract", x, moved), 1.0 - after)
    return [found, mean, squares]


def _momentum(node: Node, rate: Expr, own: list[Expr]) -> list[Expr]:
    x, gradient, mean = own
    mode = node.text_of("mode", "standard")
    if mode not in ("standard", "nesterov"):
        raise UnityError(f"the mode must be 'standard' or 'nesterov', got {mode!r}")
    alpha, beta = node.float_of("alpha", 0.0), node.float_of("beta", 0.0)
    gradient = _regularized(node, x, gradient)
    # At the first step the gradient counts whole.
    part = node.op("where", _is_first(node), node.number(1.0, rate), node.number(beta, rate))
    mean = node.op("add", _times(node, mean, alpha), _times(node, gradient, part))
    moved = mean
    if mode == "nesterov":
        moved = node.op("add", gradient, _times(node, mean, alpha))
    return [node.op("subtract", x, _times(node, moved, rate)), mean]


CONVERTERS: dict[str, Converter] = {
    "Adagrad": _optimizer(1, _adagrad),
    "Adam": _optimizer(2, _adam),
    "Momentum": _optimizer(1, _momentum),
}
