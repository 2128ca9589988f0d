"""MultiplyByReciprocals: divisions by constants, unless the reciprocal is no normal number."""

from __future__ import annotations

import numpy as np
import pytest

from tests.transform.cases import floats
from unity.interpreter import interpret
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import MultiplyByReciprocals


@pytest.mark.parametrize(
    ("divisor", "multiplied"),
    [(3.0, True), (-0.5, True), (0.0, False), (1e-39, False), (3e38, False), (np.inf, False)],
)
def test_a_division_by_a_constant(divisor: float, multiplied: bool) -> None:
    text = """
@script.function
def main(x: f32[Tensor, 2, 3]) -> f32[Tensor, 2, 3]:
    return R.divide(x, R.const("c"))
"""
    before = parse(text, {"c": np.full((2, 3), divisor, np.float32)})
    after = MultiplyByReciprocals()(before, Context())
    assert ("R.multiply" in print_module(after)) == multiplied
    arrays = floats(0, (2, 3))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected, got = (interpret(m, "main", arrays) for m in (before, after))
    assert isinstance(expected, np.ndarray)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=3e-7)


@pytest.mark.parametrize(
    ("kind", "expression"),
    [
        ("f32", "R.divide(x, x)"),
        ("f32", 'R.divide(R.const(2.0, "float32"), x)'),
        ("f64", 'R.divide(x, R.const(2.0, "float64"))'),
    ],
)
def test_other_divisions_stay(kind: str, expression: str) -> None:
    text = f"""
@script.function
def main(x: {kind}[Tensor, 3]) -> {kind}[Tensor, 3]:
    return {expression}
"""
    before = parse(text)
    after = MultiplyByReciprocals()(before, Context())
    assert "multiply" not in print_module(after)
