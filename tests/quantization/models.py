"""Small seeded models in float32, and what onnxruntime gives of one, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper, numpy_helper

Array = npt.NDArray[np.generic]


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: Mapping[str, Array],
    shape: Sequence[int | str],
    *,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    kind: int = onnx.TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model of an input ``x``."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [helper.make_tensor_value_info(o, kind, None) for o in outputs],
        [numpy_helper.from_array(a, k) for k, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> npt.NDArray[np.float32]:
    """Seeded normal numbers."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def conv_net(batch: int | str = 1) -> onnx.ModelProto:
    """Two convolutions, one of them normalized, a pool, a residual sum and a Gemm."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], "first", pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "w2"], ["c2"], "second", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c2", "g", "b", "m", "v"], ["n2"]),
        node("Add", ["n2", "p1"], ["s2"]),
        node("Relu", ["s2"], ["r2"]),
        node("GlobalAveragePool", ["r2"], ["a2"]),
        node("Flatten", ["a2"], ["f2"]),
        node("Gemm", ["f2", "w3", "b3"], ["y"], "last", transB=1),
    ]
    weights = {
        "w1": normal(16, 3, 3, 3, seed=1, scale=0.2),
        "b1": normal(16, seed=2),
        "w2": normal(16, 16, 3, 3, seed=3, scale=0.1),
        "g": 1 + normal(16, seed=4, scale=0.2),
        "b": normal(16, seed=5),
        "m": normal(16, seed=6),
        "v": np.abs(1 + normal(16, seed=7, scale=0.2)),
        "w3": normal(10, 16, seed=8),
        "b3": normal(10, seed=9),
    }
    return model(nodes, weights, (batch, 3, 16, 16))


def linear(weight: Array, *, opset: int = 17) -> onnx.ModelProto:
    """A product by a matrix."""
    return model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
        {"w": weight},
        ("n", weight.shape[0]),
        opset=opset,
    )


def expected(proto: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What onnxruntime gives without fusing anything."""
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options)
    found: list[Array] = session.run(None, dict(feeds))
    return found


def saved(proto: onnx.ModelProto, folder: Path) -> Path:
    """Its file."""
    path = folder / "model.onnx"
    onnx.save_model(proto, str(path))
    return path
