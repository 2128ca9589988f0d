"""Products and convolutions of integers: MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv.

Operands are taken off their zero points and summed in int32, exactly. What is quantized again is
scaled in float32, rounded to even and clipped.
"""

from __future__ import annotations

from unity import te
from unity.errors import UnityError
from unity.frontend.onnx.layers import convolution
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.products import inner_aligned, matmul
from unity.ir.dtype import FLOAT32, INT32
from unity.ir.graph import Expr


def centred(
    node: Node, value: int, zero: int, axis: int | None = None, narrow: Expr | None = None
) -> Expr:
    """An operand without its zero point, in int32.

    Args:
        node: The node.
        value: Which input.
        zero: Which input its zero point is, if there is one.
        axis: The axis along which zero points may differ.
        narrow: The operand, where it is more than the input: of a known shape.
    """
    x = node.cast(node.tensor(value) if narrow is None else narrow, INT32)
    point = node.optional(zero)
    if point is None:
        return x
    return node.op("subtract", x, node.cast(_along(node, point, x, axis), INT32))


def _along(node: Node, point: Expr, x: Expr, axis: int | None) -> Expr:
    """A zero point or a scale where it belongs: one number, or one for each place of an axis."""
    shape, rank = node.shape_of(point), len(node.shape_of(x))
    if shape in ((), (1,)):
        return node.op("reshape", point, ()) if shape else point
    if len(shape) != 1:
        if len(shape) == rank:
            return point
        raise node.gap(f"scales or zero points of shape {shape}")
    if axis is None:
        raise node.gap("several zero points along this operand")
    return node.op("reshape", point, (-1, *(1,) * (rank - 1 - axis % rank)))


def _matmul_integer(node: Node) -> Value:
    a, b = inner_aligned(node, node.tensor(0), node.tensor(1))
    return matmul(node, centred(node, 0, 2, -2, a), centred(node, 1, 3, -1, b))


def _conv_integer(node: Node) -> Value:
    return convolution(node, centred(node, 0, 2), centred(node, 1, 3, 0), 0)


def _qlinear_matmul(node: Node) -> Value:
    a, b = inner_aligned(node, node.tensor(0), node.tensor(3))
    found = matmul(node, centred(node, 0, 2, -2, a), centred(node, 3, 5, -1, b))
    scale = _factor(node, found, (1, -2), (4, -1), 6)
    return _requantized(node, found, scale, 7)


def _qlinear_conv(node: Node) -> Value:
    found = convolution(node, centred(node, 0, 2), centred(node, 3, 5, 0), 0)
    if node.has(8):
        rank = len(node.shape_of(found))
        bias = node.op("reshape", node.tensor(8), (1, -1, *(1,) * (rank - 2)))
        found = node.op("add", found, bias)
    return _requantized(node, found, _factor(node, found, (1, None), (4, 1), 6), 7)


def _factor(
    node: Node, found: Expr, a: tuple[int, int | None], b: tuple[int, int | None], out: int
) -> Expr:
    """What sums of products are multiplied by: scales of both operands over that of the result."""
    left, right = (
        node.cast(_along(node, node.tensor(i), found, axis), FLOAT32) for i, axis in (a, b)
    )
    whole = _along(node, node.tensor(out), found, None)
    return node.op("divide", node.op("multiply", left, right), node.cast(whole, FLOAT32))


def _requantized(node: Node, found: Expr, scale: Expr, zero: int) -> Expr:
    point = node.tensor(zero)
    target = node.dtype_of(point)
    if not target.is_int or target.bits != 8:
        raise UnityError(f"a result of {target}")
    rounded = node.op("round", node.op("multiply", node.cast(found, FLOAT32), scale))
    moved = node.op("add", rounded, node.cast(_along(node, point, found, None), FLOAT32))
    low, high = te.min_value(target).value, te.max_value(target).value
    return node.cast(node.op("clip", moved, min=float(low), max=float(high)), target)


CONVERTERS: dict[str, Converter] = {
    "ConvInteger": _conv_integer,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
}
