"""Attention, MultiHeadAttention, QAttention, and RotaryEmbedding."""

from __future__ import annotations

from unity.errors import UnityError
from unity.frontend.products import matmul
from unity.ir.dims import Dim, equal
from unity.ir.dtype import FLOAT32, INT64
from unity.ir.graph import Expr

from ..node import Converter, Node, Value
from ..quantized.integers import centred
from .heads import (
    MASKED,
    attended,
    barred,
    causal,
    joined_heads,
    places,
    rotated,
    split_heads,
)


def _attention(node: Node) -> list[Value]:
    """Of rows with themselves: one product gives queries, keys and values."""
    x = node.tensor(0)
    return _of_projected(node, matmul(node, x, node.tensor(1)), 2, 3, 4, 5)


def _quantized_attention(node: Node) -> list[Value]:
    """The same of 8-bit integers: input, weight, bias, their scales, mask, zero points, past."""
    sums = node.cast(matmul(node, centred(node, 0, 6), centred(node, 1, 7, -1)), FLOAT32)
    scale = node.binary("multiply", node.tensor(3), node.tensor(4))
    return _of_projected(node, node.binary("multiply", sums, scale), 2, 5, 8, -1)


def _of_projected(
    node: Node, projected: Expr, bias: int, mask: int, past: int, scores: int
) -> list[Value]:
    """Attention by what a product gives, ``(batch, length, queries and keys and values)``."""
    heads = node.int_of("num_heads", 0)
    if node.int_of("do_rotary", 0) or node.int_of("past_present_share_buffer", 0):
        raise node.gap("rotation within, or a cache that is written in place")
    node.ignore("do_rotary", "past_present_share_buffer", "rotary_embedding_dim")
    if node.has(bias):
        projected = node.binary("add", projected, node.tensor(bias))
    width = node.shape_of(projected)[-1]
    if not isinstance(width, int):
        raise node.symbolic_gap("weights of unknown width", width)
    sizes = node.ints_of("qkv_hidden_sizes") or (width // 3,) * 3
    parts = node.op("split", projected, (sizes[0], sizes[0] + sizes[1]), axis=-1)
    query, key, value = (split_heads(node, node.field(parts, k), heads) for k in range(3))
    present: Expr | None = None
    if node.has(past):
        old = node.tensor(past)
        both = node.op("split", old, (1,), axis=0)
        before = [node.op("squeeze", node.field(both, k), axis=(0,)) for k in range(2)]
        key = node.op("concat", (before[0], key), axis=2)
        value = node.op("concat", (before[1], value), axis=2)
    if len(node.proto.output) > 1 and node.proto.output[1]:
        wide = tuple(node.op("expand_dims", t, axis=0) for t in (key, value))
        present = node.op("concat", wide, axis=0)
    rows, keys = node.shape_of(query)[2], node.shape_of(key)[2]
    added = _mask(node, mask, query, rows, keys)
    added = _plus(node, added, node.optional(scores) if scores >= 0 else None)
    if node.int_of("unidirectional", 0):
        added = _plus(node, added, barred(node, causal(node, rows, keys), query, LOWEST))
    found, _ = attended(node, query, key, value, added, node.float_of("scale", 0.0))
    result = joined_heads(node, found)
    return [result] if present is None else [result, present]


LOWEST = -3.4e38
"""What is added where no key may be seen at all."""


def _plus(node: Node, a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return a if b is None else b
    return node.binary("add", a, node.cast(b, node.dtype_of(a)))


def _mask(node: Node, index: int, query: Expr, rows: Dim, keys: Dim) -> Expr | None:
    """What a mask adds to scores: of keys, of pairs, or given as lengths."""
    value = node.float_of("mask_filter_value", MASKED)
    if not node.has(index):
        return None
    mask = node.cast(node.tensor(index), INT64)
    shape = node.shape_of(mask)
    batch = node.shape_of(query)[0]
    zero = node.number(0, mask)
    if len(shape) == 2:
        if equal(shape[1], rows) and not equal(rows, keys):
            raise node.gap("a mask that is shorter than the keys")
        mask = node.op("reshape", mask, (shape[0], 1, 1, shape[1]))
        return barred(node, node.op("greater", mask, zero), query, value)
    if len(shape) == 3:
        mask = node.op("reshape", mask, (shape[0], 1, *shape[1:]))
        return barred(node, node.op("greater", mask, zero), query, value)
    if len(shape) != 1 or not equal(shape[0], batch):
        raise node.gap(f"a mask of shape {shape}")
    ends = node.op("reshape", mask, (batch, 1, 1, 1))
    inside = node.op("less", places(node, keys, (1, 1, 1, keys)), ends)
    return barred(node, inside, query, value)


def _multi_head(node: Node) -> list[Value]:
    """Of queries, keys and values that were projected before, which may be packed."""
    heads = node.int_of("num_heads", 0)
    query, key, value = _operands(node, heads)
    if any(node.has(k) for k in (8, 9)):
        raise node.gap("a cache that is written in place")
    keeps = [len(node.proto.output) > k and bool(node.proto.output[k]) for k in range(4)]
    if node.has(6):
        key = node.op("concat", (node.tensor(6), key), axis=2)
        value = node.op("concat", (node.tensor(7), value), axis=2)
    rows, keys = node.shape_of(query)[2], node.shape_of(key)[2]
    added = _plus(node, _mask(node, 4, query, rows, keys), node.optional(5))
    if node.int_of("unidirectional", 0):
        added = _plus(node, added, barred(node, causal(node, rows, keys), query, LOWEST))
    found, scores = attended(node, query, key, value, added, node.float_of("scale", 0.0))
    result: list[Value] = [joined_heads(node, found), key, value, scores]
    return result[: max((k + 1 for k, kept in enumerate(keeps) if kept), default=1)]


def _operands(node: Node, heads: int) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values, each ``(batch, heads, length, size)``."""
    given = [node.optional(k) for k in range(3)]
    query, key, value = given
    assert query is not None
    if len(node.shape_of(query)) == 5:  # (batch, length, heads, 3, size)
        parts = node.op("split", query, (1, 2), axis=3)
        packed = [node.op("squeeze", node.field(parts, k), axis=(3,)) for k in range(3)]
        if node.has(3):
            raise node.gap("a bias of packed operands")
        a, b, c = (node.op("permute_dims", x, axes=(0, 2, 1, 3)) for x in packed)
        return a, b, c
    if key is None:
        raise UnityError("lacks its keys")
    if len(node.shape_of(key)) == 5:  # (batch, length, heads, 2, size)
        parts = node.op("split", key, (1,), axis=3)
        pair = [node.op("squeeze", node.field(parts, k), axis=(3,)) for k in range(2)]
        b, c = (node.op("permute_dims", x, axes=(0, 2, 1, 3)) for x in pair)
        if node.has(3):
            raise node.gap("a bias of packed operands")
        return split_heads(node, query, heads), b, c
    if value is None:
        raise UnityError("lacks its values")
    flat = [query, key, value]
    if node.has(3):
        bias, begin = node.tensor(3), 0
        for k, x in enumerate(flat):
            if len(node.shape_of(x)) != 3:
                raise node.gap("a bias of keys that have heads")
            width = node.shape_of(x)[-1]
            if not isinstance(width, int):
                raise node.symbolic_gap("operands of unknown width", width)
            part = node.op("strided_slice", bias, axes=(0,), begin=(begin,), end=(begin + width,))
            flat[k] = node.binary("add", x, part)
            begin += width
    found = [x if len(node.shape_of(x)) == 4 else split_heads(node, x, heads) for x in flat]
    return found[0], found[1], found[2]


def _rotary(node: Node) -> Value:
    """Pairs of elements turned by an angle of the place; of all heads alike."""
    if node.int_of("is_packed_batching", 0) or node.float_of("scale", 1.0) != 1.0:
        raise node.gap("packed batches, or a scale")
    x, at = node.tensor(0), node.cast(node.tensor(1), INT64)
    cosine, sine = node.tensor(2), node.tensor(3)
    shape = node.shape_of(x)
    heads, interleaved = node.int_of("num_heads", 0), bool(node.int_of("interleaved", 0))
    node.ignore("rotary_embedding_dim")
    pairs = node.shape_of(cosine)[-1]
    if len(shape) == 3:
        if not heads:
            if not isinstance(shape[2], int) or not isinstance(pairs, int):
                raise node.symbolic_gap("heads of unknown size", shape[2], pairs)
            heads = shape[2] // (2 * pairs)
        x = split_heads(node, x, heads)
    length = node.shape_of(x)[2]
    if len(node.shape_of(at)) == 1:  # where the first one is
        at = node.op("add", at, places(node, length, (1, length)))
    turns = [
        node.op("expand_dims", node.op("take", table, at, axis=0), axis=1)
        for table in (cosine, sine)
    ]
    found = rotated(node, x, turns[0], turns[1], interleaved=interleaved)
    return joined_heads(node, found) if len(shape) == 3 else found


CONVERTERS: dict[str, Converter] = {
    "Attention": _attention,
    "MultiHeadAttention": _multi_head,
    "QAttention": _quantized_attention,
    "RotaryEmbedding": _rotary,
}
