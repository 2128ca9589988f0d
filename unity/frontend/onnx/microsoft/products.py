"""Matrix products with what is around them, and activations."""

from __future__ import annotations

import numpy as np

from unity.frontend.products import matmul
from unity.ir.dtype import FLOAT32, INT32, UINT8, Array
from unity.ir.graph import Constant, Expr

from ..layers import convolution
from ..linear import gemm
from ..node import Converter, Node, Value
from ..recurrence.cells import activations


def _fused_matmul(node: Node) -> Value:
    """``alpha * a @ b``, both transposed before, or their leading axis moved, where asked."""
    a, b = node.tensor(0), node.tensor(1)
    a = _turned(node, a, node.int_of("transA", 0), node.int_of("transBatchA", 0))
    b = _turned(node, b, node.int_of("transB", 0), node.int_of("transBatchB", 0))
    found = matmul(node, a, b)
    alpha = node.float_of("alpha", 1.0)
    return found if alpha == 1.0 else node.op("multiply", found, node.number(alpha, found))


def _turned(node: Node, x: Expr, transposed: int, batch: int) -> Expr:
    rank = len(node.shape_of(x))
    order = [*range(rank)]
    if batch and rank > 2:
        order = [*order[1:-1], 0, order[-1]]
    if transposed and rank > 1:
        order[-2:] = order[:-3:-1]
    return x if order == [*range(rank)] else node.op("permute_dims", x, axes=tuple(order))


def _activated(node: Node, x: Expr) -> Expr:
    """What a fused activation makes of a result."""
    name = node.text_of("activation", "")
    if not name:
        return x
    given = node.floats_of("activation_params") or ()
    if name == "Clip" and len(given) == 2:
        return node.op("clip", x, min=given[0], max=given[1])
    (function,) = activations((name,), given[:1], given[1:])
    return function(node, x)


def _fused_gemm(node: Node) -> Value:
    found = gemm(node)
    alpha, beta = node.float_of("activation_alpha", 0.0), node.float_of("activation_beta", 0.0)
    node.ignore("activation_gamma")
    name = node.text_of("activation", "")
    if not name:
        return found
    (function,) = activations((name,), (alpha,), (beta,))
    return function(node, found)


def _fused_conv(node: Node) -> Value:
    """A convolution, its bias and what is added to it, and an activation."""
    x = convolution(node, node.tensor(0), node.tensor(1), 2)
    if node.has(3):
        x = node.binary("add", x, node.tensor(3))
    return _activated(node, x)


def _with_bias(name: str, bias: int) -> Converter:
    def convert(node: Node) -> Value:
        x = node.tensor(0)
        if node.has(bias):
            x = node.binary("add", x, node.tensor(bias))
        return node.op(name, x)

    return convert


def _quick_gelu(node: Node) -> Value:
    x = node.tensor(0)
    inner = node.op("multiply", x, node.number(node.float_of("alpha", 1.702), x))
    return node.op("multiply", x, node.op("sigmoid", inner))


def _bias_add(node: Node) -> Value:
    return node.binary("add", node.binary("add", node.tensor(0), node.tensor(1)), node.tensor(2))


def _bias_split_gelu(node: Node) -> Value:
    """The halves of ``x + bias``, one times GELU of the other."""
    x = node.binary("add", node.tensor(0), node.tensor(1))
    extent = node.shape_of(x)[-1]
    if not isinstance(extent, int):
        raise node.symbolic_gap("halves of unknown extent", extent)
    halves = node.op("split", x, (extent // 2,), axis=-1)
    left, right = node.field(halves, 0), node.field(halves, 1)
    return node.op("multiply", left, node.op("nn.gelu", right))


def _matmul_nbits(node: Node) -> Value:
    """``a @ b.T`` with `b` in blocks of few bits, each with a scale (and a zero point)."""
    depth, columns = node.int_of("K", 0), node.int_of("N", 0)
    bits, block = node.int_of("bits", 4), node.int_of("block_size", 32)
    node.ignore("accuracy_level", "weight_prepacked")
    if bits not in (2, 4, 8) or node.has(4):
        raise node.gap(f"weights of {bits} bits" if not node.has(4) else "groups in another order")
    blocks = -(-depth // block)
    a, b, scales = node.tensor(0), node.tensor(1), node.tensor(2)
    known = _known_weights(node, bits, block)
    if known is not None:
        found = matmul(node, a, node.op("permute_dims", known, axes=(1, 0)))
        return node.binary("add", found, node.tensor(5)) if node.has(5) else found
    whole = _unpacked(node, b, bits, columns * blocks, block)
    scales = node.op("reshape", scales, (columns * blocks, 1))
    middle = float(1 << (bits - 1))
    if node.has(3):
        zero = node.tensor(3)
        if node.dtype_of(zero) == UINT8:
            zero = _unpacked(node, zero, bits, columns, -(-blocks * bits // 8) * 8 // bits)
            zero = node.op("strided_slice", zero, axes=(1,), begin=(0,), end=(blocks,))
        zero = node.op("reshape", node.cast(zero, FLOAT32), (columns * blocks, 1))
        whole = node.op("subtract", node.cast(whole, FLOAT32), zero)
    else:
        wide = node.cast(whole, FLOAT32)
        whole = node.op("subtract", wide, node.number(middle, wide))
    whole = node.op("multiply", whole, node.cast(scales, FLOAT32))
    whole = node.op("reshape", whole, (columns, blocks * block))
    if blocks * block != depth:
        whole = node.op("strided_slice", whole, axes=(1,), begin=(0,), end=(depth,))
    kind = node.dtype_of(a)
    right = node.op("permute_dims", node.cast(whole, kind), axes=(1, 0))
    found = matmul(node, a, right)
    return node.binary("add", found, node.tensor(5)) if node.has(5) else found


def _known_weights(node: Node, bits: int, block: int) -> Expr | None:
    """Constant weights of float32 products, ``(columns, depth)``: dequantized by blocks."""
    depth, columns = node.int_of("K", 0), node.int_of("N", 0)
    blocks = -(-depth // block)
    b, scales = node.tensor(1), node.tensor(2)
    zero = node.tensor(3) if node.has(3) else None
    if not isinstance(b, Constant) or node.dtype_of(node.tensor(0)) != FLOAT32:
        return None
    if zero is None:
        zero = Constant(np.array(1 << bits - 1, np.uint8))
    elif isinstance(zero, Constant) and node.dtype_of(zero) == UINT8:
        zero = Constant(_apart(zero.data.reshape(columns, -1), bits)[:, :blocks])
    else:
        return None
    whole = Constant(_apart(b.data.reshape(columns, -1), bits)[:, :depth], b.name)
    factor = node.cast(node.op("reshape", scales, (columns, blocks)), FLOAT32)
    return node.op("dequantize", whole, factor, zero, axis=1, block=block, out_dtype=FLOAT32)


def _apart(data: Array, bits: int) -> Array:
    """Numbers of few bits, the lowest of a byte first, in bytes of their own."""
    low, shifts = np.uint8((1 << bits) - 1), range(0, 8, bits)
    parts = [(data.astype(np.uint8) >> np.uint8(s)) & low for s in shifts]
    return np.ascontiguousarray(np.stack(parts, axis=-1).reshape(len(data), -1))


def _unpacked(node: Node, x: Expr, bits: int, rows: int, count: int) -> Expr:
    """Numbers of few bits, the lowest of a byte first, as int32 of ``(rows, count)``."""
    each = 8 // bits
    wide = node.cast(node.op("reshape", x, (rows, count // each, 1)), INT32)
    if each > 1:
        shifts = Constant(np.arange(each, dtype=np.int32) * bits)
        low = Constant(np.asarray((1 << bits) - 1, np.int32))
        wide = node.op("bitwise_and", node.op("right_shift", wide, shifts), low)
    return node.op("reshape", wide, (rows, count))


CONVERTERS: dict[str, Converter] = {
    "BiasAdd": _bias_add,
    "BiasGelu": _with_bias("nn.gelu", 1),
    "BiasSplitGelu": _bias_split_gelu,
    "FastGelu": _with_bias("nn.gelu_tanh", 1),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": _with_bias("nn.gelu", 1),
    "MatMulNBits": _matmul_nbits,
    "QuickGelu": _quick_gelu,
    "TransposeMatMul": _fused_matmul,
}
