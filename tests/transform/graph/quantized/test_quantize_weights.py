"""Weights in few bits with scales of blocks: read as words, the same numbers as dequantized."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import onnx
import pytest

import unity
from tests.codegen.llvm.levels import LEVELS
from tests.frontend.onnx.programs import model
from unity.interpreter import interpret
from unity.ir.dtype import Array, dtype
from unity.ir.module import IRModule
from unity.op.contraction.matmul_packed import panels, words
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import (
    EliminateDeadCode,
    FoldQuantization,
    PackWeights,
    QuantizeWeights,
)
from unity.transform.graph.quantized.quantize_weights import quantized

RNG = np.random.default_rng(5)
SMALL = Context(target=LEVELS["avx2"])


def product(depth: int, columns: int, *, turned: bool) -> IRModule:
    shape = (columns, depth) if turned else (depth, columns)
    right = 'R.permute_dims(R.const("w"), axes=(1, 0))' if turned else 'R.const("w")'
    text = f"""
@script.function
def main(x: f32[Tensor, 1, {depth}]) -> f32[Tensor, 1, {columns}]:
    return R.nn.relu(R.matmul(x, {right}))
"""
    return parse(text, {"w": RNG.standard_normal(shape).astype(np.float32)})


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_reads_words(bits: int, turned: bool) -> None:
    before = QuantizeWeights(bits, least=0)(product(1024, 320, turned=turned), SMALL)
    after = before
    for step in (FoldQuantization(), EliminateDeadCode(), PackWeights(), EliminateDeadCode()):
        after = step(after, SMALL)
    assert "R.matmul_words" in print_module(after)
    assert "permute_dims" not in print_module(after)
    x = RNG.standard_normal((1, 1024)).astype(np.float32)
    want, got = (np.asarray(interpret(m, "main", [x])) for m in (before, after))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * float(np.abs(want).max()))


WORDS = """{symbol}@script.function
def main(x: f32[Tensor, {rows}, 192]) -> f32[Tensor, {rows}, {columns}]:
    y = R.matmul_words(x, R.const("w"), R.const("s"), R.const("t"), columns={columns}, bits={bits})
    return R.nn.relu(y)
"""


@pytest.mark.rotated(1)
@pytest.mark.parametrize(("columns", "width"), [(48, 16), (64, 64), (100, 64), (27, 32)])
@pytest.mark.parametrize(("bits", "block"), [(4, 32), (4, 8), (8, 64), (8, 4), (4, 192)])
@pytest.mark.parametrize("rows", [1, 2, 5, "n"])
def test_words_compiled(rows: int | str, bits: int, block: int, columns: int, width: int) -> None:
    matrix = RNG.standard_normal((192, columns)).astype(np.float32)
    whole, scale, zero = quantized(matrix, 0, bits, block)
    shift = np.negative(np.multiply(scale, zero, dtype=np.float32), dtype=np.float32)
    symbol = f'{rows} = dim("{rows}")\n' if isinstance(rows, str) else ""
    text = WORDS.format(symbol=symbol, rows=rows, columns=columns, bits=bits)
    given = {"w": words(whole, width, bits), "s": panels(scale, width), "t": panels(shift, width)}
    module = parse(text, given)
    exe = unity.compile(module, cache=None)
    for n in (1, 2, 9) if isinstance(rows, str) else (rows,):
        x = RNG.standard_normal((n, 192)).astype(np.float32)
        want = np.asarray(interpret(module, "main", [x]))
        np.testing.assert_allclose(exe(x), want, rtol=0, atol=1e-5 * float(np.abs(want).max()))


def test_words_lie_in_register_tiles() -> None:
    text = WORDS.format(symbol="", rows=1, columns=64, bits=4)
    given = {
        "w": np.zeros((1, 24, 64), np.uint32),
        "s": np.ones((1, 6, 64), np.float32),
        "t": np.ones((1, 6, 64), np.float32),
    }
    features = ("avx2", "avx512f", "avx512vl", "fma")  # whose panels are 64 columns wide
    target = unity.Target("cpu", "x86_64-unknown-linux-gnu", "skylake-avx512", features, 512, 32)
    exe = unity.compile(parse(text, given), target, cache=None)
    (kernel,) = exe.kernels
    assert [r.rule for r in exe.rules(kernel)] == ["packed"]


def test_errors_of_weights_are_half_a_step() -> None:
    weight = RNG.standard_normal((64, 24)).astype(np.float32)
    for depth in (0, 1):
        data = weight if depth == 0 else np.ascontiguousarray(weight.T)
        whole, scale, zero = quantized(data, depth, 4, 32)
        each = (np.repeat(a.astype(np.float32), 32, axis=depth) for a in (scale, zero))
        factor, point = each
        error = np.abs((whole.astype(np.float32) - point) * factor - data)
        assert np.all(error <= factor * 1.0001), "the zero point is rounded, too"
        assert error.mean() < 0.3 * factor.mean()


def blocked(of: str) -> onnx.ModelProto:
    """A product by weights of four or eight bits, in blocks of 32; too large for a second cache."""
    text = """g (float[n, 2048] x) => (float[n, 336] y) {
 d = DequantizeLinear<axis = 0, block_size = 32>(w, s, z)
 y = MatMul(x, d) }"""
    low, high = {"int4": (-8, 8), "uint4": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}[of]
    kind = dtype(of).numpy
    weights: dict[str, Array] = {
        "w": RNG.integers(low, high, (2048, 336)).astype(kind),
        "z": RNG.integers(low, high, (64, 336)).astype(kind),
        "s": RNG.uniform(0.01, 0.02, (64, 336)).astype(np.float32),
    }
    return model(text, 21, weights)


@pytest.mark.parametrize("of", ["int4", "uint4", "int8", "uint8"])
def test_blocks_of_onnx_as_onnxruntime(of: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    proto = blocked(of)
    exe = unity.compile(proto, cache=None, dynamic={"n": 1})
    assert any("matmul_words" in name for name in exe.kernels)
    x = RNG.standard_normal((1, 2048)).astype(np.float32)
    options = ort.SessionOptions()  # optimized, it rounds x to 8 bits
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = proto.SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    np.testing.assert_allclose(exe(x), want, rtol=0, atol=1e-5 * float(np.abs(want).max()))


BLOCKS = """
@script.function
def main(x: u8[Tensor, 64, 8], s: f32[Tensor, {shape}]) -> f32[Tensor, 64, 8]:
    return R.dequantize(x, s, R.const(0, "uint8"), axis=0, block={block})
"""


@pytest.mark.parametrize(("shape", "block"), [("2, 8", 32), ("3, 8", 24)])
def test_blocks_may_end_in_a_shorter_one(shape: str, block: int) -> None:
    module = parse(BLOCKS.format(shape=shape, block=block))
    x = RNG.integers(0, 255, (64, 8)).astype(np.uint8)
    scale = RNG.standard_normal(tuple(map(int, shape.split(", ")))).astype(np.float32)
    want = x * np.repeat(scale, block, axis=0)[:64]
    for got in (interpret(module, "main", [x, scale]), unity.compile(module, cache=None)(x, scale)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


@pytest.mark.parametrize(("shape", "block"), [("2", 32), ("3, 8", 32), ("2, 4", 32)])
def test_scales_of_other_blocks_are_refused(shape: str, block: int) -> None:
    with pytest.raises(unity.UnityError, match="blocks of 32"):
        parse(BLOCKS.format(shape=shape, block=block))


@pytest.mark.parametrize(("weights", "error"), [("int4", 0.2), ("int8", 0.02)])
def test_an_option_of_compile_rounds_weights(
    weights: Literal["int4", "int8"], error: float
) -> None:
    module = product(1024, 320, turned=False)
    exe = unity.compile(module, weights=weights, cache=None, check=True)
    assert any("matmul_words" in name for name in exe.kernels)
    x = RNG.standard_normal((1, 1024)).astype(np.float32)
    want = np.asarray(interpret(module, "main", [x]))
    size = float(np.linalg.norm(want))
    assert 0 < float(np.linalg.norm(np.asarray(exe(x)) - want)) < error * size


def test_other_weights_are_refused() -> None:
    wrong: Any = "int3"
    with pytest.raises(unity.UnityError, match="int4"):
        unity.compile(product(64, 64, turned=False), weights=wrong)


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_constant_weights_of_matmul_nbits_are_words(bits: int, points: bool) -> None:
    ort = pytest.importorskip("onnxruntime")
    depth, columns, blocks = 1024, 320, 32
    given: dict[str, Array] = {
        "b": RNG.integers(0, 256, (columns, blocks, 4 * bits)).astype(np.uint8),
        "s": RNG.uniform(0.01, 0.02, columns * blocks).astype(np.float32),
        "z": RNG.integers(0, 256, columns * blocks * bits // 8).astype(np.uint8),
    }
    if not points:
        del given["z"]
    kept = [onnx.numpy_helper.from_array(a, name) for name, a in given.items()]
    attrs: dict[str, Any] = {
        "K": depth,
        "N": columns,
        "bits": bits,
        "block_size": 32,
        "accuracy_level": 1,
    }
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", *given], ["y"], domain="com.microsoft", **attrs
    )
    value = onnx.helper.make_tensor_value_info
    real = onnx.TensorProto.FLOAT
    ends = [value("x", real, (1, depth))], [value("y", real, (1, columns))]
    graph = onnx.helper.make_graph([node], "g", *ends, kept)
    sets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    proto = onnx.helper.make_model(graph, opset_imports=sets, ir_version=8)
    exe = unity.compile(proto, cache=None)
    assert any("matmul_words" in name for name in exe.kernels)
    x = RNG.standard_normal((1, depth)).astype(np.float32)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    np.testing.assert_allclose(exe(x), want, rtol=0, atol=1e-4 * float(np.abs(want).max()))


def test_a_matrix_that_products_take_both_ways_has_blocks_for_each() -> None:
    text = """
@script.function
def main(x: f32[Tensor, 1, 128]) -> f32[Tensor, 1, 128]:
    return R.matmul(R.matmul(x, R.const("w")), R.permute_dims(R.const("w"), axes=(1, 0)))
"""
    weight = RNG.standard_normal((128, 192)).astype(np.float32)
    module, x = parse(text, {"w": weight}), RNG.standard_normal((1, 128)).astype(np.float32)
    want = x @ weight @ weight.T
    got = np.asarray(unity.compile(module, weights="int8", cache=None)(x))
    np.testing.assert_allclose(got, want, rtol=0, atol=0.01 * float(np.abs(want).max()))


def test_infinities_stay_what_they_are() -> None:
    module = product(128, 128, turned=False)
    text = print_module(module)
    weight = np.eye(128, dtype=np.float32)
    weight[3, 5] = np.inf
    module = parse(text, {"w": weight})
    assert "dequantize" not in print_module(QuantizeWeights()(module, SMALL))
