"""Transformer models: a BERT encoder (Devlin 2019), decoder steps of GPT-2 and Llama with caches.

The graphs hold the shape arithmetic that exporters write (Shape, Gather, Concat, Reshape), so that
lengths stay dynamic.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto

from .graph import Graph


def linear(g: Graph, x: str, name: str, cin: int, cout: int) -> str:
    """``x @ weight + bias`` with weight [cin, cout]."""
    weight = g.normal(f"{name}.weight", (cin, cout), 0.04)
    y = g.op("MatMul", x, weight, name=f"{name}.matmul")
    return g.op("Add", y, g.normal(f"{name}.bias", (cout,), 0.02), name=f"{name}.add")


def layer_norm(g: Graph, x: str, name: str, width: int, epsilon: float) -> str:
    """Layer normalization over the last axis, as opset 17 has it."""
    scale = g.normal(f"{name}.scale", (width,), 0.05, 1.0)
    shift = g.normal(f"{name}.shift", (width,), 0.02)
    return g.op("LayerNormalization", x, scale, shift, name=name, axis=-1, epsilon=epsilon)


def f32(g: Graph, value: float) -> str:
    """A float32 scalar, shared by value."""
    return g.const(np.float32(value), f"f32_{value!r}".replace("-", "m").replace(".", "_"))


def gelu(g: Graph, x: str) -> str:
    """The exact GELU from primitives: x * 0.5 * (1 + erf(x / sqrt 2))."""
    erf = g.op("Erf", g.op("Div", x, f32(g, math.sqrt(2))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, f32(g, 1.0))), f32(g, 0.5))


def gelu_tanh(g: Graph, x: str) -> str:
    """The tanh approximation of GELU from primitives."""
    cube = g.op("Mul", g.op("Mul", g.op("Mul", x, x), x), f32(g, 0.044715))
    inner = g.op("Mul", g.op("Add", x, cube), f32(g, math.sqrt(2 / math.pi)))
    half = g.op("Mul", x, f32(g, 0.5))
    return g.op("Mul", half, g.op("Add", g.op("Tanh", inner), f32(g, 1.0)))


def size_of(g: Graph, x: str, axis: int) -> str:
    """One size of a value, as int64 [1]."""
    scalar = g.op("Gather", g.op("Shape", x), g.const(np.int64(axis), f"axis_{axis}"), axis=0)
    return g.op("Unsqueeze", scalar, g.ints(0))


def split_heads(g: Graph, x: str, batch: str, length: str, heads: int, size: int) -> str:
    """[B, S, H * D] -> [B, H, S, D]."""
    shape = g.op("Concat", batch, length, g.ints(heads), g.ints(size), axis=0)
    return g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 2, 1, 3])


def attend(g: Graph, q: str, k: str, v: str, mask: str, size: int) -> str:
    """softmax(q k^T / sqrt D + mask) v."""
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Mul", scores, f32(g, 1 / math.sqrt(size))), mask)
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


def merge_heads(g: Graph, x: str, width: int) -> str:
    """[B, H, S, D] -> [B, S, H * D]."""
    shape = g.ints(0, 0, width)
    return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), shape)


def bert(
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    ffn: int = 3072,
    vocab: int = 30522,
    batch: int | str = 1,
    length: int | str = 128,
) -> onnx.ModelProto:
    """BERT with embeddings, post-norm layers and pooler.

    Inputs ``input_ids`` and ``attention_mask``, both int64 [batch, length].
    """
    g = Graph("bert", seed=3)
    ids = g.input("input_ids", [batch, length], TensorProto.INT64)
    attention = g.input("attention_mask", [batch, length], TensorProto.INT64)
    n, s = size_of(g, ids, 0), size_of(g, ids, 1)
    words = g.op("Gather", g.normal("word", (vocab, width), 0.04), ids, axis=0)
    positions = g.op("Slice", g.const(np.arange(512)[None], "positions"), g.ints(0), s, g.ints(1))
    places = g.op("Gather", g.normal("position", (512, width), 0.04), positions, axis=0)
    zeros = g.op("Mul", ids, g.const(np.int64(0), "none"))
    kinds = g.op("Gather", g.normal("kind", (2, width), 0.04), zeros, axis=0)
    x = g.op("Add", g.op("Add", words, places), kinds)
    x = layer_norm(g, x, "embedding_norm", width, 1e-12)
    keep = g.op("Cast", g.op("Unsqueeze", attention, g.ints(1, 2)), to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", f32(g, 1.0), keep), f32(g, -1e9))
    size = width // heads
    for i in range(layers):
        q, k, v = (
            split_heads(g, linear(g, x, f"layer{i}.{which}", width, width), n, s, heads, size)
            for which in "qkv"
        )
        y = merge_heads(g, attend(g, q, k, v, mask, size), width)
        y = g.op("Add", linear(g, y, f"layer{i}.o", width, width), x)
        x = layer_norm(g, y, f"layer{i}.norm1", width, 1e-12)
        y = gelu(g, linear(g, x, f"layer{i}.fc1", width, ffn))
        y = g.op("Add", linear(g, y, f"layer{i}.fc2", ffn, width), x)
        x = layer_norm(g, y, f"layer{i}.norm2", width, 1e-12)
    first = g.op("Gather", x, g.const(np.int64(0), "first"), axis=1)
    pooled = g.op("Tanh", linear(g, first, "pooler", width, width))
    g.output(x, "hidden", [batch, length, width])
    g.output(pooled, "pooled", [batch, width])
    return g.model()


def gpt2(
    layers: int = 12,
    width: int = 768,
    heads: int = 12,
    ffn: int = 3072,
    vocab: int = 50257,
    context: int = 1024,
) -> onnx.ModelProto:
    """One GPT-2 decoder step; lengths T (new tokens) and P (cached) are symbols.

    Inputs ``input_ids [1, T]``, ``past_k{i}``, ``past_v{i} [1, H, P, D]``; outputs ``logits`` of
    the last token and ``present_k{i}``, ``present_v{i} [1, H, P + T, D]``.
    """
    g = Graph("gpt2", seed=4)
    size = width // heads
    ids = g.input("input_ids", [1, "T"], TensorProto.INT64)
    past = [
        (
            g.input(f"past_k{i}", [1, heads, "P", size]),
            g.input(f"past_v{i}", [1, heads, "P", size]),
        )
        for i in range(layers)
    ]
    one, t, p = size_of(g, ids, 0), size_of(g, ids, 1), size_of(g, past[0][0], 2)
    total = g.op("Add", p, t)
    start, stop = (g.op("Squeeze", x, g.ints(0)) for x in (p, total))
    step = g.const(np.int64(1), "step")
    positions = g.op("Range", start, stop, step)
    table = g.normal("wte", (vocab, width), 0.04)
    x = g.op("Gather", table, ids, axis=0)
    places = g.op("Gather", g.normal("wpe", (context, width), 0.04), positions, axis=0)
    x = g.op("Add", x, g.op("Unsqueeze", places, g.ints(0)))
    keys = g.op("Range", g.const(np.int64(0), "zero"), stop, step)
    later = g.op(
        "Greater", g.op("Unsqueeze", keys, g.ints(0)), g.op("Unsqueeze", positions, g.ints(1))
    )
    mask = g.op("Mul", g.op("Cast", later, to=TensorProto.FLOAT), f32(g, -1e9))
    present: list[tuple[str, str]] = []
    for i, (past_k, past_v) in enumerate(past):
        y = linear(
            g, layer_norm(g, x, f"layer{i}.norm1", width, 1e-5), f"layer{i}.qkv", width, 3 * width
        )
        parts = g.ops("Split", y, g.ints(width, width, width), outputs=3, axis=-1)
        q, k, v = (split_heads(g, part, one, t, heads, size) for part in parts)
        k, v = g.op("Concat", past_k, k, axis=2), g.op("Concat", past_v, v, axis=2)
        present.append((k, v))
        y = merge_heads(g, attend(g, q, k, v, mask, size), width)
        x = g.op("Add", x, linear(g, y, f"layer{i}.o", width, width))
        y = linear(g, layer_norm(g, x, f"layer{i}.norm2", width, 1e-5), f"layer{i}.fc1", width, ffn)
        x = g.op("Add", x, linear(g, gelu_tanh(g, y), f"layer{i}.fc2", ffn, width))
    x = layer_norm(g, x, "final_norm", width, 1e-5)
    last = g.op("Slice", x, g.ints(-1), g.ints(2**31), g.ints(1))
    logits = g.op("MatMul", last, g.op("Transpose", table, perm=[1, 0]))
    g.output(logits, "logits", [1, 1, vocab])
    for i, (k, v) in enumerate(present):
        g.output(k, f"present_k{i}", [1, heads, "PT", size])
        g.output(v, f"present_v{i}", [1, heads, "PT", size])
    return g.model()


def rms_norm(g: Graph, x: str, name: str, width: int) -> str:
    """x / sqrt(mean(x^2) + 1e-5) * weight."""
    mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
    y = g.op("Div", x, g.op("Sqrt", g.op("Add", mean, f32(g, 1e-5))))
    return g.op("Mul", y, g.normal(f"{name}.weight", (width,), 0.05, 1.0))


def rotate(g: Graph, x: str, cos: str, sin: str, size: int) -> str:
    """Rotary embedding of pairs (i, i + D / 2)."""
    a, b = g.ops("Split", x, g.ints(size // 2, size // 2), outputs=2, axis=-1)
    turned = g.op("Concat", g.op("Neg", b), a, axis=-1)
    return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))


def repeat_heads(g: Graph, x: str, groups: int) -> str:
    """[B, KV, L, D] -> [B, KV * G, L, D], as exporters of grouped queries write it."""
    five = g.op("Unsqueeze", x, g.ints(2))
    b, kv, length, size = (size_of(g, x, axis) for axis in range(4))
    wide = g.op("Expand", five, g.op("Concat", b, kv, g.ints(groups), length, size, axis=0))
    heads = g.op("Mul", kv, g.ints(groups))
    return g.op("Reshape", wide, g.op("Concat", b, heads, length, size, axis=0))


def llama(
    layers: int = 8,
    width: int = 512,
    heads: int = 8,
    kv_heads: int = 4,
    ffn: int = 1376,
    vocab: int = 32000,
    batch: int | str = 1,
) -> onnx.ModelProto:
    """One Llama decoder step: RMSNorm, rotary embedding, grouped queries, SwiGLU.

    Inputs and outputs as those of `gpt2`, caches ``[batch, kv_heads, P, D]``.
    """
    g = Graph("llama", seed=5)
    size = width // heads
    ids = g.input("input_ids", [batch, "T"], TensorProto.INT64)
    cache = [batch, kv_heads, "P", size]
    past = [(g.input(f"past_k{i}", cache), g.input(f"past_v{i}", cache)) for i in range(layers)]
    n, t, p = size_of(g, ids, 0), size_of(g, ids, 1), size_of(g, past[0][0], 2)
    start, stop = (g.op("Squeeze", x, g.ints(0)) for x in (p, g.op("Add", p, t)))
    step = g.const(np.int64(1), "step")
    positions = g.op("Range", start, stop, step)
    place = g.op("Unsqueeze", g.op("Cast", positions, to=TensorProto.FLOAT), g.ints(1))
    inverse = (1 / 10000.0 ** (np.arange(0, size, 2) / size)).astype(np.float32)
    angle = g.op("Mul", place, g.const(inverse[None], "inverse"))
    angle = g.op("Concat", angle, angle, axis=-1)
    cos, sin = g.op("Cos", angle), g.op("Sin", angle)
    keys = g.op("Range", g.const(np.int64(0), "zero"), stop, step)
    later = g.op(
        "Greater", g.op("Unsqueeze", keys, g.ints(0)), g.op("Unsqueeze", positions, g.ints(1))
    )
    mask = g.op("Mul", g.op("Cast", later, to=TensorProto.FLOAT), f32(g, -1e9))
    x = g.op("Gather", g.normal("embedding", (vocab, width), 0.04), ids, axis=0)
    present: list[tuple[str, str]] = []

    def matmul(x: str, name: str, cin: int, cout: int) -> str:
        return g.op("MatMul", x, g.normal(f"{name}.weight", (cin, cout), 0.04))

    for i, (past_k, past_v) in enumerate(past):
        name, h = f"layer{i}", rms_norm(g, x, f"layer{i}.norm1", width)
        q = split_heads(g, matmul(h, f"{name}.q", width, width), n, t, heads, size)
        narrow = kv_heads * size
        k = split_heads(g, matmul(h, f"{name}.k", width, narrow), n, t, kv_heads, size)
        v = split_heads(g, matmul(h, f"{name}.v", width, narrow), n, t, kv_heads, size)
        k = g.op("Concat", past_k, rotate(g, k, cos, sin, size), axis=2)
        v = g.op("Concat", past_v, v, axis=2)
        present.append((k, v))
        k, v = (repeat_heads(g, y, heads // kv_heads) for y in (k, v))
        y = attend(g, rotate(g, q, cos, sin, size), k, v, mask, size)
        x = g.op("Add", x, matmul(merge_heads(g, y, width), f"{name}.o", width, width))
        h = rms_norm(g, x, f"{name}.norm2", width)
        gate = matmul(h, f"{name}.gate", width, ffn)
        y = g.op(
            "Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), matmul(h, f"{name}.up", width, ffn)
        )
        x = g.op("Add", x, matmul(y, f"{name}.down", ffn, width))
    last = g.op("Slice", rms_norm(g, x, "norm", width), g.ints(-1), g.ints(2**31), g.ints(1))
    g.output(matmul(last, "head", width, vocab), "logits", [batch, 1, vocab])
    for i, (k, v) in enumerate(present):
        g.output(k, f"present_k{i}", [batch, kv_heads, "PT", size])
        g.output(v, f"present_v{i}", [batch, kv_heads, "PT", size])
    return g.model()
