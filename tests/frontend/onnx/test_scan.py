"""Scan: axes, directions, states and values from around, as onnxruntime computes them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.graph import Scan
from unity.ir.visit import walk_bindings

from .programs import main_of

FLOAT = TensorProto.FLOAT


def info(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, list(shape))


def body() -> onnx.GraphProto:
    """``total += x * w + z; y = total * x; v = z``."""
    nodes = [
        helper.make_node("Mul", ["xt", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "zt"], ["xwz"]),
        helper.make_node("Add", ["total", "xwz"], ["total_out"]),
        helper.make_node("Mul", ["total_out", "xt"], ["yt"]),
        helper.make_node("Neg", ["zt"], ["vt"]),
    ]
    ins = [info("total", 3), info("xt", 3), info("zt", 3)]
    return helper.make_graph(nodes, "body", ins, [info(n, 3) for n in ("total_out", "yt", "vt")])


Attributes = dict[str, list[int]]


def model(
    attrs: Attributes, version: int = 17, shape: tuple[int | str, ...] = ("n", 3)
) -> onnx.ModelProto:
    node = helper.make_node(
        "Scan", ["init", "x", "z"], ["last", "y", "v"], body=body(), num_scan_inputs=2
    )
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attrs.items())
    graph = helper.make_graph(
        [node],
        "g",
        [info("init", 3), info("x", *shape), info("z", "n", 3)],
        [helper.make_tensor_value_info(n, FLOAT, None) for n in ("last", "y", "v")],
        [numpy_helper.from_array(np.asarray([1, 2, 3], np.float32), "w")],
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"scan_input_directions": [1, 0]},
        {"scan_output_directions": [0, 1], "scan_output_axes": [1, -1]},
        {"scan_input_axes": [1, 0], "scan_input_directions": [1, 1]},
    ],
    ids=["plain", "reversed", "outputs", "axes"],
)
def test_as_onnxruntime(attrs: Attributes, steps: int) -> None:
    across = "scan_input_axes" in attrs
    proto = model(attrs, shape=(3, "n") if across else ("n", 3))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, steps) if across else (steps, 3), np.float32)
    z, init = rng.standard_normal((steps, 3), np.float32), np.ones(3, np.float32)
    feeds = {"init": init, "x": x, "z": z}
    wanted = ort.InferenceSession(proto.SerializeToString()).run(None, feeds)
    module = from_onnx(proto)
    assert any(isinstance(b.value, Scan) for b in walk_bindings(main_of(module)))
    interpreted = interpret(module, "main", [init, x, z])
    compiled = unity.compile(proto, cache=None)(init, x, z)
    for got in (interpreted, compiled):
        assert isinstance(got, tuple)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b, np.float32), 1e-5, 1e-5)


def test_batches_of_sequences_of_other_lengths_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="sequences of other lengths than all steps"):
        from_onnx(model({}, version=8))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"scan_input_axes": [2, 0]}, "an axis 2 of a tensor of rank 2"),
        ({"scan_output_axes": [0]}, "scan_output_axes has 1 numbers, not 2"),
    ],
)
def test_refused(attrs: Attributes, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        from_onnx(model(attrs))
