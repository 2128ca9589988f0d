"""Nodes replaced by the functions that ONNX defines them as."""

from __future__ import annotations

import numpy as np
from onnx.reference import ReferenceEvaluator

from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret

from .programs import assert_close, check, model, ops_of


def test_inputs_may_be_left_out_before_others() -> None:
    """ONNX's inliner refuses such nodes, so that they are put in place before it sees them."""
    of = model(
        """g (float[2, 3, 4, 8] q, float[2, 3, 6, 8] k, float[2, 3, 6, 8] v, int64[2] held)
            => (float[2, 3, 4, 8] y, float[2, 3, 4, 8] z) {
            y = Attention<is_causal=1>(q, k, v, "", "", "", held)
            z = Attention(q, k, v, "", "", "", held)
        }""",
        24,
    )
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 3, 4, 8)).astype(np.float32)
    k, v = rng.standard_normal((2, 2, 3, 6, 8)).astype(np.float32)
    given = {"q": q, "k": k, "v": v, "held": np.array([4, 6])}
    module = from_onnx(of)
    check(module)
    found = interpret(module, "main", list(given.values()))
    assert isinstance(found, tuple)
    for mine, theirs in zip(found, ReferenceEvaluator(of).run(None, given), strict=True):
        assert isinstance(mine, np.ndarray)
        assert isinstance(theirs, np.ndarray)
        assert_close(mine, theirs)


def test_attributes_left_out_have_their_defaults() -> None:
    of = model(
        """g (float[2, 4, 8] x, float[4, 1, 3] w, float[2, 4, 2] past)
            => (float[2, 4, 8] y, float[2, 4, 2] state)
        { y, state = CausalConvWithState(x, w, "", past) }""",
        27,
    )
    rng = np.random.default_rng(1)
    shapes = {"x": (2, 4, 8), "w": (4, 1, 3), "past": (2, 4, 2)}
    given = {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    module = from_onnx(of)
    check(module)
    assert "silu" not in "".join(ops_of(module))
    found = interpret(module, "main", list(given.values()))
    assert isinstance(found, tuple)
    for mine, theirs in zip(found, ReferenceEvaluator(of).run(None, given), strict=True):
        assert isinstance(mine, np.ndarray)
        assert isinstance(theirs, np.ndarray)
        assert_close(mine, theirs)
