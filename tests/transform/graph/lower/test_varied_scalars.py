"""Scalars that differ from site to site are operands of one kernel, others literals."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import LegalizeOps
from unity.transform.graph.lower.varied_scalars import MANY


def scaled(factors: list[float]) -> IRModule:
    """Additions of a product each, so that nothing is folded."""
    lines = [f"    x = R.multiply(R.tanh(x), {f})" for f in factors]
    return parse(
        "\n".join(
            [
                "@script.function",
                "def main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:",
                *lines,
                "    return x",
            ]
        )
    )


@pytest.mark.parametrize(
    ("count", "kernels"), [(MANY, 1), (MANY - 1, MANY - 1)], ids=["many values", "few"]
)
def test_many_values_are_operands(count: int, kernels: int) -> None:
    module = scaled([1 + i / 8 for i in range(count)])
    after = LegalizeOps()(module, Context())
    assert sum(name.startswith("multiply") for name in after.prim_funcs()) == kernels


def test_one_value_at_many_sites_is_a_literal() -> None:
    after = LegalizeOps()(scaled([0.5] * (2 * MANY)), Context())
    (kernel,) = (f for n, f in after.prim_funcs().items() if n.startswith("multiply"))
    assert len(kernel.buffers) == 2


def test_what_is_computed_is_the_same() -> None:
    factors = [1 + i / 8 for i in range(MANY)]
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    want = x
    for f in factors:
        want = np.tanh(want) * np.float32(f)
    got = np.asarray(unity.compile(scaled(factors), cache=None)(x))
    np.testing.assert_allclose(got, want, rtol=1e-5)
