"""Attention as exporters write it: recognised, and the same numbers as onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import unity
from tests.bench.graph import Graph
from tests.models.test_models import Array, compare
from unity.ir.graph import Call, Op
from unity.ir.visit import walk_bindings
from unity.transform import Context, pipeline
from unity.transform.graph import LegalizeOps

WIDTH, HEADS, SIZE = 24, 3, 8


def number(g: Graph, value: float) -> str:
    return g.const(np.float32(value))


def linear(g: Graph, x: str, name: str, width: int) -> str:
    y = g.op("MatMul", x, g.normal(f"{name}_weight", (WIDTH, width), 0.2))
    return g.op("Add", g.normal(f"{name}_bias", (width,), 0.1), y)


def heads(g: Graph, x: str, perm: list[int] | None = None) -> str:
    split = g.op("Reshape", x, g.ints(0, 0, HEADS, SIZE))
    return g.op("Transpose", split, perm=perm or [0, 2, 1, 3])


def merged(g: Graph, x: str) -> str:
    return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.ints(0, 0, WIDTH))


def three(g: Graph, x: str) -> list[str]:
    return [linear(g, x, name, WIDTH) for name in "qkv"]


def causal(g: Graph, length: int) -> str:
    return g.const(np.tril(np.ones((1, 1, length, length), np.bool_)))


def bert_style(g: Graph, x: str, n: int) -> str:
    """Scores divided, a mask by key added; one transpose for the keys."""
    q, k, v = three(g, x)
    scores = g.op("MatMul", heads(g, q), heads(g, k, [0, 2, 3, 1]))
    scores = g.op("Add", g.op("Div", scores, number(g, 8**0.5)), g.normal("mask", (1, 1, 1, n), 2))
    return merged(g, g.op("MatMul", g.op("Softmax", scores, axis=-1), heads(g, v)))


def torch_sdpa_style(g: Graph, x: str, n: int) -> str:
    """Both operands scaled by the root of the scale, the mask first in the sum."""
    q, k, v = three(g, x)
    root = number(g, 8**-0.25)
    keys = g.op("Mul", g.op("Transpose", heads(g, k), perm=[0, 1, 3, 2]), root)
    scores = g.op("MatMul", g.op("Mul", heads(g, q), root), keys)
    scores = g.op("Add", g.normal("mask", (n, n), 2), scores)
    return merged(g, g.op("MatMul", g.op("Softmax", scores, axis=3), heads(g, v)))


def gpt2_style(g: Graph, x: str, n: int) -> str:
    """One product split, a causal mask that selects."""
    parts = g.ops("Split", linear(g, x, "qkv", 3 * WIDTH), outputs=3, axis=2)
    q, k, v = parts
    scores = g.op("MatMul", heads(g, q), heads(g, k, [0, 2, 3, 1]))
    scores = g.op("Mul", number(g, 8**-0.5), scores)
    scores = g.op("Where", causal(g, n), scores, number(g, -1e4))
    return merged(g, g.op("MatMul", g.op("Softmax", scores, axis=-1), heads(g, v)))


def selected_otherwise(g: Graph, x: str, n: int) -> str:
    """A mask of what is to be left out, then another that is added."""
    q, k, v = three(g, x)
    scores = g.op("MatMul", heads(g, q), heads(g, k, [0, 2, 3, 1]))
    later = g.const(np.triu(np.ones((n, n), np.bool_), 1))
    scores = g.op("Where", later, number(g, -1e4), scores)
    scores = g.op("Add", scores, g.normal("mask", (1, HEADS, 1, n), 2))
    return merged(g, g.op("MatMul", g.op("Softmax", scores, axis=-1), heads(g, v)))


def torch_mha_style(g: Graph, x: str, n: int) -> str:
    """Length first, heads folded into the batch, the query scaled: products of rank 3."""
    q, k, v = three(g, g.op("Transpose", x, perm=[1, 0, 2]))
    q = g.op("Mul", q, number(g, 8**-0.5))

    def folded(y: str, perm: list[int]) -> str:
        return g.op("Transpose", g.op("Reshape", y, g.ints(n, 2 * HEADS, SIZE)), perm=perm)

    scores = g.op("MatMul", folded(q, [1, 0, 2]), folded(k, [1, 2, 0]))
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), folded(v, [1, 0, 2]))
    y = g.op("Reshape", g.op("Transpose", y, perm=[1, 0, 2]), g.ints(n, 2, WIDTH))
    return g.op("Transpose", y, perm=[1, 0, 2])


def multi_query(g: Graph, x: str, n: int) -> str:
    """All heads of queries share one of keys and values."""
    q, k, v = (linear(g, x, name, w) for name, w in (("q", WIDTH), ("k", SIZE), ("v", SIZE)))

    def one(y: str) -> str:
        return g.op("Transpose", g.op("Reshape", y, g.ints(0, 0, 1, SIZE)), perm=[0, 2, 1, 3])

    scores = g.op("MatMul", heads(g, q), g.op("Transpose", one(k), perm=[0, 1, 3, 2]))
    return merged(g, g.op("MatMul", g.op("Softmax", scores, axis=-1), one(v)))


FORMS = [
    bert_style,
    torch_sdpa_style,
    gpt2_style,
    selected_otherwise,
    torch_mha_style,
    multi_query,
]


def model_of(form: Callable[[Graph, str, int], str], length: int) -> onnx.ModelProto:
    g = Graph("attention", seed=7)
    x = g.input("x", [2, length, WIDTH], TensorProto.FLOAT)
    g.output(form(g, x, length), "y", [2, length, WIDTH])
    return g.model()


def ops_of(model: onnx.ModelProto) -> list[str]:
    """The operators before kernels are made of them."""
    module = pipeline().until(LegalizeOps).run(unity.load(model), Context())
    values = [b.value for b in walk_bindings(module.graph_functions()["main"])]
    return [v.callee.name for v in values if isinstance(v, Call) and isinstance(v.callee, Op)]


@pytest.mark.rotated(2)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_recognised(form: Callable[[Graph, str, int], str]) -> None:
    ops = ops_of(model_of(form, 6))
    assert ops.count("nn.attention") == 1
    assert "nn.softmax" not in ops
    assert ops.count("permute_dims") == (2 if form is torch_mha_style else 0)


@pytest.mark.rotated(9)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("length", [1, 5, 70])
def test_same_numbers(form: Callable[[Graph, str, int], str], length: int) -> None:
    model = model_of(form, length)
    x: Array = np.random.default_rng(length).standard_normal((2, length, WIDTH), np.float32)
    compare(model, unity.compile(model), {"x": x})


def test_weights_that_are_a_result_stay() -> None:
    g = Graph("attention", seed=7)
    x = g.input("x", [1, 6, WIDTH], TensorProto.FLOAT)
    q, k, v = three(g, x)
    scores = g.op("MatMul", heads(g, q), heads(g, k, [0, 2, 3, 1]))
    weights = g.op("Softmax", scores, axis=-1)
    g.output(merged(g, g.op("MatMul", weights, heads(g, v))), "y", [1, 6, WIDTH])
    g.output(weights, "weights", [1, HEADS, 6, 6])
    model = g.model()
    assert "nn.attention" not in ops_of(model)
    compare(model, unity.compile(model), {"x": np.ones((1, 6, WIDTH), np.float32)})


def operator(mask: str | None, length: int | str) -> onnx.ModelProto:
    """ONNX's Attention over four heads of queries and two of keys."""
    g = Graph("attention", seed=7)
    q = g.input("q", [2, length, 4 * SIZE], TensorProto.FLOAT)
    k, v = (g.input(n, [2, length, 2 * SIZE], TensorProto.FLOAT) for n in "kv")
    given = [q, k, v]
    if mask in ("bool", "float"):
        kind = TensorProto.BOOL if mask == "bool" else TensorProto.FLOAT
        given.append(g.input("mask", [length, length], kind))
    causal = int(mask == "causal")
    y = g.op("Attention", *given, q_num_heads=4, kv_num_heads=2, is_causal=causal)
    g.output(y, "y", [2, length, 4 * SIZE])
    return g.model(23)


def operands(mask: str | None, length: int) -> dict[str, Array]:
    rng = np.random.default_rng(length)
    feeds: dict[str, Array] = {
        name: rng.standard_normal((2, length, heads * SIZE), np.float32)
        for name, heads in (("q", 4), ("k", 2), ("v", 2))
    }
    seen = rng.random((length, length)) < 0.6
    seen[length // 2] = False  # a row of which nothing is seen gives 0
    if mask == "bool":
        feeds["mask"] = seen
    elif mask == "float":
        feeds["mask"] = np.where(seen, np.float32(0.5), -np.float32(np.inf))
    return feeds


@pytest.mark.long("compiles attention of unknown length")
@pytest.mark.rotated(4)
@pytest.mark.parametrize("mask", [None, "causal", "bool", "float"])
@pytest.mark.parametrize("length", [9, "n"])
def test_onnx_attention(mask: str | None, length: int | str) -> None:
    """ONNX's operator becomes one attention, also where rows of which nothing is seen give 0."""
    model = operator(mask, length)
    ops = ops_of(model)
    assert ops.count("nn.attention") == 1
    assert "nn.softmax" not in ops
    count = 45 if length == "n" else 9
    compare(model, unity.compile(model), operands(mask, count))


def guarded(lowest: float, own: bool) -> onnx.ModelProto:
    """Weights that are 0 where the largest of a mask, perhaps of another one, is some number."""
    g = Graph("attention", seed=7)
    x = g.input("x", [1, 6, WIDTH], TensorProto.FLOAT)
    mask, other = (g.input(n, [6, 6], TensorProto.FLOAT) for n in ("mask", "other"))
    q, k, v = three(g, x)
    scores = g.op("MatMul", heads(g, q), heads(g, k, [0, 2, 3, 1]))
    weights = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
    largest = g.op("ReduceMax", mask if own else other, axes=[-1], keepdims=1)
    unseen = g.op("Equal", largest, number(g, lowest))
    weights = g.op("Where", unseen, number(g, 0.0), weights)
    g.output(merged(g, g.op("MatMul", weights, heads(g, v))), "y", [1, 6, WIDTH])
    return g.model()


@pytest.mark.parametrize(
    ("lowest", "own", "one"), [(-np.inf, True, 1), (-np.inf, False, 0), (-1.0, True, 0)]
)
def test_only_rows_that_see_nothing_give_zero(lowest: float, own: bool, one: int) -> None:
    """Weights that are 0 for another reason are no attention's."""
    model = guarded(lowest, own)
    assert ops_of(model).count("nn.attention") == one
    rng = np.random.default_rng(3)
    mask = np.where(rng.random((6, 6)) < 0.5, np.float32(-1), -np.float32(np.inf))
    mask[:, 0] = -1
    mask[2] = -np.inf if one else -1
    other = np.full((6, 6), -np.inf, np.float32)
    other[3] = 0
    x = rng.standard_normal((1, 6, WIDTH), np.float32)
    compare(model, unity.compile(model), {"x": x, "mask": mask, "other": other})
