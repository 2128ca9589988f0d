"""RNN, GRU and LSTM: random nodes with all attributes, interpreted and compiled, as onnxruntime."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Call, Op, Scan
from unity.ir.visit import walk_bindings

from .programs import check, main_of

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
PLAIN = ("Tanh", "Sigmoid", "Relu", "Softsign", "Softplus")
WITH_PARAMETERS = ("Affine", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "ScaledTanh")


@dataclass(frozen=True, slots=True)
class Case:
    """A node as a model, and inputs for it."""

    model: onnx.ModelProto
    feeds: dict[str, Array]


def case(seed: int, steps: int, batch: int, symbolic: bool, kind: str | None = None) -> Case:
    """A node with some of its optional inputs, outputs and attributes."""
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    kind = kind or pick.choice(list(GATES))
    direction = pick.choice(("forward", "reverse", "bidirectional"))
    sides, hidden, width = 2 if direction == "bidirectional" else 1, pick.choice((3, 8)), 5
    rows = GATES[kind] * hidden

    def array(*shape: int, source: np.random.Generator = rng) -> Array:
        return source.standard_normal(shape, np.float32) * np.float32(0.3)

    given = np.random.default_rng(seed + 1)

    weights = {"w": array(sides, rows, width), "r": array(sides, rows, hidden)}
    feeds: dict[str, Array] = {"x": array(steps, batch, width, source=given)}
    inputs = ["x", "w", "r", "", "", ""]
    if pick.random() < 0.7:
        weights["b"] = array(sides, 2 * rows)
        inputs[3] = "b"
    if pick.random() < 0.4 and steps:
        lengths = given.integers(1, steps + 1, batch)
        lengths[0] = steps  # onnxruntime takes the longest for the whole
        feeds["lengths"] = lengths.astype(np.int32)
        inputs[4] = "lengths"
    if pick.random() < 0.5:
        feeds["h"] = array(sides, batch, hidden, source=given)
        inputs[5] = "h"
    if kind == "LSTM":
        if pick.random() < 0.5:
            feeds["c"] = array(sides, batch, hidden, source=given)
        inputs.append("c" if "c" in feeds else "")
        if pick.random() < 0.3:
            weights["p"] = array(sides, 3 * hidden)
            inputs.append("p")
    node = helper.make_node(kind, inputs, outputs(pick, kind))
    given_attributes = {"hidden_size": hidden, "direction": direction}
    set_attributes(node, **given_attributes, **attributes(pick, kind, sides))
    return Case(as_model(node, weights, feeds, symbolic), feeds)


def set_attributes(node: onnx.NodeProto, **attrs: object) -> None:
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attrs.items())


def outputs(pick: random.Random, kind: str) -> list[str]:
    names = ["y", "y_h", "y_c"] if kind == "LSTM" else ["y", "y_h"]
    kept = [n if pick.random() < 0.7 else "" for n in names]
    return kept if any(kept) else names


def attributes(pick: random.Random, kind: str, sides: int) -> dict[str, object]:
    found: dict[str, object] = {}
    if pick.random() < 0.3:
        found["clip"] = 0.4
    if kind == "GRU":
        found["linear_before_reset"] = pick.randint(0, 1)
    if kind == "LSTM" and pick.random() < 0.3:
        found["input_forget"] = 1
    if pick.random() < 0.4:
        names = [pick.choice(PLAIN + WITH_PARAMETERS) for _ in range(FUNCTIONS[kind] * sides)]
        with_alpha = sum(n in WITH_PARAMETERS for n in names)
        with_beta = sum(n in ("Affine", "HardSigmoid", "ScaledTanh") for n in names)
        found["activations"] = names
        if with_alpha:
            found["activation_alpha"] = [pick.choice((0.5, 0.25)) for _ in range(with_alpha)]
        if with_beta:
            found["activation_beta"] = [pick.choice((0.1, 0.3)) for _ in range(with_beta)]
    return found


def as_model(
    node: onnx.NodeProto, weights: dict[str, Array], feeds: dict[str, Array], symbolic: bool
) -> onnx.ModelProto:
    names: dict[str, tuple[str | None, ...]] = {
        "x": ("t", "n", None),
        "lengths": ("n",),
        "h": (None, "n", None),
        "c": (None, "n", None),
    }
    infos = []
    for name, value in feeds.items():
        shape: list[str | int] = list(value.shape)
        if symbolic:
            shape = [n or d for n, d in zip(names[name], value.shape, strict=True)]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(name, kind, shape))
    results = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in node.output if o]
    initializers = [numpy_helper.from_array(w, n) for n, w in weights.items()]
    graph = helper.make_graph([node], "g", infos, results, initializers)
    opsets = [helper.make_opsetid("", 14)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def expected(c: Case) -> Sequence[Array]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(
        c.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, c.feeds)


def as_list(found: object) -> list[Array]:
    return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]


def assert_all_close(got: Sequence[Array], want: Sequence[Array]) -> None:
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=1e-4, atol=1e-5)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("seed", range(24))
def test_interpreted_as_onnxruntime(seed: int) -> None:
    c = case(seed, steps=1 + seed % 4, batch=1 + seed % 3, symbolic=seed % 2 == 0)
    module = from_onnx(c.model)
    check(module)
    found = interpret(module, "main", list(c.feeds.values()))
    assert_all_close(as_list(found), expected(c))


@pytest.mark.rotated(6)
@pytest.mark.parametrize("seed", range(100, 112))
def test_compiled_as_onnxruntime_over_lengths_and_batches(seed: int) -> None:
    made = unity.compile(case(seed, 3, 2, symbolic=True).model)
    assert set(made.native().values()) == {"native"}
    for steps, batch in ((3, 2), (1, 1), (6, 3)):
        c = case(seed, steps, batch, symbolic=True)
        assert_all_close(list(made.run(c.feeds).values()), expected(c))


@pytest.mark.rotated(2)
@pytest.mark.parametrize("kind", list(GATES))
def test_no_steps_give_the_initial_state(kind: str) -> None:
    c = case(3, 0, 2, symbolic=True, kind=kind)
    found = unity.compile(c.model).run(c.feeds)
    for name, value in found.items():
        if name == "y":
            assert value.shape[0] == 0
        else:
            initial = c.feeds.get(name.removeprefix("y_"), np.zeros(value.shape, np.float32))
            np.testing.assert_array_equal(value, initial)


def test_the_input_is_projected_once_for_all_steps() -> None:
    main = main_of(from_onnx(case(0, 4, 1, symbolic=False, kind="LSTM").model))
    (scan,) = [b.value for b in main.body.blocks[1].bindings if isinstance(b.value, Scan)]
    inside = [b.value for b in walk_bindings(scan.body)]
    products = [v for v in inside if isinstance(v, Call) and v.callee == Op("matmul")]
    assert len(products) == 1  # the other one stands before the scan


def batchwise(kind: str) -> onnx.ModelProto:
    rows = GATES[kind] * 4
    node = helper.make_node(kind, ["x", "w", "r"], ["y"], hidden_size=4, layout=1)
    weights: dict[str, Array] = {
        "w": np.ones((1, rows, 5), np.float32),
        "r": np.ones((1, rows, 4), np.float32),
    }
    return as_model(node, weights, {"x": np.zeros((2, 3, 5), np.float32)}, symbolic=False)


def test_layout_by_batch() -> None:
    found = unity.compile(batchwise("GRU"))(np.zeros((2, 3, 5), np.float32))
    assert np.asarray(found).shape == (2, 3, 1, 4)


def changed(**attrs: object) -> onnx.ModelProto:
    model = batchwise("LSTM")
    set_attributes(model.graph.node[0], **attrs)
    return model


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UnityError, match="the direction 'sideways' is none of forward"):
        from_onnx(changed(direction="sideways"))
    with pytest.raises(UnityError, match="takes 3 activations, got 1"):
        from_onnx(changed(activations=["Tanh"]))
    with pytest.raises(UnsupportedError) as refused:
        from_onnx(changed(activations=["Tanh", "Tanh", "Sine"]))
    assert "the activation 'Sine'" in refused.value.gaps[0]
    model = batchwise("LSTM")
    model.graph.node[0].attribute[0].i = 7
    with pytest.raises(UnityError, match="hidden_size is 7, but the weights have 4"):
        from_onnx(model)


def test_an_input_of_unknown_width() -> None:
    """The weights say what it must be; another width is refused when the model runs."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 2, 5), np.float32)
    weights = {
        "w": rng.standard_normal((1, 32, 5), np.float32),
        "r": rng.standard_normal((1, 32, 8), np.float32),
    }
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=8)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", "b", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, name) for name, a in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString())
    exe = unity.compile(model, cache=None)
    wanted = np.asarray(session.run(None, {"x": x})[0], np.float32)
    np.testing.assert_allclose(exe(x), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(UnityError):
        exe(x[:, :, :4].copy())
