"""QuantizeLinear and DequantizeLinear, per tensor or per axis, computed in float32."""

from __future__ import annotations

from unity import te
from unity.ir.dtype import FLOAT32, INT32, UINT8
from unity.ir.graph import Expr

from .node import Converter, Node, Value
from .tensors import dtype_of


def _along(node: Node, value: Expr, x: Expr) -> Expr:
    """A scale or zero point in the place of the axis it belongs to."""
    axis = node.int_of("axis", 1)
    shape, rank = node.shape_of(value), len(node.shape_of(x))
    if shape in ((), (1,)):
        return node.op("reshape", value, ()) if shape else value
    if len(shape) != 1:
        raise node.gap("blocked quantization")
    trailing = rank - node.axis(axis, rank) - 1
    return node.op("reshape", value, (-1, *(1,) * trailing))


def _no_blocks(node: Node) -> None:
    if node.int_of("block_size", 0):
        raise node.gap("blocked quantization")


def _dequantize(node: Node) -> Value:
    _no_blocks(node)
    x, scale = node.tensor(0), node.tensor(1)
    kind = node.dtype_of(scale)
    code = node.int_of("output_dtype", 0)
    if not kind.is_float or (code and dtype_of(code, "the attribute 'output_dtype'") != kind):
        raise node.gap(f"a scale of {kind}, or an output of another dtype than the scale")
    factor = _along(node, scale, x)
    if not node.dtype_of(x).is_int or node.dtype_of(x).bits < 8:
        raise node.gap(f"elements of {node.dtype_of(x)}")
    wide = node.cast(x, INT32)
    if node.has(2):
        zero = node.cast(_along(node, node.tensor(2), x), INT32)
        wide = node.op("subtract", wide, zero)
    return node.op("multiply", node.cast(wide, kind), factor)


def _quantize(node: Node) -> Value:
    _no_blocks(node)
    node.ignore("saturate")  # only matters to float8
    if node.int_of("precision", 0) not in (0, 1):
        raise node.gap("precision other than float32")
    x, scale = node.tensor(0), node.tensor(1)
    code = node.int_of("output_dtype", 0)
    target = dtype_of(code, "the attribute 'output_dtype'") if code else UINT8
    zero = _along(node, node.tensor(2), x) if node.has(2) else None
    if zero is not None:
        target = node.dtype_of(zero)
    if not target.is_int or target.bits not in (8, 16):
        raise node.gap(f"elements of {target}")
    factor = node.cast(_along(node, scale, x), FLOAT32)
    found = node.op("round", node.op("divide", node.cast(x, FLOAT32), factor))
    if zero is not None:
        found = node.op("add", found, node.cast(zero, FLOAT32))
    low, high = te.min_value(target).value, te.max_value(target).value
    return node.cast(node.op("clip", found, min=float(low), max=float(high)), target)


CONVERTERS: dict[str, Converter] = {
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
}
