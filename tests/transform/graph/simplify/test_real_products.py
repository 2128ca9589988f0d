"""RealProducts: products of small integers in float32, where their sums become float32 anyway."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.frontend.onnx.programs import model
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, FoldConstants, Normalize, RealProducts

RNG = np.random.default_rng(8)
SIGNED = RNG.integers(-128, 128, (80, 24), dtype=np.int8)


def prepared(module: IRModule) -> IRModule:
    context = Context()
    for step in (Normalize(), FoldConstants()):
        module = step(module, context)
    return module


def in_reals(module: IRModule) -> str:
    context = Context()
    return print_module(EliminateDeadCode()(RealProducts()(prepared(module), context), context))


DYNAMIC = """g (float[n, 80] x) => (float[n, 24] y) {
 q, s, z = DynamicQuantizeLinear(x)
 h = MatMulInteger(q, w, z, wz) f = Cast<to=1>(h) m = Mul(s, ws) y = Mul(f, m) }"""


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("zeros", [np.array(0, np.int8), np.arange(24, dtype=np.int8)])
def test_dynamic_quantization_as_onnxruntime(zeros: Array) -> None:
    ort = pytest.importorskip("onnxruntime")
    scale = np.linspace(0.01, 0.02, 24, dtype=np.float32)
    proto = model(
        DYNAMIC, 18, {"w": SIGNED // 2, "wz": np.asarray(np.floor_divide(zeros, 2)), "ws": scale}
    )
    text = in_reals(unity.load(proto))
    assert "int32" not in text
    assert text.count("R.matmul") == 1
    x = RNG.standard_normal((5, 80)).astype(np.float32)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x})
    got = np.asarray(unity.compile(proto, cache=None)(x))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * float(np.abs(expected).max()))


SUMS = """
@script.function
def main(x: u8[Tensor, 3, 80], w: i8[Tensor, 80, 24]) -> {result}[Tensor, 3, 24]:
    a = R.subtract(R.astype(x, "int32"), 3)
    y = R.matmul(a, R.astype(w, "int32"))
    {rest}
"""


@pytest.mark.parametrize(
    ("result", "rest"),
    [
        ("i32", "return y"),
        ("f64", 'return R.astype(y, "float64")'),
        ("f32", 'return R.astype(R.multiply(y, y), "float32")'),
        ("f32", 'return R.add(R.astype(y, "float32"), R.astype(R.negative(y), "float32"))'),
    ],
)
def test_sums_that_are_read_as_integers_stay(result: str, rest: str) -> None:
    text = in_reals(parse(SUMS.format(result=result, rest=rest)))
    assert "dequantize" not in text


def test_operands_of_more_bits_stay() -> None:
    text = in_reals(
        parse("""
@script.function
def main(x: i16[Tensor, 3, 8], w: i8[Tensor, 8, 2]) -> f32[Tensor, 3, 2]:
    y = R.matmul(R.astype(x, "int32"), R.astype(w, "int32"))
    return R.astype(y, "float32")
""")
    )
    assert "dequantize" not in text


def test_a_convolution_with_a_bias_gives_the_same_numbers() -> None:
    source = """
@script.function
def main(x: u8[Tensor, 1, 3, 6, 6], w: i8[Tensor, 4, 3, 3, 3]) -> f32[Tensor, 1, 4, 6, 6]:
    a = R.subtract(R.astype(x, "int32"), 7)
    y = R.nn.conv2d(a, R.astype(w, "int32"), padding=1)
    return R.astype(R.add(y, R.const("bias")), "float32")
"""
    bias = RNG.integers(-999, 999, (1, 4, 1, 1), dtype=np.int32)
    module = prepared(parse(source, {"bias": bias}))
    after = RealProducts()(module, Context())
    assert "R.dequantize" in print_module(after)
    x = RNG.integers(0, 256, (1, 3, 6, 6), dtype=np.uint8)
    w = RNG.integers(-128, 128, (4, 3, 3, 3), dtype=np.int8)
    expected, got = (np.asarray(interpret(m, "main", [x, w])) for m in (module, after))
    np.testing.assert_array_equal(got, expected)
