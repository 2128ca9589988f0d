"""Sorting rows of every length and dtype: by insertion, by digits, by merging; equals in order."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.ir.dtype import Array
from unity.script import parse

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "uint32", "int16", "uint8", "int64")
SHORT_NAMES = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def array(shape: tuple[int, ...], name: str) -> Array:
    """Many ties, both zeros, infinities and NaN of both signs."""
    rng = np.random.default_rng(len(shape) + shape[-1])
    of = numpy_dtype(name)
    if "float" not in name:
        low, high = (0, 200) if of.kind == "u" else (-100, 100)
        if shape[-1] > 100 and of.itemsize == 4:
            low, high = (0, 2**32 - 1) if of.kind == "u" else (-(2**31), 2**31 - 1)
        return rng.integers(low, high, shape, np.int64).astype(of)
    x = np.round(rng.standard_normal(shape) * 4) / 2
    x = np.where(rng.random(shape) < 0.1, rng.choice([np.nan, np.inf, -np.inf, -0.0], shape), x)
    x = np.where(rng.random(shape) < 0.05, -x, x)
    return x.astype(of)


def annotation(name: str, dims: str) -> str:
    kind = name.rstrip("0123456789")
    return f"{SHORT_NAMES[kind]}{name.removeprefix(kind)}[Tensor, {dims}]"


def argsort(dims: str, name: str, axis: int, descending: bool) -> unity.Executable:
    return unity.compile(
        parse(f"""
n = dim("n")

@script.function
def main(x: {annotation(name, dims)}) -> i64[Tensor, {dims}]:
    return R.argsort(x, axis={axis}, descending={descending})
"""),
        threads=2,
    )


def expected(x: Array, axis: int, descending: bool) -> npt.NDArray[np.int64]:
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x.astype(np.int64)
    if not descending:
        return np.argsort(wide, axis=axis, kind="stable")
    flipped = np.argsort(np.flip(wide, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - flipped, axis)


@pytest.mark.rotated(6)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", DTYPES)
def test_known_lengths(name: str, descending: bool) -> None:
    for shape, axis in [((3, 48), 1), ((2, 49), 1), ((300, 2), 0), ((20_000,), 0)]:
        x = array(shape, name)
        exe = argsort(", ".join(map(str, shape)), name, axis, descending)
        np.testing.assert_array_equal(exe(x), expected(x, axis, descending))


@pytest.mark.parametrize("name", ["float32", "int16"])
def test_any_length(name: str) -> None:
    exe = argsort("2, n", name, 1, descending=False)
    for n in (0, 1, 2, 50, 3000):
        x = array((2, n), name) if n else np.zeros((2, 0), numpy_dtype(name))
        np.testing.assert_array_equal(exe(x), expected(x, 1, descending=False))


@pytest.mark.rotated(2)
@pytest.mark.parametrize(("length", "k"), [(80, 1), (9000, 1), (3000, 300)])
@pytest.mark.parametrize("largest", [True, False])
def test_the_best_of_each_row(length: int, k: int, largest: bool) -> None:
    exe = unity.compile(
        parse(f"""
@script.function
def main(x: f32[Tensor, 3, {length}]) -> tuple[f32[Tensor, 3, {k}], i64[Tensor, 3, {k}]]:
    return R.topk(x, k={k}, axis=1, largest={largest})
"""),
        threads=2,
    )
    x = array((3, length), "float32")
    best = expected(x, 1, descending=largest)[:, :k]
    values, indices = exe(x)
    np.testing.assert_array_equal(indices, best)
    np.testing.assert_array_equal(values, np.take_along_axis(x, best, 1))


@pytest.mark.rotated(3)
@pytest.mark.parametrize("most", [1, 20, 300])
@pytest.mark.parametrize("name", ["float32", "int64"])
def test_the_best_where_their_number_is_unknown(name: str, most: int) -> None:
    """Few are selected, more are sorted; of a short row all, of an empty one none."""
    kind = annotation(name, "3, n")
    best = annotation(name, f"3, min({most}, n)")
    exe = unity.compile(
        parse(f"""
n = dim("n")

@script.function
def main(x: {kind}) -> tuple[{best}, i64[Tensor, 3, min({most}, n)]]:
    return R.topk(x, k=min({most}, n), axis=1)
"""),
        threads=2,
    )
    for n in (0, 1, 7, 20, 21, 1000):
        x = array((3, n), name) if n else np.zeros((3, 0), name)
        order = expected(x, 1, descending=True)[:, :most]
        values, indices = exe(x)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("name", ["float32", "int32"])
def test_the_best_of_rows_of_unknown_length(name: str) -> None:
    """What is not among them is sorted out first where rows turn out long, else all are sorted."""
    kind, best = annotation(name, "3, n"), annotation(name, "3, 150")
    exe = unity.compile(
        parse(f"""
n = dim("n", min=150)

@script.function
def main(x: {kind}) -> tuple[{best}, i64[Tensor, 3, 150]]:
    return R.topk(x, k=150, axis=1)
"""),
        threads=2,
    )
    for n in (150, 151, 599, 600, 5000):
        x = array((3, n), name)
        order = expected(x, 1, descending=True)[:, :150]
        values, indices = exe(x)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
