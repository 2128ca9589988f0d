"""Elementwise nodes of one input, casts and clips."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.frontend.sizes import Sizes
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType, dtype
from unity.ir.graph import Constant, Expr
from unity.op.table import OF_ONNX

from .node import Converter, Node, Outcome, Value
from .random import dropped
from .reading.tensors import dtype_of

_UNARY = [name for name, op in OF_ONNX.items() if op.pattern == "elementwise"]
_OF_SIZES = (INT32, INT64, FLOAT32, FLOAT64)
"""The dtypes that are taken to hold any size; a narrower one wraps, as data does."""
_WHOLE = ("Floor", "Ceil", "Round")


def _unary(op_type: str) -> Converter:
    def convert(node: Node) -> Value:
        known = node.symbolic(0)
        if known is not None and op_type in _WHOLE:
            return known[0]
        if known is not None and op_type == "Neg":
            return Sizes(np.asarray(-known[0].dims, dtype=object), known[0].dtype)
        return node.op(OF_ONNX[op_type].name, node.tensor(0))

    return convert


def _identity(node: Node) -> Outcome:
    return node.outcome(0)


def _is_inf(node: Node) -> Value:
    x = node.tensor(0)
    negative, positive = node.int_of("detect_negative", 1), node.int_of("detect_positive", 1)
    found = node.op("isinf", x)
    zero = node.number(0, x)
    if not negative:
        found = node.op("logical_and", found, node.op("greater", x, zero))
    if not positive:
        found = node.op("logical_and", found, node.op("less", x, zero))
    return found


def _cast(node: Node) -> Value:
    return _cast_value(node, dtype_of(node.int_of("to", 0), "the attribute 'to'"))


def _cast_value(node: Node, target: DType) -> Value:
    """The input as another dtype; unknown sizes stay sizes where that can hold them."""
    node.ignore("round_mode")  # only matters to float8e8m0
    saturate = bool(node.int_of("saturate", 1))
    value = node.value(0)
    if isinstance(value, Sizes) and value.constant() is None and target in _OF_SIZES:
        return Sizes(value.dims, target)
    x = node.tensor(0)
    if target.kind in ("float8", "float4"):
        return to_float8(node, x, target, saturate)
    return node.cast(x, target)


def to_float8(node: Node, x: Expr, target: DType, saturate: bool) -> Expr:
    """A cast in which what is too large becomes the largest finite number, if so wanted."""
    if node.dtype_of(x) == target:
        return x
    if not node.dtype_of(x).is_float or node.dtype_of(x).kind in ("float8", "float4"):
        x = node.cast(x, FLOAT32)
    if saturate and target.kind == "float8":  # all others saturate by themselves
        every = np.arange(128, dtype=np.uint8).view(target.numpy).astype(np.float32)
        most = float(every[np.isfinite(every)].max())
        x = node.op("clip", x, min=-most, max=most)
    return node.cast(x, target)


def _cast_like(node: Node) -> Value:
    return _cast_value(node, node.dtype_of(node.tensor(1)))


def _clip(node: Node) -> Value:
    x = node.tensor(0)
    if node.version < 11:
        bounds = {n: node.float_of(n, np.nan) for n in ("min", "max")}
        known = {n: None if np.isnan(b) else b for n, b in bounds.items()}
        return node.op("clip", x, **known)
    kind = node.dtype_of(x)
    found: dict[str, float | None] = {"min": None, "max": None}
    for index, name in ((1, "min"), (2, "max")):
        if not node.has(index):
            continue
        bound = node.constant(index)
        if bound is None or bound.size != 1 or dtype(bound.dtype) != kind:
            return _clip_by_tensors(node, x)
        number = bound.reshape(())
        found[name] = int(number) if kind.is_int else float(number.astype(np.float64))
    return node.op("clip", x, **found)


def _clip_by_tensors(node: Node, x: Expr) -> Value:
    if node.has(1):
        x = node.binary("maximum", x, node.tensor(1))
    return node.binary("minimum", x, node.tensor(2)) if node.has(2) else x


def _bit_cast(node: Node) -> Value:
    """The same bits as another dtype of as many."""
    x = node.tensor(0)
    kind, to = node.dtype_of(x), dtype_of(node.int_of("to", 1), "the attribute 'to'")
    if kind.bits != to.bits:
        raise UnityError(f"{kind} has {kind.bits} bits, {to} has {to.bits}")
    if kind == to:
        return x
    if BOOL in (kind, to):
        return node.cast(x, to)  # bools are bytes of 0 and 1
    if any(t.is_float and t not in (FLOAT32, FLOAT64) for t in (kind, to)):
        raise node.gap(f"{kind} as {to}")
    return node.op("bitcast", x, dtype=to)


def _dropout(node: Node) -> tuple[Value, Value]:
    """Nothing at inference; the mask is all true."""
    if _may_train(node):
        return dropped(node)
    node.ignore("ratio", "seed")
    x = node.tensor(0)
    return x, node.op("ones_like", x, dtype=BOOL)


def _may_train(node: Node) -> bool:
    if not node.has(2):
        return False
    known = node.constant(2)
    return known is None or bool(known.any())


def _is_used(node: Node, index: int) -> bool:
    return index < len(node.proto.output) and bool(node.proto.output[index])


def _dropout_or_identity(node: Node) -> Value | tuple[Value, Value]:
    if _is_used(node, 1):
        return _dropout(node)
    if _may_train(node):
        return dropped(node)[0]
    node.ignore("ratio", "seed")
    return node.value(0)


def constant_of(node: Node, value: float, like: Expr) -> Constant:
    """A scalar of another tensor's dtype."""
    return node.number(value, like)


CONVERTERS: dict[str, Converter] = {
    **{op_type: _unary(op_type) for op_type in _UNARY},
    "Identity": _identity,
    "IsInf": _is_inf,
    "Cast": _cast,
    "CastLike": _cast_like,
    "BitCast": _bit_cast,
    "Clip": _clip,
    "Dropout": _dropout_or_identity,
}
