"""FoldQuantization: constants dequantized, activations kept as reals; QDQ models as onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.frontend.onnx.programs import model
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Function, VarBinding
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import EliminateDeadCode, FoldQuantization

RNG = np.random.default_rng(11)


def folded(module: IRModule) -> IRModule:
    context = Context()
    return EliminateDeadCode()(FoldQuantization()(module, context), context)


def calls(module: IRModule) -> list[Call]:
    main = module["main"]
    assert isinstance(main, Function)
    values = [b.value for b in walk_bindings(main) if isinstance(b, VarBinding)]
    return [v for v in values if isinstance(v, Call)]


def held(first: str, second: str, axis: str = "") -> IRModule:
    return parse(f"""
@script.function
def main(x: f32[Tensor, 64, 3]) -> f32[Tensor, 64, 3]:
    q = R.quantize(x, {first}{axis})
    return R.dequantize(q, {second}{axis})
""")


@pytest.mark.parametrize("zero", [-128, -5, 0, 127])
def test_one_scale_both_ways_gives_the_same_reals(zero: int) -> None:
    module = held(f"0.037, {zero}", f"0.037, {zero}")
    x = RNG.uniform(-9, 9, (64, 3)).astype(np.float32)
    x[:8, 0] = 0.037 * (np.arange(8) - 3.5)  # halves
    after = folded(module)
    assert "R.quantize" not in print_module(after)
    expected, got = (np.asarray(interpret(m, "main", [x])) for m in (module, after))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("first", "second", "axis"),
    [
        ("0.5, 0", "0.25, 0", ""),
        ("0.5, 0", "0.5, 1", ""),
        ('R.const([0.5, 0.25, 1.0], "float32"), 0', 'R.const([0.5, 0.25, 1.0], "float32"), 0', ""),
    ],
)
def test_other_scales_stay(first: str, second: str, axis: str) -> None:
    module = held(first, second, axis)
    assert folded(module) is module


def test_integers_that_something_else_reads_stay_for_it() -> None:
    module = parse("""
@script.function
def main(x: f32[Tensor, 4]) -> tuple[i8[Tensor, 4], f32[Tensor, 4]]:
    q = R.quantize(x, 0.5, 0)
    y = R.dequantize(q, 0.5, 0)
    return (q, y)
""")
    text = print_module(folded(module))
    assert text.count("R.quantize") == 1
    assert "R.dequantize" not in text


def test_constants_are_dequantized_once_whatever_their_size() -> None:
    weight = RNG.integers(-128, 128, (300, 300), dtype=np.int8)
    module = parse(
        """
@script.function
def main(x: f32[Tensor, 2, 300]) -> f32[Tensor, 2, 300]:
    a = R.dequantize(R.const("w"), 0.5, 3)
    b = R.dequantize(R.const("w"), 0.5, 3)
    return R.matmul(R.matmul(x, a), b)
""",
        {"w": weight},
    )
    after = folded(module)
    text = print_module(after)
    assert "R.dequantize" not in text
    made = [a for c in calls(after) for a in c.args if isinstance(a, Constant)]
    assert len(made) == 2
    assert made[0] is made[1]
    x = RNG.standard_normal((2, 300)).astype(np.float32)
    expected, got = (np.asarray(interpret(m, "main", [x])) for m in (module, after))
    np.testing.assert_array_equal(got, expected)


GRAPH = """g (float[n, 3, 9, 9] x) => (float[n, 6] y) {
 xq = QuantizeLinear(x, s, z) xr = DequantizeLinear(xq, s, z)
 wr = DequantizeLinear <axis = 0> (w, ws, wz)
 br = DequantizeLinear <axis = 0> (b, bs, bz)
 c = Conv <pads = [1, 1, 1, 1]> (xr, wr, br)
 cr = Relu(c)
 cq = QuantizeLinear(cr, s, z) cd = DequantizeLinear(cq, s, z)
 vr = DequantizeLinear <axis = 0> (v, ws, wz)
 d = Conv <pads = [1, 1, 1, 1]> (cd, vr)
 dq = QuantizeLinear(d, t, z) dd = DequantizeLinear(dq, t, z)
 a = Add(dd, cd)
 aq = QuantizeLinear(a, t, z) ad = DequantizeLinear(aq, t, z)
 p = GlobalAveragePool(ad)
 f = Flatten(p)
 fq = QuantizeLinear(f, t, z) y = DequantizeLinear(fq, t, z) }"""


def test_a_quantized_network_is_within_a_quantum_of_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    scales = RNG.uniform(0.001, 0.01, 6).astype(np.float32)
    weights: dict[str, Array] = {
        "s": np.array(0.03, np.float32),
        "t": np.array(0.05, np.float32),
        "z": np.array(120, np.uint8),
        "w": RNG.integers(-127, 128, (6, 3, 3, 3), dtype=np.int8),
        "v": RNG.integers(-127, 128, (6, 6, 3, 3), dtype=np.int8),
        "ws": scales,
        "wz": np.zeros(6, np.int8),
        "b": RNG.integers(-3000, 3000, 6, dtype=np.int32),
        "bs": scales * np.float32(0.03),
        "bz": np.zeros(6, np.int32),
    }
    proto = model(GRAPH, 18, weights)
    options = ort.SessionOptions()
    # Otherwise pairs of 8-bit products saturate on machines without instructions for them.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    x = RNG.standard_normal((2, 3, 9, 9)).astype(np.float32)
    (expected,) = session.run(None, {"x": x})
    got = np.asarray(unity.compile(proto, cache=None)(x))
    assert np.abs(np.rint((got - expected) / 0.05)).max() <= 1
    assert (got.argmax(1) == expected.argmax(1)).all()
