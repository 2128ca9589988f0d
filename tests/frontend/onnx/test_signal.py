"""Windows, running products and steps of optimizers, as the reference evaluator computes them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import assert_close, check, model


def wanted_of(of: onnx.ModelProto, given: dict[str, Array]) -> Array:
    (found,) = ReferenceEvaluator(of).run(None, given)
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_of_a_length_known_at_run_time(op: str, periodic: int) -> None:
    of = model(f"g (int64 n) => (float[k] y) {{ y = {op}<periodic={periodic}>(n) }}", 17)
    module = from_onnx(of)
    check(module)
    for n in (1, 2, 16):
        if n == 1 and not periodic:
            continue  # the reference divides by 0
        found = interpret(module, "main", [np.asarray(n)])
        assert isinstance(found, np.ndarray)
        assert_close(found, np.asarray(wanted_of(of, {"n": np.asarray(n)})))


def test_a_window_of_one_element_is_finite() -> None:
    of = model("g (int64 n) => (double[k] y) { y = HannWindow<periodic=0, output_datatype=11>(n) }")
    found = interpret(from_onnx(of), "main", [np.asarray(1)])
    np.testing.assert_array_equal(found, np.zeros(1))


@pytest.mark.parametrize(
    "options", ["", "<exclusive=1>", "<reverse=1>", "<exclusive=1, reverse=1>"]
)
def test_running_products_compiled(options: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 4)).astype(np.float32)
    graph = f"""
        g (float[n, 5, 4] x) => (float[n, 5, 4] y)
        <int64 axis = {{1}}> {{ y = CumProd{options}(x, axis) }}"""
    of = model(graph, 26)
    assert_close(np.asarray(unity.compile(of)(x)), wanted_of(of, {"x": x}))


def test_an_optimizer_takes_its_tensors_in_groups() -> None:
    of = model("g (float r, int64 t, float[2] x, float[2] d) => (float[2] y) { y = Relu(x) }")
    of.graph.node[0].CopyFrom(
        helper.make_node("Adagrad", ["r", "t", "x", "d"], ["y"], domain="ai.onnx.preview.training")
    )
    of.opset_import.add(domain="ai.onnx.preview.training", version=1)
    with pytest.raises(UnityError, match="4 inputs, of which 3 belong to each tensor"):
        from_onnx(of)
