"""Searches, selections and running sums along every axis: compiled kernels against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.ir.dtype import Array
from unity.script import parse

KINDS = {
    "float32": "f32",
    "float16": "f16",
    "float64": "f64",
    "int32": "i32",
    "uint8": "u8",
    "int64": "i64",
}
EXTENTS = (1, 3, 7, 16, 33, 100, 260, 300)


def typed(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{KINDS[dtype]}[Tensor, {', '.join(map(str, shape)) or '()'}]"


def run(expr: str, x: Array, *results: str) -> tuple[Array, ...]:
    result = results[0] if len(results) == 1 else f"R.Tuple({', '.join(results)})"
    source = f"""
@script.function
def main(x: {typed(x.dtype.name, x.shape)}) -> {result}:
    y = {expr}
    return y
"""
    got = unity.compile(parse(source))(x)
    return got if isinstance(got, tuple) else (got,)


def drawn(rng: np.random.Generator, dtype: str) -> tuple[Array, int]:
    """An array with equal elements, perhaps NaN, and one of its axes."""
    shape = tuple(int(e) for e in rng.choice(EXTENTS, int(rng.integers(1, 4))))
    x = rng.integers(0, 6, shape).astype(dtype)
    if x.dtype.kind == "f":
        x = (x - 3) if rng.random() < 0.5 else rng.standard_normal(shape).astype(dtype)
        if rng.random() < 0.4:
            x.reshape(-1)[int(rng.integers(x.size))] = np.nan
    return x, int(rng.integers(-len(shape), len(shape)))


@pytest.mark.rotated(3)
@pytest.mark.parametrize("dtype", KINDS)
def test_where_the_extremes_are(dtype: str) -> None:
    rng = np.random.default_rng(len(dtype))
    for name, of in (("argmax", np.argmax), ("argmin", np.argmin)):
        x, axis = drawn(rng, dtype)
        for over, keepdims in ((axis, False), (None, True)):
            want = np.asarray(of(x, axis=over, keepdims=keepdims))
            call = f"R.{name}(x, axis={over}, keepdims={keepdims})"
            (got,) = run(call, x, typed("int64", want.shape))
            np.testing.assert_array_equal(got, want)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("dtype", KINDS)
def test_the_best_few(dtype: str) -> None:
    rng = np.random.default_rng(10 + len(dtype))
    for _ in range(3):
        x, axis = drawn(rng, dtype)
        k, largest = int(rng.integers(1, x.shape[axis] + 1)), bool(rng.integers(2))
        call = f"R.topk(x, k={k}, axis={axis}, largest={largest})"
        shape = (*x.shape[: axis % x.ndim], k, *x.shape[axis % x.ndim + 1 :])
        values, indices = run(call, x, typed(dtype, shape), typed("int64", shape))
        order = np.argsort(x, axis, kind="stable")
        if largest:
            back = np.argsort(np.flip(x, axis), axis, kind="stable")
            order = np.flip(x.shape[axis] - 1 - back, axis)
        best = np.take(order, np.arange(k), axis)
        np.testing.assert_array_equal(indices, best)
        np.testing.assert_array_equal(values, np.take_along_axis(x, best, axis))


@pytest.mark.parametrize("rising", [True, False])
def test_the_best_of_sorted_rows(rising: bool) -> None:
    """Every element goes before all so far, or none does."""
    x = np.arange(2000, dtype=np.float32)[:: 1 if rising else -1].copy()
    results = typed("float32", (128,)), typed("int64", (128,))
    values, indices = run("R.topk(x, k=128)", x, *results)
    np.testing.assert_array_equal(values, np.arange(1999, 1871, -1))
    np.testing.assert_array_equal(np.take(x, indices.astype(np.int64)), values)


@pytest.mark.rotated(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_running_sums(dtype: str) -> None:
    rng = np.random.default_rng(20 + len(dtype))
    for _ in range(3):
        x, axis = drawn(rng, dtype)
        x = np.nan_to_num(x)
        exclusive, reverse = bool(rng.integers(2)), bool(rng.integers(2))
        call = f"R.cumsum(x, axis={axis}, exclusive={exclusive}, reverse={reverse})"
        wide = (np.flip(x, axis) if reverse else x).astype(np.float64)
        want = np.cumsum(wide, axis) - exclusive * wide
        want = np.flip(want, axis) if reverse else want
        (got,) = run(call, x, typed(dtype, x.shape))
        assert np.allclose(got, want, rtol=1e-4, atol=1e-3)
