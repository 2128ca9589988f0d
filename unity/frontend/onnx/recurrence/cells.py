"""One step of RNN, GRU and LSTM: from the projected input and the states to the next states.

A cell sees ``x``, the input times its weights plus the biases that need not wait, ``(batch, gates *
hidden)``, and gives the next states, the output first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity.frontend.emission import Gap
from unity.frontend.onnx.node import Node
from unity.frontend.onnx.quantized.dynamic import IntegerWeights
from unity.ir.dims import Dim
from unity.ir.graph import Expr

Function: TypeAlias = "Callable[[Node, Expr], Expr]"
"""An activation."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What all steps of one direction share.

    Attributes:
        hidden: The number of hidden units.
        recurrent: The recurrent weights ``(hidden, gates * hidden)``.
        functions: The activations, in ONNX's order.
        clip: The bound of what goes into gates and candidates, if there is one (as onnxruntime has
            it: LSTM's cell is not clipped).
        peepholes: LSTM's weights from the cell to the gates i, o, f, each ``(hidden,)``.
        late_bias: GRU's bias of the candidate that the reset gate scales, ``(hidden,)``.
        linear_before_reset: Whether GRU resets after the product with the recurrent weights.
        coupled: Whether LSTM's forget gate is one minus its input gate.
        integers: In place of LSTM's recurrent weights, ones that are integers.
    """

    hidden: Dim
    recurrent: Expr
    functions: tuple[Function, ...]
    clip: float | None = None
    peepholes: tuple[Expr, ...] = ()
    late_bias: Expr | None = None
    linear_before_reset: bool = False
    coupled: bool = False
    integers: IntegerWeights | None = None

    def product(self, node: Node, h: Expr) -> Expr:
        """A state times the recurrent weights."""
        if self.integers is not None:
            return self.integers.product(node, h)
        return node.op("matmul", h, self.recurrent)

    def apply(self, node: Node, which: int, x: Expr) -> Expr:
        """An activation of what is clipped."""
        return self.functions[which](node, self.clipped(node, x))

    def clipped(self, node: Node, x: Expr) -> Expr:
        """A value within the bound."""
        if self.clip is None:
            return x
        low, high = node.number(-self.clip, x), node.number(self.clip, x)
        return node.op("minimum", node.op("maximum", x, low), high)

    def gate(self, node: Node, x: Expr, index: int, count: int = 1) -> Expr:
        """The columns of some gates."""
        begin, end = index * self.hidden, (index + count) * self.hidden
        return node.op("strided_slice", x, axes=(1,), begin=(begin,), end=(end,), strides=None)


Step: TypeAlias = "Callable[[Cell, Node, Expr, Sequence[Expr]], tuple[Expr, ...]]"


def rnn(cell: Cell, node: Node, x: Expr, state: Sequence[Expr]) -> tuple[Expr, ...]:
    """``f(x + h R)``."""
    (h,) = state
    return (cell.apply(node, 0, node.op("add", node.op("matmul", h, cell.recurrent), x)),)


def gru(cell: Cell, node: Node, x: Expr, state: Sequence[Expr]) -> tuple[Expr, ...]:
    """Gates z, r; candidate h: ``(1 - z) * g(x + r * h R) + z * h``."""
    (h,) = state
    if cell.linear_before_reset:
        product = node.op("matmul", h, cell.recurrent)
        gates = node.op("add", cell.gate(node, product, 0, 2), cell.gate(node, x, 0, 2))
        late = cell.gate(node, product, 2)
        if cell.late_bias is not None:
            late = node.op("add", late, cell.late_bias)
        reset = cell.apply(node, 0, cell.gate(node, gates, 1))
        candidate = node.op("multiply", reset, late)
    else:
        early = cell.gate(node, cell.recurrent, 0, 2)
        product = node.op("matmul", h, early)
        gates = node.op("add", product, cell.gate(node, x, 0, 2))
        reset = cell.apply(node, 0, cell.gate(node, gates, 1))
        scaled = node.op("multiply", reset, h)
        candidate = node.op("matmul", scaled, cell.gate(node, cell.recurrent, 2))
    update = cell.apply(node, 0, cell.gate(node, gates, 0))
    new = cell.apply(node, 1, node.op("add", candidate, cell.gate(node, x, 2)))
    rest = node.op("subtract", node.number(1, h), update)
    kept = node.op("multiply", update, h)
    return (node.op("add", node.op("multiply", rest, new), kept),)


def lstm(cell: Cell, node: Node, x: Expr, state: Sequence[Expr]) -> tuple[Expr, ...]:
    """Gates i, o, f and candidate c: ``c' = f * c + i * g(...)``, ``h' = o * h(c')``."""
    h, c = state
    gates = node.op("add", cell.product(node, h), x)

    def gate(index: int, seen: Expr) -> Expr:
        value = cell.gate(node, gates, index)
        if cell.peepholes:
            value = node.op("add", value, node.op("multiply", cell.peepholes[index], seen))
        return cell.apply(node, 0, value)

    enter = gate(0, c)
    forget = node.op("subtract", node.number(1, c), enter) if cell.coupled else gate(2, c)
    candidate = cell.apply(node, 1, cell.gate(node, gates, 3))
    kept, added = node.op("multiply", forget, c), node.op("multiply", enter, candidate)
    after = node.op("add", kept, added)
    leave = gate(1, after)
    return node.op("multiply", leave, cell.functions[2](node, after)), after


@dataclass(frozen=True, slots=True)
class _Activation:
    """An activation: how it is built from its parameters, and what these are by default.

    Attributes:
        alpha: The default; None if there is no such parameter.
        beta: The same.
    """

    build: Callable[[Node, Expr, float, float], Expr]
    alpha: float | None = None
    beta: float | None = None


def _plain(name: str) -> _Activation:
    return _Activation(lambda node, x, _a, _b: node.op(name, x))


def _affine(node: Node, x: Expr, alpha: float, beta: float) -> Expr:
    return node.op("add", node.op("multiply", x, node.number(alpha, x)), node.number(beta, x))


def _scaled_tanh(node: Node, x: Expr, alpha: float, beta: float) -> Expr:
    inner = node.op("tanh", node.op("multiply", x, node.number(beta, x)))
    return node.op("multiply", inner, node.number(alpha, x))


def _thresholded_relu(node: Node, x: Expr, alpha: float, _beta: float) -> Expr:
    above = node.op("greater_equal", x, node.number(alpha, x))
    return node.op("where", above, x, node.number(0, x))


def _softsign(node: Node, x: Expr, _alpha: float, _beta: float) -> Expr:
    return node.op("divide", x, node.op("add", node.op("abs", x), node.number(1, x)))


_ACTIVATIONS: dict[str, _Activation] = {
    "sigmoid": _plain("sigmoid"),
    "tanh": _plain("tanh"),
    "relu": _plain("nn.relu"),
    "softplus": _plain("nn.softplus"),
    "softsign": _Activation(_softsign),
    "affine": _Activation(_affine, 1.0, 0.0),
    "scaledtanh": _Activation(_scaled_tanh, 1.0, 1.0),
    "thresholdedrelu": _Activation(_thresholded_relu, 1.0),
    "leakyrelu": _Activation(lambda n, x, a, _: n.op("nn.leakyrelu", x, alpha=a), 0.01),
    "elu": _Activation(lambda n, x, a, _: n.op("nn.elu", x, alpha=a), 1.0),
    "hardsigmoid": _Activation(
        lambda n, x, a, b: n.op("nn.hardsigmoid", x, alpha=a, beta=b), 0.2, 0.5
    ),
}


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float]
) -> tuple[Function, ...]:
    """The activations of some names; those with parameters take theirs from the front.

    Raises:
        Gap: One is not known.
    """
    alpha_left, beta_left = list(alphas), list(betas)

    def take(left: list[float], default: float | None) -> float:
        if default is None:
            return 0.0
        return left.pop(0) if left else default

    def function(name: str) -> Function:
        row = _ACTIVATIONS.get(name.lower())
        if row is None:
            raise Gap(f"the activation {name!r}")
        alpha, beta = take(alpha_left, row.alpha), take(beta_left, row.beta)
        return lambda node, x: row.build(node, x, alpha, beta)

    return tuple(function(name) for name in names)
