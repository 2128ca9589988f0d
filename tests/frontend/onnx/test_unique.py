"""Unique: elements and slices, beside numpy and onnxruntime."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import check, imported, model

OUTPUTS = "int64[k] first, int64[n] inverse, int64[k] counts"


@pytest.mark.parametrize("ascending", [0, 1])
@pytest.mark.parametrize("kind", ["float", "double", "int64", "int8", "float16", "bool"])
def test_elements_of_unknown_number(kind: str, ascending: int) -> None:
    of = model(
        f"""g ({kind}[n, m] x) => ({kind}[k] y, {OUTPUTS})
        {{ y, first, inverse, counts = Unique<sorted={ascending}>(x) }}""",
        11,
    )
    module = from_onnx(of)
    check(module)
    numpy_kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (1, 1), (0, 2)):
        x = rng.integers(0, 4, shape).astype(numpy_kind)
        found = interpret(module, "main", [x])
        assert isinstance(found, tuple)
        for mine, theirs in zip(found, by_numpy(x, ascending=bool(ascending)), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def by_numpy(x: Array, *, ascending: bool) -> list[Array]:
    values, first, inverse, counts = np.unique(
        x.reshape(-1), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.arange(len(first)) if ascending else np.argsort(first)
    rank = np.argsort(order) if len(order) else order
    inverse = rank[inverse] if len(inverse) else inverse
    return [values[order], first[order], inverse, counts[order]]


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_slices_compiled(axis: int) -> None:
    of = model(
        f"""g (float[2, n, 3] x) => (float[a, b, c] y, {OUTPUTS})
        {{ y, first, inverse, counts = Unique<axis={axis}>(x) }}""",
        11,
    )
    session, executable = ort.InferenceSession(of.SerializeToString()), unity.compile(of)
    x = np.random.default_rng(axis + 3).integers(0, 2, (2, 6, 3)).astype(np.float32)
    for mine, theirs in zip(executable(x), session.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_zeros_and_nans_are_one_each() -> None:
    of = model("g (float[n] x) => (float[k] y, int64[k] first) { y, first = Unique(x) }", 11)
    x = np.array([1, 0.0, np.nan, -0.0, np.nan, 1], np.float32)
    found = interpret(from_onnx(of), "main", [x])
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[0], np.array([0, 1, np.nan], np.float32))
    np.testing.assert_array_equal(found[1], [1, 0, 2])


def test_narrow_floats() -> None:
    of = model("g (bfloat16[n] x) => (bfloat16[k] y) { y = Unique(x) }", 28)
    x = np.array([2, -1, 2, 0.5]).astype(ml_dtypes.bfloat16)
    found = interpret(from_onnx(of), "main", [x])
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found.astype(np.float32), [-1, 0.5, 2])


@pytest.mark.parametrize("size", ["0", "n"])
def test_none_of_none(size: str) -> None:
    module = imported(
        f"""g (float[{size}] x) => (float[k] y, int64[k] i, int64[l] j, int64[k] c)
            {{ y, i, j, c = Unique(x) }}"""
    )
    found = interpret(module, "main", [np.zeros(0, np.float32)])
    assert isinstance(found, tuple)
    assert [np.asarray(v).shape for v in found] == [(0,)] * 4
