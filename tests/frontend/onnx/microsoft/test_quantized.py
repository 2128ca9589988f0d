"""Operators on 8-bit integers of ``com.microsoft``: one quantum from onnxruntime's at most."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.codegen.llvm.levels import LEVELS
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.script import print_module
from unity.transform import Context
from unity.transform.graph import FoldConstants, IntegerProducts, Normalize

from .beside import Array, check, node_model, reals, scalar, whole

KINDS = ["uint8", "int8"]


def point(kind: str, value: float = 12) -> Array:
    return scalar(value, kind)


def quantized(seed: int, kind: str, *shape: int) -> list[Array | None]:
    return [whole(seed, kind, *shape), scalar(0.03 + 0.01 * seed), point(kind, 5 + seed)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_sums_and_products(op: str, kind: str) -> None:
    operands = [*quantized(0, kind, 2, 3, 8), *quantized(1, kind, 8), scalar(0.09), point(kind)]
    check(op, operands, quanta=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_functions(op: str, kind: str) -> None:
    check(op, [*quantized(0, kind, 4, 16), scalar(0.02), point(kind)], quanta=1)


@pytest.mark.parametrize("kind", KINDS)
def test_softmax(kind: str) -> None:
    zero = point(kind, -128 if kind == "int8" else 0)
    operands = [*quantized(0, kind, 4, 16), scalar(1 / 256), zero]
    check("QLinearSoftmax", operands, quanta=1, axis=-1, opset=13)


@pytest.mark.parametrize("last", [0, 1])
def test_means(last: int) -> None:
    operands = [*quantized(0, "uint8", 1, 4, 6, 4), scalar(0.02), point("uint8")]
    check("QLinearGlobalAveragePool", operands, quanta=1, channels_last=last)
    check("QLinearAveragePool", operands, quanta=1, channels_last=last, kernel_shape=[2, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_concatenation(kind: str) -> None:
    operands = [scalar(0.04), point(kind), *quantized(0, kind, 2, 3), *quantized(1, kind, 2, 5)]
    check("QLinearConcat", operands, quanta=1, axis=1)


def test_choice() -> None:
    condition = np.arange(12).reshape(3, 4) % 3 == 0
    operands = [condition, *quantized(0, "uint8", 3, 4), *quantized(1, "uint8", 3, 4)]
    check("QLinearWhere", [*operands, scalar(0.05), point("uint8")], quanta=1)


@pytest.mark.parametrize("real", [False, True])
def test_gemm(real: bool) -> None:
    a, b = quantized(0, "uint8", 3, 8), [whole(1, "int8", 5, 8), scalar(0.02), point("int8", 0)]
    bias = np.random.default_rng(0).integers(-999, 999, 5).astype(np.int32)
    out: list[Array | None] = [None, None] if real else [scalar(0.5), point("uint8", 120)]
    check("QGemm", [*a, *b, bias, *out], quanta=1, rtol=1e-4, transB=1)


@pytest.mark.parametrize("columns", [False, True])
def test_products_of_integers_in_float32(columns: bool) -> None:
    scale = np.linspace(0.01, 0.02, 5, dtype=np.float32) if columns else scalar(0.02)
    zero = np.arange(5).astype(np.int8) if columns else point("int8", 3)
    a, b = whole(0, "uint8", 3, 8), whole(1, "int8", 8, 5)
    operands = [a, b, scalar(0.03), scale, point("uint8", 120), zero, reals(2, 5)]
    check("MatMulIntegerToFloat", operands)


@pytest.mark.parametrize("columns", [False, True])
def test_products_by_integers_of_what_is_quantized_as_it_comes(columns: bool) -> None:
    scale = np.linspace(0.01, 0.02, 5, dtype=np.float32) if columns else scalar(0.02)
    zero = np.zeros(5, np.int8) if columns else point("int8", 0)
    operands = [reals(0, 3, 8), whole(1, "int8", 8, 5), scale, zero, reals(2, 5)]
    check("DynamicQuantizeMatMul", operands, rtol=1e-4)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
def test_lstm_of_integers(direction: str, columns: bool) -> None:
    both, width, hidden = 2 if direction == "bidirectional" else 1, 6, 4
    shape = (both, 4 * hidden) if columns else (both,)
    scale = np.full(shape, 0.01, np.float32)
    zero = np.zeros(shape, np.int8)
    operands: list[Array | None] = [
        reals(0, 7, 2, width), whole(1, "int8", both, width, 4 * hidden),
        whole(2, "int8", both, hidden, 4 * hidden), reals(3, both, 8 * hidden), None,
        reals(4, both, 2, hidden), reals(5, both, 2, hidden), None, scale, zero, scale, zero,
    ]  # fmt: skip
    check("DynamicQuantizeLSTM", operands, 3, rtol=2e-3, direction=direction, hidden_size=hidden)


def test_steps_of_an_lstm_multiply_integers() -> None:
    """Where there are dot products of bytes, a step reads its weights as bytes."""
    width, hidden = 48, 64
    operands: list[Array | None] = [
        reals(0, 5, 1, width), whole(1, "int8", 1, width, 4 * hidden),
        whole(2, "int8", 1, hidden, 4 * hidden), reals(3, 1, 8 * hidden), None, None, None, None,
        scalar(0.001)[None], point("int8", 3)[None], scalar(0.001)[None], point("int8", 0)[None],
    ]  # fmt: skip
    node = node_model("DynamicQuantizeLSTM", operands, [True], {"hidden_size": hidden})
    known = {f"i{k}": x for k, x in enumerate(operands) if k and x is not None}
    plain = from_onnx(node, constants=known)
    module, context = plain, Context(target=LEVELS["avx512 with dots"])
    for step in (Normalize(), FoldConstants(), IntegerProducts()):
        module = step(module, context)
    text = print_module(module)
    assert text.count('out_dtype="int32"') == text.count("R.matmul") == 2
    assert text.index('out_dtype="int32"') < text.index("_step(") < text.rindex('out_dtype="int32"')
    x = reals(0, 5, 1, width)
    want = np.asarray(interpret(plain, "main", [x]))
    np.testing.assert_allclose(np.asarray(interpret(module, "main", [x])), want, atol=1e-3)
    np.testing.assert_allclose(unity.compile(plain, cache=None)(x), want, atol=1e-3)
