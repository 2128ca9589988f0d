"""Softmax, its logarithm and attention where rows hold what is no number, or nothing to see."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.script import parse

NAN, INF = float("nan"), float("inf")
LENGTHS = (5, 40, 128)
"""Rows of less than a register, of some and a rest, and of many."""


def rows(length: int) -> Array:
    """Rows with NaN at either end, infinities, nothing but those, and none."""
    x = np.random.default_rng(0).normal(size=(12, length)).astype(np.float32) * 8
    x[1, 0] = x[2, -1] = x[3, length // 2] = NAN
    x[4, 1], x[5, -1] = INF, -INF
    x[6, :], x[7, :] = -INF, NAN
    x[8, 0], x[8, 1], x[9, :2] = NAN, INF, (INF, -INF)
    x[10, :] = -200.0
    x[10, 3] = 200.0
    return x


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("sizes", ["fixed", "unknown"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_with_what_is_no_number(name: str, sizes: str, length: int) -> None:
    dims = 'n = dim("n")\nm = dim("m")\n' if sizes == "unknown" else ""
    shape = "n, m" if dims else f"12, {length}"
    module = parse(
        f"{dims}@script.function\ndef main(x: f32[Tensor, {shape}]):\n    return R.nn.{name}(x)\n"
    )
    x = rows(length)
    with np.errstate(all="ignore"):
        shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
        total = np.exp(shifted).sum(axis=1, keepdims=True)
        want = np.exp(shifted) / total if name == "softmax" else shifted - np.log(total)
    with np.errstate(all="ignore"):
        interpreted = interpret(module, "main", (x,))
    for got in (unity.compile(module, cache=None)(x), interpreted):
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("causal", ["", ', causal_mask="TopLeft"'])
def test_a_query_that_sees_nan_gives_nan(causal: str) -> None:
    """And none that does not: with a causal mask, the last key is seen by the last query alone."""
    shape = "1, 20, 2, 8"
    module = parse(
        f"@script.function\ndef main(q: f32[Tensor, {shape}], k: f32[Tensor, {shape}], "
        f"v: f32[Tensor, {shape}]):\n    return R.nn.attention(q, k, v{causal})\n"
    )
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(1, 20, 2, 8)).astype(np.float32) for _ in range(3))
    exe = unity.compile(module, cache=None)
    clean = exe(q, k, v)
    k[0, -1, 0, 3] = NAN
    got = np.asarray(exe(q, k, v))
    sees = np.zeros((1, 20, 2, 8), bool)
    sees[:, 19 if causal else 0 :, 0] = True
    assert np.isnan(got[sees]).all()
    np.testing.assert_allclose(got[~sees], np.asarray(clean)[~sees], rtol=1e-6, atol=1e-6)
