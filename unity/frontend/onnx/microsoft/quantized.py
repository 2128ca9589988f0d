"""Operators on 8-bit integers, each computed in float32 between two quantizations.

onnxruntime computes them so, some by tables; results differ by one quantum at most where a value
lies between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unity.frontend.products import matmul
from unity.ir.dtype import FLOAT32, INT32
from unity.ir.graph import Expr

from ..node import Converter, Node, Value
from ..pooling import average_pool, global_average
from ..quantized.dynamic import dynamically_quantized
from ..quantized.integers import centred


def _real(node: Node, value: int, scale: int, zero: int, axis: int | None = None) -> Expr:
    """An operand as what its integers stand for."""
    x, by = node.tensor(value), node.cast(node.tensor(scale), FLOAT32)
    wide = node.cast(centred(node, value, zero, axis), FLOAT32)
    shape = node.shape_of(by)
    if shape in ((), (1,)):
        return node.op("multiply", wide, node.op("reshape", by, ()))
    if axis is None or len(shape) != 1:
        raise node.gap(f"a scale of shape {shape}")
    rank = len(node.shape_of(x))
    along = node.op("reshape", by, (-1, *(1,) * (rank - 1 - axis % rank)))
    return node.op("multiply", wide, along)


def _quantized(node: Node, x: Expr, scale: int, zero: int, like: int) -> Expr:
    """A result as integers."""
    point = node.optional(zero)
    kind = node.dtype_of(node.tensor(like) if point is None else point)
    none = node.op("zeros", (), dtype=kind)
    point = none if point is None else node.op("reshape", point, ())
    by = node.op("reshape", node.cast(node.tensor(scale), FLOAT32), ())
    return node.op("quantize", x, by, point, axis=-1, out_dtype=kind)


def _binary(name: str) -> Converter:
    def convert(node: Node) -> Value:
        a, b = _real(node, 0, 1, 2), _real(node, 3, 4, 5)
        return _quantized(node, node.binary(name, a, b), 6, 7, 0)

    return convert


def _unary(make: Callable[[Node, Expr], Expr]) -> Converter:
    def convert(node: Node) -> Value:
        return _quantized(node, make(node, _real(node, 0, 1, 2)), 3, 4, 0)

    return convert


def _leaky(node: Node, x: Expr) -> Expr:
    return node.op("nn.leakyrelu", x, alpha=node.float_of("alpha", 0.01))


def _softmax(node: Node, x: Expr) -> Expr:
    """Along an axis, or (as before operator set 13) all axes from one on."""
    rank = len(node.shape_of(x))
    axis = node.axis(node.int_of("axis", -1), rank)
    if node.int_of("opset", 13) >= 13 or axis == rank - 1:
        return node.op("nn.softmax", x, axis=axis)
    raise node.gap("a softmax over several axes")


def _pooled(global_: bool) -> Callable[[Node, Expr], Expr]:
    def make(node: Node, x: Expr) -> Expr:
        last = bool(node.int_of("channels_last", 0))
        rank = len(node.shape_of(x))
        if last:
            x = node.op("permute_dims", x, axes=(0, rank - 1, *range(1, rank - 1)))
        found = global_average(node, x) if global_ else average_pool(node, x)
        if last:
            found = node.op("permute_dims", found, axes=(0, *range(2, rank), 1))
        return found

    return make


def _concat(node: Node) -> Value:
    """Scale and zero point of the result, then each part with its own."""
    parts = [_real(node, k, k + 1, k + 2) for k in range(2, node.count, 3)]
    axis = node.axis(node.int_of("axis", 0), len(node.shape_of(parts[0])))
    whole = parts[0] if len(parts) == 1 else node.op("concat", tuple(parts), axis=axis)
    return _quantized(node, whole, 0, 1, 2)


def _where(node: Node) -> Value:
    a, b = _real(node, 1, 2, 3), _real(node, 4, 5, 6)
    return _quantized(node, node.op("where", node.tensor(0), a, b), 7, 8, 1)


def _gemm(node: Node) -> Value:
    """``alpha * a @ b + c``, `c` of the scale of the products; float32 if no scale is given."""
    a, b = centred(node, 0, 2), node.cast(node.tensor(3), INT32)
    turned = bool(node.int_of("transB", 0))
    if node.has(5):
        zero = node.cast(node.tensor(5), INT32)
        if node.shape_of(zero) and turned:
            zero = node.op("reshape", zero, (-1, 1))
        b = node.op("subtract", b, zero)
    if node.int_of("transA", 0):
        a = node.op("permute_dims", a, axes=(1, 0))
    sums = matmul(node, a, node.op("permute_dims", b, axes=(1, 0)) if turned else b)
    if node.has(6):
        sums = node.binary("add", sums, node.tensor(6))
    scale = node.binary("multiply", node.tensor(1), node.tensor(4))
    alpha = node.float_of("alpha", 1.0)
    if alpha != 1.0:
        scale = node.op("multiply", scale, node.number(alpha, scale))
    found = node.binary("multiply", node.cast(sums, FLOAT32), scale)
    return _quantized(node, found, 7, 8, 0) if node.has(7) else found


def _matmul_to_float(node: Node) -> Value:
    """The product of 8-bit integers in float32: a, b, their scales, zero points, a bias."""
    sums = node.cast(matmul(node, centred(node, 0, 4), centred(node, 1, 5, -1)), FLOAT32)
    return _scaled(node, sums, node.binary("multiply", node.tensor(2), node.tensor(3)), 6)


def _scaled(node: Node, sums: Expr, scale: Expr, bias: int) -> Expr:
    found = node.binary("multiply", sums, scale)
    return node.binary("add", found, node.tensor(bias)) if node.has(bias) else found


def _dynamic_matmul(node: Node) -> Value:
    """A float32 operand, quantized as it comes, times integers: a, b, scale, zero point, bias."""
    a, scale = dynamically_quantized(node, node.tensor(0))
    sums = node.cast(matmul(node, a, centred(node, 1, 3, -1)), FLOAT32)
    return _scaled(node, sums, node.binary("multiply", node.tensor(2), scale), 4)


def _reduced_mean(node: Node) -> Value:
    axes: Sequence[int] = node.ints_of("axes") or range(len(node.shape_of(node.tensor(0))))
    keeps = bool(node.int_of("keepdims", 1))
    x = node.op("mean", _real(node, 0, 1, 2), axis=tuple(axes), keepdims=keeps)
    return _quantized(node, x, 3, 4, 0)


CONVERTERS: dict[str, Converter] = {
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "MatMulIntegerToFloat": _matmul_to_float,
    "QGemm": _gemm,
    "QLinearAdd": _binary("add"),
    "QLinearAveragePool": _unary(_pooled(global_=False)),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _unary(_pooled(global_=True)),
    "QLinearLeakyRelu": _unary(_leaky),
    "QLinearMul": _binary("multiply"),
    "QLinearReduceMean": _reduced_mean,
    "QLinearSigmoid": _unary(lambda node, x: node.op("sigmoid", x)),
    "QLinearSoftmax": _unary(_softmax),
    "QLinearWhere": _where,
}
