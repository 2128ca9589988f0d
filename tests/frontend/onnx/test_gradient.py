"""Gradient (ai.onnx.preview.training): derivatives, against differences of what the graph gives."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx.training.derivatives import RULES
from unity.ir.dtype import Array

HEAD = '<ir_version: 8, opset_import: ["": 17, "ai.onnx.preview.training": 1]>'
GRADIENT = 'da, db = ai.onnx.preview.training.Gradient<xs = ["a", "b"], y = "y">(a, b)'
STEP = 1e-6
GRAPHS = {
    "arithmetic": "c = Mul(a, b) d = Sub(c, b) e = Div(d, b) f = Neg(e) y = Add(f, a)",
    "powers": "c = Pow(a, b) d = Sqrt(b) e = Reciprocal(a) f = Mul(d, e) y = Sum(c, f, a)",
    "functions": (
        "c = Exp(a) d = Log(b) e = Tanh(c) f = Sigmoid(d) g = Erf(e) h = Softplus(f) y = Mul(g, h)"
    ),
    "waves": "c = Sin(a) d = Cos(b) e = Sub(c, d) f = Abs(e) g = Relu(e) y = Add(f, g)",
    "products": "t = Transpose(b) c = MatMul(a, t) d = Identity(c) y = Mul(d, d)",
    "sums": "c = ReduceMean<axes = [1]>(a) d = Mul(c, b) e = ReduceSum<keepdims = 0>(d) y = Exp(e)",
    "views": "c = Flatten(a) d = Unsqueeze(b, z) e = Squeeze(d, z) f = Reshape(e, s) y = Mul(c, f)",
    "choices": "k = Less(a, b) c = Where(k, a, b) d = Cast<to = 11>(c) y = Mul(d, a)",
}


def model(body: str, of: str = "n, 3", gradient: str = GRADIENT) -> onnx.ModelProto:
    """A function of two tensors, with its derivatives."""
    return onnx.parser.parse_model(
        f"{HEAD} g (double[{of}] a, double[{of}] b) => (double y, double[{of}] da, double[{of}] db)"
        f"<int64[1] z = {{0}}, int64[2] s = {{-1, 3}}> {{ {body} {gradient} }}"
    )


@pytest.mark.parametrize("of", ["2, 3", "n, 3"])
@pytest.mark.parametrize("name", GRAPHS)
def test_derivatives_are_the_limits_of_differences(name: str, of: str) -> None:
    proto = model(GRAPHS[name], of)
    for info in proto.graph.output:
        info.type.tensor_type.ClearField("shape")
    compiled = unity.compile(proto, cache=None)
    rng = np.random.default_rng(len(name))
    a, b = (rng.uniform(0.5, 2, (2, 3)) for _ in range(2))
    found = compiled.run({"a": a, "b": b})

    def total(a: Array, b: Array) -> float:
        return float(np.asarray(compiled.run({"a": a, "b": b})["y"], float).sum())

    for key, x in (("da", a), ("db", b)):
        got = np.asarray(found[key], float)
        for at in np.ndindex(x.shape):
            ends: list[float] = []
            for step in (STEP, -STEP):
                moved = x.copy()
                moved[at] += step
                ends.append(total(*((moved, b) if key == "da" else (a, moved))))
            np.testing.assert_allclose(got[at], (ends[0] - ends[1]) / (2 * STEP), 1e-5, 1e-5)


def test_every_rule_is_used() -> None:
    used = {node.op_type for body in GRAPHS.values() for node in model(body).graph.node}
    assert set(RULES) <= used


def test_a_tensor_within_and_one_that_does_not_matter() -> None:
    gradient = (
        'da, db = ai.onnx.preview.training.Gradient<xs = ["c", "a"], zs = ["b"], y = "y">(a, a, b)'
    )
    proto = model("c = Exp(a) y = Mul(c, b)", gradient=gradient)
    a, b = np.full((2, 3), 0.5), np.full((2, 3), 3.0)
    found = unity.compile(proto, cache=None).run({"a": a, "b": b})
    np.testing.assert_allclose(np.asarray(found["da"]), b)
    np.testing.assert_allclose(np.asarray(found["db"]), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("body", "gradient", "message"),
    [
        ("c = Add(a, b) y = Softmax(c)", GRADIENT, "the derivative of Softmax"),
        ("y = Add(a, b)", GRADIENT.replace('"a", "b"', '"a"').replace("(a, b)", "(a)"), "'b'"),
        ("y = Add(a, b)", GRADIENT.replace("(a, b)", "(a)"), "1 inputs for 2"),
        ("y = Add(a, b)", GRADIENT.replace('"y"', '"q"'), "'q'"),
    ],
)
def test_what_has_no_derivative_is_refused(body: str, gradient: str, message: str) -> None:
    with pytest.raises((UnityError, UnsupportedError), match=message):
        unity.compile(model(body, gradient=gradient), cache=None)
