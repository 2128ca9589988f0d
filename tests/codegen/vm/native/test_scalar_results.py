"""Results that are scalars, alone and in tuples: native code, from Python, each other and C."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

import unity
from tests.codegen.export.tensors import Exported
from unity.interpreter import interpret
from unity.script import parse
from unity.transform.graph import InlineFunctions

MODULE = parse("""
n = dim("n")
m = dim("m")
@script.function
def factorial(k: R.Prim("int64")) -> R.Prim("int64"):
    if k <= 1:
        return 1
    return k * factorial(k - 1)
@script.function
def some(s: R.Prim("float32"), b: R.Prim("bool"), k: R.Prim("uint8")) -> R.Tuple(
    R.Prim("float32"), R.Prim("bool"), R.Prim("int32"), R.Prim("uint8"), R.Prim("float64")
):
    return s * 0.5, not b, R.prim(-3, "int32"), k + 100, R.prim(0.1, "float64")
@script.function
def rows(x: f32[Tensor, n]) -> R.Prim("int64"):
    return R.prim(2 * n)
@script.function
def positive(x: f32[Tensor, n]) -> R.Prim("bool"):
    return R.sum(x) > 0.0
@script.function
def main(x: f32[Tensor, n], k: R.Prim("int64")) -> R.Tuple(
    R.Tuple(f32[Tensor, n], R.Prim("int64")), f32[Tensor, n], R.Tuple(R.Tuple(R.Prim("float32")))
):
    a = some(2.5, True, 7)
    y = x * factorial(k) + a[0]
    if positive(x) and not a[1]:
        y = y + 1.0
    return (y, factorial(k + 1) + rows(x)), x * rows(x), ((a[0],),)
""")
X = np.linspace(-1, 2, 4, dtype=np.float32)
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("factorial", (10,)),
    ("factorial", (-1,)),
    ("some", (3.25, True, 100)),
    ("some", (-3.0, False, 255)),
    ("rows", (X,)),
    ("rows", (X[:0],)),
    ("positive", (X,)),
    ("positive", (-X,)),
    ("main", (X, 3)),
    ("main", (-X, 3)),
]
KINDS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "factorial": ((np.int64,), (np.int64,)),
    "some": (
        (np.float32, np.bool_, np.uint8),
        (np.float32, np.bool_, np.int32, np.uint8, np.float64),
    ),
    "rows": ((np.float32,), (np.int64,)),
    "positive": ((np.float32,), (np.bool_,)),
}
"""Dtypes of parameters and results, of functions whose results are scalars alone."""


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(MODULE, pipeline=unity.pipeline().without(InlineFunctions))


@pytest.fixture(scope="module")
def library(exe: unity.Executable, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    path = tmp_path_factory.mktemp("results") / "libresults.so"
    exe.export_library(path)
    return Exported(path)


def leaves(value: object) -> list[Any]:
    return [x for v in value for x in leaves(v)] if isinstance(value, tuple) else [value]


def test_all_are_native(exe: unity.Executable) -> None:
    assert set(exe.native().values()) == {"native"}, exe.native()


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_they_are_numbers_of_python(
    exe: unity.Executable, name: str, args: tuple[Any, ...]
) -> None:
    wanted, found = interpret(MODULE, name, list(args)), exe[name](*args)
    assert structure(found) == structure(wanted)
    for mine, right in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-6)


def structure(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(structure, value))
    return value.dtype if isinstance(value, np.ndarray) else type(value)


def test_no_memory_is_lost(exe: unity.Executable) -> None:
    held = references = 0
    for k in range(2000):
        if k == 1000:
            gc.collect()
            held, references = sys.getallocatedblocks(), sys.getrefcount(False)
        exe["main"](X, 3)
        exe["some"](1.0, True, 1)
    gc.collect()
    assert sys.getallocatedblocks() - held < 500
    assert abs(sys.getrefcount(False) - references) < 500


@pytest.mark.parametrize(("name", "args"), [c for c in CALLS if c[0] in KINDS])
def test_c_takes_and_gives_tensors_without_axes(
    library: Exported, name: str, args: tuple[Any, ...]
) -> None:
    given = [np.asarray(a, kind) for a, kind in zip(args, KINDS[name][0], strict=True)]
    numbers = leaves(interpret(MODULE, name, list(args)))
    wanted = [np.asarray(v, kind) for v, kind in zip(numbers, KINDS[name][1], strict=True)]
    found = [np.empty_like(w) for w in wanted]
    library.run(given, found, name)
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-6)


def test_c_gives_fields_one_by_one(library: Exported) -> None:
    found = [np.empty(s, d) for s, d in ((4, "f4"), ((), "i8"), (4, "f4"), ((), "f4"))]
    library.run([X, np.asarray(3)], found)
    wanted = leaves(interpret(MODULE, "main", [X, 3]))
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-6)
    header = (library.path.parent / "results.h").read_text()
    assert " *  outputs[1] int64, as a tensor of int64 without axes\n" in header
    assert library.shapes([X, np.asarray(3)], [1, 0, 1, 0]) == [[4], [], [4], []]
