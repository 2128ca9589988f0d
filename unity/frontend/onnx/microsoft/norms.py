"""Normalizations of sums, and what BERT begins with."""

from __future__ import annotations

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import FLOAT32, INT32, INT64
from unity.ir.graph import Constant, Expr

from ..node import Converter, Node, Value

_EPSILON = 1e-12
"""What is added to variances and mean squares where models don't say."""


def _is_asked_for(node: Node, output: int) -> bool:
    return output < len(node.proto.output) and bool(node.proto.output[output])


def _normalized(node: Node, total: Expr, gamma: Expr, beta: Expr | None, epsilon: float) -> Expr:
    """Over the last axis, by its mean and deviation."""
    axes = (len(node.shape_of(total)) - 1,)
    if beta is None:
        beta = node.op("zeros_like", gamma)
    return node.op("nn.layer_norm", total, gamma, beta, axes=axes, epsilon=epsilon)


def _skip_layer_norm(node: Node) -> Value | list[Value]:
    """``normalize(input + skip + bias)``, and the sum."""
    total = node.binary("add", node.tensor(0), node.tensor(1))
    if node.has(4):
        total = node.binary("add", total, node.tensor(4))
    epsilon = node.float_of("epsilon", _EPSILON)
    found = _normalized(node, total, node.tensor(2), node.optional(3), epsilon)
    return _with_statistics(node, found, total, epsilon)


def _with_statistics(node: Node, found: Expr, total: Expr, epsilon: float) -> list[Value]:
    if not any(_is_asked_for(node, k) for k in (1, 2)):
        return [found, found, found, total]
    wide = node.cast(total, FLOAT32)
    mean = node.op("mean", wide, axis=(-1,), keepdims=True)
    variance = node.op("variance", wide, axis=(-1,), keepdims=True)
    deviation = node.op("rsqrt", node.op("add", variance, node.number(epsilon, variance)))
    return [found, mean, deviation, total]


def _skip_rms_norm(node: Node) -> list[Value]:
    """``input + skip + bias`` over the root of its mean square, and the sum."""
    total = node.binary("add", node.tensor(0), node.tensor(1))
    if node.has(3):
        total = node.binary("add", total, node.tensor(3))
    if any(_is_asked_for(node, k) for k in (1, 2)):
        raise node.gap("statistics of a simplified normalization")
    axes = (len(node.shape_of(total)) - 1,)
    epsilon = node.float_of("epsilon", _EPSILON)
    found = node.op("nn.rms_norm", total, node.tensor(2), axes=axes, epsilon=epsilon)
    return [found, found, found, total]


def _rms_norm(node: Node) -> list[Value]:
    """SimplifiedLayerNormalization, which onnxruntime puts into ONNX's own domain."""
    x = node.tensor(0)
    rank = node.rank(0)
    node.ignore("stash_type")
    axes = tuple(range(node.axis(node.int_of("axis", -1), rank), rank))
    epsilon = node.float_of("epsilon", 1e-5)
    if _is_asked_for(node, 1):
        raise node.gap("statistics of a simplified normalization")
    return [node.op("nn.rms_norm", x, node.tensor(1), axes=axes, epsilon=epsilon)]


def _embed_layer_norm(node: Node) -> list[Value]:
    """Embeddings of words, places and segments, summed and normalized; lengths from a mask."""
    ids = node.cast(node.tensor(0), INT64)
    batch, length = node.shape_of(ids)
    words = node.op("take", node.tensor(2), ids, axis=0)
    if node.has(8):
        at = node.cast(node.tensor(8), INT64)
    else:
        at = node.op("reshape", node.op("arange", 0, length, 1, dtype=INT64), (1, length))
    total = node.binary("add", words, node.op("take", node.tensor(3), at, axis=0))
    if node.has(1) is not node.has(4):
        raise UnityError("needs both segments and their embeddings, or neither")
    if node.has(1):
        segments = node.cast(node.tensor(1), INT64)
        total = node.binary("add", total, node.op("take", node.tensor(4), segments, axis=0))
    epsilon = node.float_of("epsilon", _EPSILON)
    node.ignore("mask_index_type")
    found = _normalized(node, total, node.tensor(5), node.tensor(6), epsilon)
    if node.has(7):
        lengths: Expr = node.op("sum", node.cast(node.tensor(7), INT32), axis=(1,))
    else:
        lengths = node.op("full", (batch,), Constant(np.asarray(0, np.int32)))
    return [found, lengths, total]


CONVERTERS: dict[str, Converter] = {
    "EmbedLayerNormalization": _embed_layer_norm,
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_rms_norm,
}
STANDARD: dict[str, Converter] = {"SimplifiedLayerNormalization": _rms_norm}
"""What onnxruntime adds to ONNX's own domain."""
