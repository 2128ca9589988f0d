"""Patterns on imported models: those of PyPI packages, of torch's exporter, of a quantizer.

What must be found is counted in the ONNX files, by chains of nodes, not in what we import.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

import unity
from tests.extras import file_in_package
from tests.transform.pattern import idioms
from unity import script
from unity.ir.graph import Constant, Function, Var
from unity.script import R, Tensor, dim, f32
from unity.transform import Context
from unity.transform.graph import Rewrite, SimplifyOps
from unity.transform.graph.resolve import Resolve
from unity.transform.pattern import Match, Pattern, find

OCR = "rapidocr_onnxruntime/models/"
DIRECTION = OCR + "ch_ppocr_mobile_v2.0_cls_infer.onnx"
DETECTION = OCR + "ch_PP-OCRv4_det_infer.onnx"
RECOGNITION = OCR + "ch_PP-OCRv4_rec_infer.onnx"
EMBEDDING = "openwakeword/resources/models/embedding_model.onnx"
MARVIN = "openwakeword/resources/models/hey_marvin_v0.1.onnx"
JARVIS = "openwakeword/resources/models/hey_jarvis_v0.1.onnx"


def model_of(path: str) -> onnx.ModelProto:
    return onnx.load(file_in_package(path))


def found_in(pattern: Pattern, model: onnx.ModelProto) -> list[Match]:
    function = unity.load(model)["main"]
    assert isinstance(function, Function)
    return find(pattern, function)


def chains(model: onnx.ModelProto, *kinds: str) -> int:
    """How many paths of nodes there are whose values go nowhere else, constants left out."""
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    results = {o.name for o in model.graph.output}

    def reaches(node: onnx.NodeProto, rest: tuple[str, ...]) -> bool:
        if not rest:
            return True
        (value, *_), after = node.output, users.get(node.output[0], [])
        if value in results or len(after) != 1 or after[0].op_type != rest[0]:
            return False
        return reaches(after[0], rest[1:])

    return sum(n.op_type == kinds[0] and reaches(n, kinds[1:]) for n in model.graph.node)


def sums(model: onnx.ModelProto) -> int:
    """How many additions there are of two values that are computed."""
    known = {i.name for i in model.graph.initializer}
    known |= {n.output[0] for n in model.graph.node if n.op_type == "Constant"}
    made: set[str] = set()
    for node in model.graph.node:  # of constants only: a bias in another shape
        if node.input and set(node.input) <= known | made:
            made.update(node.output)
    return sum(n.op_type == "Add" and not set(n.input) & (known | made) for n in model.graph.node)


@pytest.mark.packages
def test_convolutions_with_what_follows() -> None:
    direction = model_of(DIRECTION)
    expected = chains(direction, "Conv", "BatchNormalization", "Relu")
    expected += chains(direction, "Conv", "Add", "Relu")
    matches = found_in(idioms.convolution(), direction)
    assert len(matches) == expected == 15
    assert sum(m.get("bias") is not None for m in matches) == chains(
        direction, "Conv", "Add", "Relu"
    )
    detection = model_of(DETECTION)
    expected = chains(detection, "Conv", "Relu") + chains(
        detection, "Conv", "BatchNormalization", "Relu"
    )
    assert len(found_in(idioms.convolution(), detection)) == expected == 11
    leaky = idioms.convolution("nn.leakyrelu")
    embedding = model_of(EMBEDDING)
    assert len(found_in(leaky, embedding)) == chains(embedding, "Conv", "LeakyRelu") == 18


@pytest.mark.packages
def test_convolutions_and_what_is_added() -> None:
    direction = model_of(DIRECTION)
    matches = found_in(idioms.residual(), direction)
    assert len(matches) == sums(direction) == 7
    for match in matches:
        assert isinstance(match["weight"], Constant)
        assert isinstance(match["shortcut"], Var)


@pytest.mark.packages
def test_normalization_from_primitives() -> None:
    for path, expected in ((MARVIN, 2), (JARVIS, 2), (RECOGNITION, 5)):
        model = model_of(path)
        assert chains(model, "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add") == expected
        matches = found_in(idioms.layer_norm(), model)
        assert len(matches) == expected
        assert all(isinstance(m["gamma"], Constant) and "beta" in m.captures for m in matches)


@pytest.mark.packages
def test_attention_and_swish() -> None:
    model = model_of(RECOGNITION)
    matches = found_in(idioms.attention(), model)
    assert len(matches) == chains(model, "Softmax", "MatMul") == 2
    assert all(m.get("mask") is None and isinstance(m["scale"], Constant) for m in matches)
    assert len(found_in(idioms.swish(), model)) == Counter(
        n.op_type for n in model.graph.node
    )["Sigmoid"] == 7  # fmt: skip
    assert found_in(idioms.gelu(), model) == []


def torch_model(name: str) -> onnx.ModelProto:
    from tests.transform.pattern import torch_models

    made = getattr(torch_models, name)()
    assert isinstance(made, onnx.ModelProto)
    return made


@pytest.mark.torch
def test_a_transformer_of_torch() -> None:
    model = torch_model("transformer")
    matches = found_in(idioms.attention(), model)
    assert [m.get("mask") is not None for m in matches] == [False, True]
    assert len(matches) == chains(model, "Softmax", "MatMul")
    norms = chains(model, "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add")
    assert len(found_in(idioms.layer_norm(), model)) == norms == 4
    by_erf, by_tanh = found_in(idioms.gelu(), model)
    assert chains(model, "Div", "Erf", "Add", "Mul", "Mul") == 1
    assert chains(model, "Mul", "Tanh", "Add", "Mul", "Mul") == 1
    assert len(by_erf.inner) == 4
    assert len(by_tanh.inner) == 8


@pytest.mark.torch
def test_residual_blocks_of_torch() -> None:
    model = torch_model("residual")
    added = found_in(idioms.residual(), model)
    assert len(added) == chains(model, "Conv", "Add", "Relu") == 3
    assert all(len(m.inner) == 3 for m in added)  # the convolution, its bias, the sum
    assert len(found_in(idioms.convolution(), model)) == chains(model, "Conv", "Relu") == 4


@pytest.mark.torch
def test_products_that_a_quantizer_wrote(tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    rng = np.random.default_rng(0)
    paths = [tmp_path / "float.onnx", tmp_path / "quantized.onnx"]
    onnx.save(torch_model("products"), paths[0])
    samples = [{"x": rng.standard_normal((4, 16), np.float32)} for _ in range(4)]
    reader = SimpleNamespace(get_next=iter([*samples, None]).__next__)
    quantization.quantize_static(*paths, reader, quant_format=quantization.QuantFormat.QDQ)
    model = onnx.load(paths[1])
    matches = found_in(idioms.quantized_product(), model)
    assert len(matches) == chains(model, "QuantizeLinear", "DequantizeLinear", "MatMul") == 1
    matches = found_in(idioms.quantized_product(shared=True), model)
    assert len(matches) == Counter(n.op_type for n in model.graph.node)["MatMul"] == 2
    for match in matches:
        assert isinstance(match["weight"], Constant)
        assert isinstance(match["x"], Var)
    assert found_in(idioms.quantized_product(shared=True), onnx.load(paths[0])) == []


n, m = dim("n"), dim("m")


@script.function
def by_hand(x: f32[Tensor, n, m], gamma: f32[Tensor, m], beta: f32[Tensor, m]) -> f32[Tensor, n, m]:
    centred = R.subtract(x, R.mean(x, axis=(1,), keepdims=True))
    variance = R.mean(R.square(centred), axis=(1,), keepdims=True)
    normal = R.divide(centred, R.sqrt(R.add(variance, 1e-5)))
    return R.add(R.multiply(normal, gamma), beta)


@script.function
def at_once(x: f32[Tensor, n, m], gamma: f32[Tensor, m], beta: f32[Tensor, m]) -> f32[Tensor, n, m]:
    return R.nn.layer_norm(x, gamma, beta, axes=(1,), epsilon=1e-5)


@pytest.mark.packages
def test_a_rule_of_a_user_on_a_real_model() -> None:
    ort = pytest.importorskip("onnxruntime")
    model = model_of(MARVIN)
    rule = unity.rewrite_rule(by_hand, at_once)
    passes = unity.pipeline().insert_after(SimplifyOps, Rewrite((rule,)))
    executable = unity.compile(model, pipeline=passes)
    text = str(passes.until(Resolve).run(unity.load(model), Context()))
    assert text.count("R.nn.layer_norm(") == 2
    assert "R.sqrt(" not in text
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    x = np.random.default_rng(0).standard_normal(given.shape, np.float32)
    (expected,) = session.run(None, {given.name: x})
    np.testing.assert_allclose(executable(x), expected, 1e-4, 1e-6)
