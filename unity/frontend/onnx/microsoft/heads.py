"""Attention of heads, as the operators here share it: scores, masks, caches, rotation."""

from __future__ import annotations

from math import prod

from unity.frontend.products import matmul
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, as_dim
from unity.ir.dtype import INT64
from unity.ir.graph import Expr

from ..node import Node

MASKED = -10000.0
"""What onnxruntime adds to scores that a mask leaves out, if nothing else is said."""


def split_heads(node: Node, x: Expr, heads: int) -> Expr:
    """``(batch, length, heads * size)`` as ``(batch, heads, length, size)``."""
    batch, length, width = node.shape_of(x)
    if not isinstance(width, int):
        raise node.symbolic_gap("heads of unknown size", width)
    apart = node.op("reshape", x, (batch, length, heads, width // heads))
    return node.op("permute_dims", apart, axes=(0, 2, 1, 3))


def joined_heads(node: Node, x: Expr) -> Expr:
    """``(batch, heads, length, size)`` as ``(batch, length, heads * size)``."""
    batch, heads, length, size = node.shape_of(x)
    turned = node.op("permute_dims", x, axes=(0, 2, 1, 3))
    return node.op("reshape", turned, (batch, length, prod((heads, size))))


def attended(
    node: Node,
    query: Expr,
    key: Expr,
    value: Expr,
    bias: Expr | None,
    scale: float,
    softcap: float = 0.0,
) -> tuple[Expr, Expr]:
    """``softmax(scale * q k^T + bias) v`` for each head, and the scores.

    Args:
        node: What this is emitted for.
        query: ``(batch, heads, rows, size)``.
        key: ``(batch, heads, keys, size)``.
        value: ``(batch, heads, keys, its own size)``.
        bias: What is added to scores, of their shape or broadcast to it.
        scale: What they are multiplied by; 0 for one over the root of the size.
        softcap: What bounds them, by a tanh; 0 if nothing does.
    """
    size = node.shape_of(query)[-1]
    if scale == 0.0:
        if not isinstance(size, int):
            raise node.symbolic_gap("heads of unknown size", size)
        scale = float(size) ** -0.5
    scores = matmul(node, query, node.op("permute_dims", key, axes=(0, 1, 3, 2)))
    scores = node.op("multiply", scores, node.number(scale, scores))
    if softcap:
        cap = node.number(softcap, scores)
        scores = node.op("multiply", node.op("tanh", node.op("divide", scores, cap)), cap)
    if bias is not None:
        scores = node.binary("add", scores, node.cast(bias, node.dtype_of(scores)))
    return matmul(node, node.op("nn.softmax", scores, axis=-1), value), scores


def places(node: Node, count: Dim, shape: tuple[Dim, ...]) -> Expr:
    """The numbers from 0 on, in a shape."""
    return node.op("reshape", node.op("arange", 0, count, 1, dtype=INT64), shape)


def barred(node: Node, allowed: Expr, like: Expr, value: float) -> Expr:
    """What is added to scores: 0 where a mask holds, else a number."""
    return node.op("where", allowed, node.number(0.0, like), node.number(value, like))


def causal(node: Node, rows: Dim, keys: Dim) -> Expr:
    """Which keys each of the last rows may see, ``(rows, keys)``."""
    row, key = places(node, rows, (rows, 1)), places(node, keys, (1, keys))
    last = node.op("add", row, node.materialize(sizes_of(as_dim(keys - rows))))
    return node.op("less_equal", key, last)


def rotated(node: Node, x: Expr, cosine: Expr, sine: Expr, *, interleaved: bool) -> Expr:
    """Vectors whose first elements are turned in pairs; the others stay.

    Args:
        node: What this is emitted for.
        x: Of shape ``(..., size)``.
        cosine: Of the angles, broadcast to ``(..., pairs)``.
        sine: The same.
        interleaved: Whether neighbours are a pair, not elements of two halves.
    """
    size, pairs = node.shape_of(x)[-1], node.shape_of(cosine)[-1]
    if not isinstance(size, int) or not isinstance(pairs, int):
        raise node.symbolic_gap("a rotation of unknown size", size, pairs)
    kept = None
    if 2 * pairs < size:
        parts = node.op("split", x, (2 * pairs,), axis=-1)
        x, kept = node.field(parts, 0), node.field(parts, 1)
    leading = node.shape_of(x)[:-1]
    if interleaved:
        apart = node.op("reshape", x, (*leading, pairs, 2))
        halves = node.op("split", apart, (1,), axis=-1)
        a, b = (node.op("squeeze", node.field(halves, k), axis=(-1,)) for k in range(2))
    else:
        halves = node.op("split", x, (pairs,), axis=-1)
        a, b = node.field(halves, 0), node.field(halves, 1)
    cosine, sine = (node.cast(t, node.dtype_of(x)) for t in (cosine, sine))

    def times(u: Expr, v: Expr) -> Expr:
        return node.binary("multiply", u, v)

    first = node.op("subtract", times(a, cosine), times(b, sine))
    second = node.op("add", times(a, sine), times(b, cosine))
    if interleaved:
        wide = tuple(node.op("expand_dims", t, axis=-1) for t in (first, second))
        found = node.op("reshape", node.op("concat", wide, axis=-1), (*leading, 2 * pairs))
    else:
        found = node.op("concat", (first, second), axis=-1)
    return found if kept is None else node.op("concat", (found, kept), axis=-1)
