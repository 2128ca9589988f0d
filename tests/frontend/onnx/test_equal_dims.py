"""Dims of two names that an operator wants equal: checked when the model runs, as onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.ir.dtype import Array
from unity.script import print_module

from .programs import check, model, result_shape

f4 = np.float32
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(f4)


def models(n: int, batch: int, other: int) -> Mapping[str, tuple[str, list[Array]]]:
    """Models, with inputs of a batch of `batch` and of `other` that must be equal."""
    lengths = (np.arange(other) % n + 1).astype(np.int64)
    return {
        "ReverseSequence": (
            "(float[t, b, 2] x, int64[l] s) => (float[t, b, 2] z) { z = ReverseSequence(x, s) }",
            [floats(n, batch, 2), lengths],
        ),
        "LSTM": (
            "(float[t, b, 3] x, float[1, 8, 3] w, float[1, 8, 2] r, float[1, 16] c, int32[l] s)"
            " => (float[t, 1, b, 2] z) { z = LSTM<hidden_size=2>(x, w, r, c, s) }",
            [
                floats(n, batch, 3), floats(1, 8, 3), floats(1, 8, 2), floats(1, 16),
                lengths.astype(np.int32),
            ],
        ),
        "GridSample": (
            "(float[b, 1, 3, 4] x, float[l, h, w, k] s) => (float[b, 1, h, w] z)"
            " { z = GridSample(x, s) }",
            [floats(batch, 1, 3, 4), floats(other, n, 2, 2)],
        ),
        "GatherND": (
            "(float[b, n, 2] x, int64[l, m, 1] s) => (float[b, m, 2] z)"
            " { z = GatherND<batch_dims=1>(x, s) }",
            [floats(batch, n, 2), np.zeros((other, 3, 1), np.int64)],
        ),
        "Einsum": (
            '(float[n, i, j] x, float[k, l] s) => (float[n, k, i] z)'
            ' { z = Einsum<equation="...ij,kj->...ki">(x, s) }',
            [floats(n, 2, batch), floats(3, other)],
        ),
        "BatchNormalization": (
            "(float[n, c] x, float[l] s, float[4] b, float[4] m, float[4] v) => (float[n, c] z)"
            " { z = BatchNormalization(x, s, b, m, v) }",
            [floats(n, batch + 1), floats(other + 1), *(np.abs(floats(4)) for _ in range(3))],
        ),
    }  # fmt: skip


def agree(of: onnx.ModelProto, cases: Sequence[Sequence[Array]]) -> unity.Executable:
    """The executable of a model, which gives what onnxruntime gives."""
    check(from_onnx(of))
    exe = unity.compile(of, cache=None)
    assert exe.native()["main"] == "native"
    session = ort.InferenceSession(of.SerializeToString())
    for inputs in cases:
        feeds = dict(zip((i.name for i in of.graph.input), inputs, strict=True))
        (want,) = session.run(None, feeds)
        np.testing.assert_allclose(np.asarray(exe(*inputs), f4), np.asarray(want, f4), 1e-5, 1e-5)
    return exe


@pytest.mark.parametrize("op", models(1, 1, 1))
def test_dims_that_must_be_equal_are_checked_when_it_runs(op: str) -> None:
    sizes = [(1, 3), (3, 3), *([(2, 1)] if op != "BatchNormalization" else [])]
    built = model(f"g {models(1, 1, 1)[op][0]}", 20)
    exe = agree(built, [models(n, batch, batch)[op][1] for n, batch in sizes])
    for other in (2, 4):
        with pytest.raises(UnityError, match=r"got \d|is \d here but"):
            exe(*models(2, 3, other)[op][1])


def test_an_ellipsis_of_unknown_dims_broadcasts() -> None:
    text = "(float[n, i, j] x, float[m, j, k] y) => (float[a, i, k] z)"
    built = model(f'g {text} {{ z = Einsum<equation="...ij,...jk->...ik">(x, y) }}')
    agree(built, [(floats(n, 2, 4), floats(m, 4, 5)) for n in (1, 3) for m in (1, 3)])


def test_what_is_broadcast_onto_another_leaves_it_as_it_is() -> None:
    """The bias of a product, and the slope of PRelu: their axes are 1 or the other's."""
    product = model(
        "g (float[n, 2] x, float[2, m] y, float[k] b) => (float[n, m] z) { z = Gemm(x, y, b) }"
    )
    assert result_shape(from_onnx(product)) == "n, m"
    agree(product, [(floats(3, 2), floats(2, 4), floats(k)) for k in (1, 4)])
    slope = model("g (float[n, c, h] x, float[d, 1] y) => (float[n, c, h] z) { z = PRelu(x, y) }")
    assert result_shape(from_onnx(slope)) == "n, c, h"
    agree(slope, [(floats(3, 2, 4), floats(d, 1)) for d in (1, 2)])


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ("float[n, k] x", "z = Gemm<transB=1>(x, w)"),
        ("float[n, k] x", "t = Transpose(w) z = MatMul(x, t)"),
        ("uint8[n, k] x", "i = Cast<to=3>(w) t = Transpose(i) z = MatMulInteger(x, t)"),
    ],
    ids=["Gemm", "MatMul", "MatMulInteger"],
)
def test_an_unknown_depth_is_that_of_the_weights(inputs: str, call: str) -> None:
    """Which stay a constant of a known shape; another depth is refused."""
    kind = "int32" if "Integer" in call else "float"
    weights = np.arange(96, dtype=f4).reshape(16, 6)
    text = f"g ({inputs}) => ({kind}[n, 16] z) {{ {call} }}"
    built = model(text)
    built.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    printed = print_module(from_onnx(built))
    assert "match_cast(x, " in printed
    assert printed.count("match_cast") == 1
    exe = unity.compile(built, cache=None)
    given = "uint8" if "uint8" in inputs else "float32"
    x = np.arange(18).reshape(3, 6).astype(given)
    want = x.astype(np.float64) @ weights.T
    np.testing.assert_array_equal(np.asarray(exe(x)), want)
    with pytest.raises(UnityError):
        exe(x[:, :5].copy())


def test_where_nothing_checks_names_are_asked_for() -> None:
    text = "(uint8[n, k] x, float[l] y) => (float[n, k] z) { z = DequantizeLinear<axis=1>(x, y) }"
    with pytest.raises(UnityError, match="got l, expected k") as raised:
        from_onnx(model(f"g {text}"))
    assert raised.value.hint is not None
    assert 'dynamic={"x": {0: "n"}, "y": {1: "n"}}' in raised.value.hint
    exe = unity.compile(model(f"g {text}"), dynamic={"y": {0: "k"}}, cache=None)
    x, scale = np.array([[2, 3]], np.uint8), np.array([1, 2], f4)
    np.testing.assert_array_equal(np.asarray(exe(x, scale)), [[2, 6]])
