"""`unity.quantize`: against onnxruntime on the same file, against float32, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import unity
from unity.errors import UnityError
from unity.quantization import QuantizedModel

from .models import Array, conv_net, expected, linear, model, normal, saved

IMAGES = [{"x": normal(1, 3, 16, 16, seed=s)} for s in range(8)]


def kinds(proto: onnx.ModelProto) -> Counter[str]:
    return Counter(n.op_type for n in proto.graph.node)


def weights_of(proto: onnx.ModelProto) -> dict[str, Array]:
    return {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}


def off(got: Array, want: Array) -> float:
    """The largest difference, of the largest value."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    return float(np.abs(a - b).max() / np.abs(b).max())


def agrees_with_onnxruntime(found: QuantizedModel, feeds: Mapping[str, Array]) -> None:
    """A number in a thousand may be a quantum off, where what is rounded lies between two."""
    got = unity.compile(found.model).run(feeds)
    for a, b in zip(got.values(), expected(found.model, feeds), strict=True):
        assert off(a, b) < 2e-3


@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_a_network_of_convolutions(activations: Any) -> None:
    found = unity.quantize(conv_net(), IMAGES, activations=activations)
    assert found.report.quantized == ("first", "second", "last")
    assert "BatchNormalization" not in kinds(found.model)
    agrees_with_onnxruntime(found, IMAGES[0])
    (error,) = found.report.errors
    assert error.sqnr > 30
    assert error.largest < 0.05
    assert error.same_argmax == 1.0
    assert found.report.bytes_after < found.report.bytes_before / 2
    assert {str(w.dtype) for w in weights_of(found.model).values() if w.size > 16} == {"int8"}


def test_what_a_pool_moves_has_one_scale() -> None:
    found = unity.quantize(conv_net(), IMAGES)
    by = {n.output[0]: n.input[1] for n in found.model.graph.node if n.op_type == "QuantizeLinear"}
    assert by["r1_quantized"] == by["p1_quantized"]
    add = next(n for n in found.model.graph.node if n.op_type == "Add")
    assert "p1_dequantized" in add.input  # who reads what is quantized anyway stores no reals


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions(groups: int) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], "up", group=groups)
    weights = {"w": normal(8, 6, 3, 3, seed=1), "b": normal(6 * groups, seed=2)}
    x: list[dict[str, Array]] = [{"x": normal(1, 8, 5, 5, seed=s)} for s in range(3)]
    found = unity.quantize(model([node], weights, (1, 8, 5, 5)), x)
    assert weights_of(found.model)["w_scale"].shape == (6,)
    agrees_with_onnxruntime(found, x[0])
    assert found.report.errors[0].sqnr > 35


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize(
    ("weight", "attributes", "axis"),
    [((32, 24), {}, 1), ((24, 32), {"transB": 1}, 0), ((32, 24), {"alpha": 0.5, "beta": 2.0}, 1)],
)
def test_gemm(weight: tuple[int, int], attributes: dict[str, Any], axis: int) -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "product", **attributes)
    weights = {"w": normal(*weight, seed=1), "b": normal(24, seed=2)}
    x = [(normal(6, 32, seed=s),) for s in range(3)]
    found = unity.quantize(model([node], weights, (6, 32)), x)
    (dequantize,) = (n for n in found.model.graph.node if "w_quantized" in n.input)
    assert helper.get_node_attr_value(dequantize, "axis") == axis
    agrees_with_onnxruntime(found, {"x": x[0][0]})
    assert found.report.errors[0].sqnr > 35


def test_products_of_what_is_computed() -> None:
    """Attention: both operands are quantized, each by its own range; moves share one."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["q"], "query"),
        node("Transpose", ["q"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["q", "t"], ["s"], "scores"),
        node("Softmax", ["s"], ["p"]),
        node("MatMul", ["p", "q"], ["y"], "sums"),
    ]
    x: list[dict[str, Array]] = [{"x": normal(2, 7, 32, seed=s)} for s in range(3)]
    found = unity.quantize(model(nodes, {"w": normal(32, 32, scale=0.1)}, (2, 7, 32)), x)
    assert found.report.quantized == ("query", "scores", "sums")
    assert [r.name for r in found.report.ranges] == ["x", "q", "p"]
    agrees_with_onnxruntime(found, x[0])
    assert found.report.errors[0].sqnr > 30


def test_a_known_left_operand() -> None:
    nodes = [helper.make_node("MatMul", ["w", "x"], ["y"], "product")]
    x = [normal(32, 6, seed=s) for s in range(2)]
    found = unity.quantize(model(nodes, {"w": normal(24, 32)}, (32, 6)), x)
    assert weights_of(found.model)["w_scale"].shape == (24,)
    agrees_with_onnxruntime(found, {"x": x[0]})


def test_entropy_leaves_out_what_is_far_out() -> None:
    """One value in thousands is a hundred times the others: their steps need not pay for it."""
    samples: list[dict[str, Array]] = []
    for seed in range(4):
        x = normal(64, 64, seed=seed)
        x[0, 0] = 300.0
        samples.append({"x": x})
    proto = linear(normal(64, 32, seed=9))
    ordinary: dict[str, Array] = {"x": normal(64, 64, seed=7)}
    want = expected(proto, ordinary)[0]
    errors: dict[str, float] = {}
    for method in ("minmax", "entropy"):
        found = unity.quantize(proto, samples, method=method)
        (about,) = found.report.ranges
        assert about.high == 300.0 if method == "minmax" else about.high < 30
        errors[method] = off(unity.compile(found.model).run(ordinary)["y"], want)
    assert errors["entropy"] < errors["minmax"] / 5


def test_channels_of_different_size_have_their_own_scales() -> None:
    weight = normal(64, 32) * np.logspace(-3, 0, 32, dtype=np.float32)
    x = [normal(16, 64, seed=s) for s in range(3)]
    want = expected(linear(weight), {"x": x[0]})[0]
    worst: list[float] = []
    for per_channel in (True, False):
        found = unity.quantize(linear(weight), x, per_channel=per_channel)
        agrees_with_onnxruntime(found, {"x": x[0]})
        got = unity.compile(found.model).run({"x": x[0]})["y"]
        worst.append(max(off(got[:, k], want[:, k]) for k in range(32)))
    assert worst[0] < 0.03
    assert worst[1] > 0.3


def test_a_bias_far_larger_than_the_sums() -> None:
    """Its steps would not fit int32: the channel's scale grows."""
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], "product")
    weights = {"w": normal(16, 8, 1, 1) * np.float32(1e-9), "b": np.full(16, 100, np.float32)}
    x: list[dict[str, Array]] = [{"x": normal(1, 8, 4, 4, seed=s)} for s in range(2)]
    found = unity.quantize(model([node], weights, (1, 8, 4, 4)), x)
    agrees_with_onnxruntime(found, x[0])
    assert off(unity.compile(found.model).run(x[0])["y"], np.full((1, 16, 4, 4), 100.0)) < 1e-6


def test_zeros() -> None:
    found = unity.quantize(linear(np.zeros((16, 16), np.float32)), [np.zeros((2, 16), np.float32)])
    assert not unity.compile(found.model).run({"x": normal(2, 16)})["y"].any()
    assert found.report.errors[0].sqnr == float("inf")


def test_weights_of_4_bits() -> None:
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w1"], ["a"], "first"),
        node("Relu", ["a"], ["r"]),
        node("Gemm", ["r", "w2", "b2"], ["y"], "second", transB=1),
    ]
    weights = {"w1": normal(72, 64, seed=1), "w2": normal(48, 64, seed=2), "b2": normal(48, seed=3)}
    proto = model(nodes, weights, ("n", 72))
    found = unity.quantize(proto, weights="int4")
    assert found.report.errors == ()
    assert kinds(found.model) == {"MatMulNBits": 2, "Relu": 1, "Add": 1}
    x: Array = normal(3, 72, seed=4)
    got = unity.compile(found.model).run({"x": x})["y"]
    assert off(got, expected(found.model, {"x": x})[0]) < 1e-5
    found = unity.quantize(proto, [x], weights="int4", block=16)
    assert 18 < found.report.errors[0].sqnr < 30
    assert found.report.bytes_after < found.report.bytes_before / 4


def test_excluded_nodes_read_reals() -> None:
    found = unity.quantize(conv_net(), IMAGES, exclude=["first", "Gemm"])
    assert found.report.quantized == ("second",)
    assert found.report.left == {"first": "excluded", "last": "excluded"}
    first = next(n for n in found.model.graph.node if n.name == "first")
    assert list(first.input) == ["x", "w1", "b1"]
    agrees_with_onnxruntime(found, IMAGES[0])
    without = unity.quantize(conv_net(), IMAGES)
    assert found.report.errors[0].sqnr > without.report.errors[0].sqnr


def test_weights_by_constant_nodes_and_transposes() -> None:
    node = helper.make_node
    nodes = [
        node("Constant", [], ["c"], value=numpy_helper.from_array(normal(24, 32))),
        node("Transpose", ["c"], ["w"], perm=[1, 0]),
        node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    x = [normal(4, 32, seed=s) for s in range(2)]
    found = unity.quantize(model(nodes, {}, (4, 32)), x)
    assert weights_of(found.model)["w_quantized"].shape == (32, 24)
    agrees_with_onnxruntime(found, {"x": x[0]})


def test_an_early_opset_and_a_file(tmp_path: Path) -> None:
    path = saved(linear(normal(32, 24), opset=9), tmp_path)
    x = [normal(4, 32)]
    found = unity.quantize(path, x)
    found.save(tmp_path / "quantized.onnx")
    again = unity.quantize(path.read_bytes(), x)
    assert again.model == found.model
    got = unity.compile(tmp_path / "quantized.onnx").run({"x": x[0]})["y"]
    assert off(got, expected(found.model, {"x": x[0]})[0]) < 2e-3


def test_products_of_other_types_are_left() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["y"], "doubles"),
        helper.make_node("Cast", ["x"], ["f"], to=onnx.TensorProto.FLOAT),
        helper.make_node("MatMul", ["f", "w"], ["z"], "floats"),
    ]
    proto = model(nodes, {"w": normal(4, 4)}, (4, 4), kind=onnx.TensorProto.DOUBLE)
    proto.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None))
    found = unity.quantize(proto, [np.eye(4)])
    assert found.report.left == {"doubles": "operands of float64"}
    assert found.report.quantized == ("floats",)


def test_the_report_reads() -> None:
    text = str(unity.quantize(conv_net(), IMAGES, exclude=["last"]).report)
    assert "2 products quantized, 1 left" in text
    assert "left, excluded: 1 (last)" in text
    assert "same argmax 100.0%" in text


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no data": ({"calibration_data": None}, "needs calibration_data"),
    "no samples": ({"calibration_data": []}, "calibration_data has no samples"),
    "one dict": ({"calibration_data": IMAGES[0]}, "is one dict"),
    "one array": ({"calibration_data": IMAGES[0]["x"]}, "is one array"),
    "a number": ({"calibration_data": [1]}, "sample 0: expected arrays by name, got a int"),
    "two arrays": (
        {"calibration_data": [(normal(2), normal(2))]},
        "sample 0: expected 1 arrays, got 2",
    ),
    "a shape": ({"calibration_data": [{"x": normal(1, 3, 9, 9)}]}, "(?s)sample 0: .*x"),
    "a name": ({"calibration_data": [{"z": normal(1, 3, 16, 16)}]}, "(?s)sample 0: .*z"),
    "infinity": (
        {"calibration_data": [np.full((1, 3, 16, 16), np.inf, np.float32)]},
        "'x' is not finite for the sample 0",
    ),
    "an unknown node": ({"exclude": ["frist"]}, "there is no node or operator 'frist'"),
    "no products": ({"exclude": ["Conv", "Gemm"]}, "has nothing to quantize"),
    "a block": ({"weights": "int4", "block": 24}, "block=24"),
    "a method": ({"method": "max"}, "expected one of 'minmax', 'entropy'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(UnityError, match=message):
        unity.quantize(conv_net(), **{"calibration_data": IMAGES[:1], **given})


def test_a_range_that_nothing_was_seen_of_is_refused() -> None:
    with pytest.raises(UnityError, match="'x' has no elements in any sample"):
        unity.quantize(linear(normal(4, 4)), [np.zeros((0, 4), np.float32)])


def test_what_is_no_onnx_model_is_refused() -> None:
    with pytest.raises(UnityError, match="can't quantize"):
        unity.quantize(cast("str", unity.load(linear(normal(4, 4)))), [normal(2, 4)])


def test_a_quantized_model_is_refused() -> None:
    found = unity.quantize(conv_net(), IMAGES[:1])
    with pytest.raises(UnityError, match="is quantized already"):
        unity.quantize(found.model, IMAGES[:1])


def test_nodes_of_one_name() -> None:
    """Names are for people: several nodes may have one, or that of another's output."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["h"], "a"),
        node("MatMul", ["v", "h"], ["g"], "a"),
        node("MatMul", ["g", "w2"], ["k"]),
        node("MatMul", ["v2", "k"], ["y"], "k"),
    ]
    weights = {"w": normal(16, 8), "v": normal(5, 4), "w2": normal(8, 6), "v2": normal(3, 5)}
    x: list[dict[str, Array]] = [{"x": normal(4, 16, seed=s)} for s in range(2)]
    proto = model(nodes, weights, (4, 16))
    found = unity.quantize(proto, x)
    assert len(found.report.quantized) == 4
    agrees_with_onnxruntime(found, x[0])
    assert len(unity.quantize(proto, x, exclude=["a"]).report.quantized) == 2


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("per_channel", [True, False])
def test_one_bias_for_all_columns(per_channel: bool) -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "product")
    x: list[dict[str, Array]] = [{"x": normal(4, 16, seed=s)} for s in range(2)]
    proto = model([node], {"w": normal(16, 8), "b": normal(1, seed=2)}, ("n", 16))
    found = unity.quantize(proto, x, per_channel=per_channel)
    agrees_with_onnxruntime(found, x[0])
    assert found.report.errors[0].sqnr > 30


def test_what_a_branch_reads_is_not_folded_away() -> None:
    node, info = helper.make_node, helper.make_tensor_value_info
    branches = [
        helper.make_graph(
            [node(kind, ["c2"], ["r"])], kind, [], [info("r", onnx.TensorProto.FLOAT, None)]
        )
        for kind in ("Identity", "Neg")
    ]
    proto = conv_net()
    proto.graph.input.append(info("f", onnx.TensorProto.BOOL, []))
    proto.graph.output.append(info("z", onnx.TensorProto.FLOAT, None))
    then, other = branches
    proto.graph.node.append(node("If", ["f"], ["z"], "choice", then_branch=then, else_branch=other))
    x: dict[str, Array] = {**IMAGES[0], "f": np.array(False)}
    found = unity.quantize(proto, [x])
    assert "BatchNormalization" in kinds(found.model)
    agrees_with_onnxruntime(found, x)


def test_constants_that_are_inputs() -> None:
    """So formats before 4 have it; what is added need not be an input."""
    proto = linear(normal(16, 8), opset=9)
    proto.ir_version = 3
    proto.graph.input.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [16, 8]))
    found = unity.quantize(proto, [normal(2, 16)])
    onnx.checker.check_model(found.model)
    assert [i.name for i in found.model.graph.input] == ["x"]
