"""QuantizeLinear and DequantizeLinear: per tensor, axis or block, computed in float32."""

from __future__ import annotations

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.frontend.onnx.elementwise import to_float8
from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.onnx.reading.tensors import dtype_of
from unity.ir.dims import ceildiv, equal
from unity.ir.dtype import FLOAT32, INT32, UINT8, DType
from unity.ir.graph import Constant, Expr


def _along(node: Node, value: Expr, x: Expr) -> Expr:
    """A scale or zero point in the place of the axis it belongs to, or of the blocks there."""
    axis = node.int_of("axis", 1)
    shape, extents = node.shape_of(value), node.shape_of(x)
    if shape in ((), (1,)):
        return node.op("reshape", value, ()) if shape else value
    block = node.int_of("block_size", 0)
    axis = node.axis(axis, len(extents))
    if block and len(shape) == len(extents):
        return _of_blocks(node, value, x, axis, block)
    if len(shape) != 1 or block:
        raise UnityError(f"a scale or zero point of shape {shape} for an input of {extents}")
    return node.op("reshape", value, (-1, *(1,) * (len(extents) - axis - 1)))


def _along_axis(node: Node, x: Expr, narrow: DType) -> tuple[int, Expr, Expr] | None:
    """The axis, scale and zero point of an op `quantize` or `dequantize`; None for blocks."""
    rank = len(node.shape_of(x))
    if node.int_of("block_size", 0):
        return None
    scale = _of_axis(node, node.tensor(1))
    none = Constant(np.zeros((), narrow.numpy))
    zero = _of_axis(node, node.tensor(2)) if node.has(2) else none
    alone = all(node.shape_of(p) == () for p in (scale, zero))
    # The axis is ignored where there is one scale, whatever it is.
    given = node.int_of("axis", 1)
    return -1 if alone else node.axis(given, rank), scale, zero


def _in_blocks(node: Node, x: Expr, scale: Expr, block: int) -> bool:
    """Whether scales belong to blocks whose number is known."""
    shape, extents = node.shape_of(scale), node.shape_of(x)
    if not block or len(shape) != len(extents):
        return False
    axis = node.axis(node.int_of("axis", 1), len(extents))
    return equal(shape[axis], ceildiv(extents[axis], block))


def _of_axis(node: Node, value: Expr) -> Expr:
    """A scale or zero point: one, or a vector."""
    return node.op("reshape", value, ()) if node.shape_of(value) == (1,) else value


def _of_blocks(node: Node, value: Expr, x: Expr, axis: int, block: int) -> Expr:
    """Each number as often as its block has places; the last block may have fewer."""
    extent, blocks = node.shape_of(x)[axis], node.shape_of(value)[axis]
    if not equal(blocks, ceildiv(extent, block)):
        raise node.symbolic_gap(f"{blocks} blocks of {block} in {extent}", blocks, extent)
    found = node.op("repeat", value, repeats=block, axis=axis)
    if equal(node.shape_of(found)[axis], extent):
        return found
    return node.op("strided_slice", found, axes=(axis,), begin=(0,), end=(extent,))


def _dequantize(node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    kind, narrow = node.dtype_of(scale), node.dtype_of(x)
    code = node.int_of("output_dtype", 0)
    target = dtype_of(code, "the attribute 'output_dtype'") if code else kind
    if not kind.is_float or not target.is_float:
        raise node.gap(f"a scale of {kind}, or a result of {target}")
    if not narrow.is_int and narrow.kind not in ("float8", "float4"):
        raise node.gap(f"elements of {narrow}")
    if narrow.is_int and narrow.bits <= INT32.bits and (along := _along_axis(node, x, narrow)):
        axis, scale, zero = along
        return node.op("dequantize", x, scale, zero, axis=axis, out_dtype=target)
    block = node.int_of("block_size", 0)
    if narrow.is_int and narrow.bits <= INT32.bits and _in_blocks(node, x, scale, block):
        zero = node.tensor(2) if node.has(2) else Constant(np.zeros((), narrow.numpy))
        axis = node.axis(node.int_of("axis", 1), len(node.shape_of(x)))
        kinds = {"axis": axis, "out_dtype": target, "block": block}
        return node.op("dequantize", x, scale, zero, **kinds)
    between = INT32 if narrow.is_int else FLOAT32
    wide = node.cast(x, between)
    if node.has(2):
        zero = node.cast(_along(node, node.tensor(2), x), between)
        wide = node.op("subtract", wide, zero)
    return node.cast(node.op("multiply", node.cast(wide, kind), _along(node, scale, x)), target)


def _quantize(node: Node) -> Value:
    if node.int_of("precision", 0) not in (0, 1):
        raise node.gap("precision other than float32")
    x, scale = node.tensor(0), node.tensor(1)
    code = node.int_of("output_dtype", 0)
    target = dtype_of(code, "the attribute 'output_dtype'") if code else UINT8
    if node.has(2):
        target = node.dtype_of(node.tensor(2))
    saturate = bool(node.int_of("saturate", 1))  # only matters to float8
    whole = target.is_int and target.bits in (2, 4, 8, 16)
    if whole and (along := _along_axis(node, x, target)):
        axis, scale, point = along
        wide = node.cast(x, FLOAT32)
        return node.op("quantize", wide, scale, point, axis=axis, out_dtype=target)
    zero = _along(node, node.tensor(2), x) if node.has(2) else None
    factor = node.cast(_along(node, scale, x), FLOAT32)
    found = node.op("divide", node.cast(x, FLOAT32), factor)
    if target.kind in ("float8", "float4"):
        return to_float8(node, found, target, saturate)
    if not whole:
        raise node.gap(f"elements of {target}")
    return _rounded(node, found, zero, target)


def _rounded(node: Node, x: Expr, zero: Expr | None, target: DType) -> Expr:
    found = node.op("round", x)
    if zero is not None:
        found = node.op("add", found, node.cast(zero, FLOAT32))
    low, high = te.min_value(target).value, te.max_value(target).value
    return node.cast(node.op("clip", found, min=float(low), max=float(high)), target)


CONVERTERS: dict[str, Converter] = {
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
}
