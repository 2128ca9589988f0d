"""Activation nodes."""

from __future__ import annotations

from unity.frontend.broadcasting import broadcast
from unity.ir.graph import Expr

from .node import Converter, Node, Value


def _with(name: str, **defaults: float) -> Converter:
    def convert(node: Node) -> Value:
        attrs = {key: node.float_of(key, value) for key, value in defaults.items()}
        return node.op(name, node.tensor(0), **attrs)

    return convert


def _gelu(node: Node) -> Value:
    kind = node.text_of("approximate", "none")
    if kind not in ("none", "tanh"):
        raise node.gap(f"approximate={kind!r}")
    return node.op("nn.gelu" if kind == "none" else "nn.gelu_tanh", node.tensor(0))


def _prelu(node: Node) -> Value:
    """``x`` where it is not negative, else ``slope * x``, the slope broadcast."""
    x, slope = node.tensor(0), node.tensor(1)
    zero = node.number(0, x)
    if not node.dtype_of(x).is_float:
        scaled = node.op("multiply", *broadcast(node, (x, slope), onto=True))
        return node.op("where", node.op("less", x, zero), scaled, x)
    # Without a comparison, which layouts of images know no blocks for.
    negative = node.op("minimum", x, zero)
    scaled = node.op("multiply", *broadcast(node, (negative, slope), onto=True))
    return node.binary("add", node.op("maximum", x, zero), scaled)


def _shrink(node: Node) -> Value:
    x = node.tensor(0)
    lambd, bias = node.float_of("lambd", 0.5), node.float_of("bias", 0.0)
    zero = node.number(0, x)

    def moved(by: float) -> Expr:
        return node.op("add", x, node.number(by, x))

    low = node.op("less", x, node.number(-lambd, x))
    high = node.op("greater", x, node.number(lambd, x))
    return node.op("where", low, moved(bias), node.op("where", high, moved(-bias), zero))


def _swish(node: Node) -> Value:
    x, alpha = node.tensor(0), node.float_of("alpha", 1.0)
    if alpha == 1.0:
        return node.op("nn.silu", x)
    gate = node.op("sigmoid", node.op("multiply", x, node.number(alpha, x)))
    return node.op("multiply", x, gate)


def _hardmax(node: Node) -> Value:
    """1 at the first largest element along the axis, else 0."""
    x = node.tensor(0)
    shape = node.shape_of(x)
    axis = node.axis(node.int_of("axis", -1 if node.version >= 13 else 1), len(shape))
    if node.version < 13 and axis != len(shape) - 1:
        x, axis = node.op("reshape", x, (*shape[:axis], -1)), axis
    extent = node.shape_of(x)[axis]
    at = node.op("argmax", x, axis=axis, keepdims=False)
    one, zero = node.number(1, x), node.number(0, x)
    found = node.op("one_hot", at, one, zero, depth=extent, axis=axis)
    return found if node.shape_of(found) == shape else node.op("reshape", found, shape)


def _softmax(name: str) -> Converter:
    """Softmax along an axis; before opset 13 over all axes from it on, as one."""

    def convert(node: Node) -> Value:
        x = node.tensor(0)
        rank = node.rank(0)
        axis = node.axis(node.int_of("axis", -1 if node.version >= 13 else 1), rank)
        if node.version >= 13 or axis == rank - 1:
            return node.op(name, x, axis=axis)
        shape = node.shape_of(x)
        rows = node.op("reshape", x, (*shape[:axis], -1))
        return node.op("reshape", node.op(name, rows, axis=-1), shape)

    return convert


CONVERTERS: dict[str, Converter] = {
    "Softplus": lambda node: node.op("nn.softplus", node.tensor(0)),
    "LeakyRelu": _with("nn.leakyrelu", alpha=0.01),
    "Elu": _with("nn.elu", alpha=1.0),
    "Celu": _with("nn.celu", alpha=1.0),
    "ThresholdedRelu": _with("nn.thresholdedrelu", alpha=1.0),
    "Selu": _with("nn.selu", alpha=1.6732632423543772, gamma=1.0507009873554805),
    "HardSigmoid": _with("nn.hardsigmoid", alpha=0.2, beta=0.5),
    "Gelu": _gelu,
    "PRelu": _prelu,
    "Shrink": _shrink,
    "Swish": _swish,
    "Hardmax": _hardmax,
    "Softmax": _softmax("nn.softmax"),
    "LogSoftmax": _softmax("nn.log_softmax"),
}
