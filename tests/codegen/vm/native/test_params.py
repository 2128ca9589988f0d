"""Parameters of native functions that are tuples and scalars: from Python, and from each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from tests.codegen.export.tensors import Exported, Failed
from unity.interpreter import interpret
from unity.script import parse
from unity.transform.graph import InlineFunctions

MODULE = parse("""
n = dim("n")
m = dim("m", min=2)
@script.function
def pair(
    p: R.Tuple(f32[Tensor, n], R.Tuple(f32[Tensor, m], f32[Tensor, n])), k: R.Prim("int64")
) -> f32[Tensor, n]:
    c = R.add(p[0], p[1][1])
    if R.sum(p[1][0]) > 0.0:
        y = R.exp(c)
    else:
        y = c
    return y
@script.function
def chosen(x: f32[Tensor, n], flag: R.Prim("bool"), s: R.Prim("float64")) -> f32[Tensor, n]:
    if flag:
        y = R.exp(x)
    else:
        y = R.negative(x)
    return y
@script.function
def sized(x: f32[Tensor, n], k: R.Prim("int64", m)) -> f32[Tensor, m]:
    return R.broadcast_to(R.sum(x), (m,))
@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, m], flag: R.Prim("bool")) -> f32[Tensor, n]:
    both = (x, (y, x))
    a = pair(both, 3)
    b = chosen(a, flag, 2.5)
    c = sized(b, R.prim(m))
    return R.add(b, R.sum(c))
""")
X, Y = np.linspace(0, 1, 3, dtype=np.float32), np.ones(4, np.float32)
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("pair", ((X, (Y, X)), 7)),
    ("pair", ((X, (-Y, X)), -7)),
    ("chosen", (X, True, 1.5)),
    ("chosen", (X, False, 1.5)),
    ("sized", (X, 5)),
    ("main", (X, Y, True)),
    ("main", (X, -Y, False)),
]


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(MODULE, pipeline=unity.pipeline().without(InlineFunctions))


def test_all_are_native(exe: unity.Executable) -> None:
    assert set(exe.native().values()) == {"native"}


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_they_compute(exe: unity.Executable, name: str, args: tuple[Any, ...]) -> None:
    wanted = np.asarray(interpret(MODULE, name, args))
    for _ in range(2):
        np.testing.assert_allclose(exe[name](*args), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("pair", ((X, (Y, X[:2].copy())), 7), "symbol n is 2 here but 3"),
        ("pair", ((X, Y), 7), r"expected a tuple of 2"),
        ("pair", ((X, (Y[:1].copy(), X)), 7), "m"),
        ("pair", ((X, (Y, X)), 1.5), "expected a number of dtype int64"),
        ("chosen", (X, 1, 1.5), "expected a number of dtype bool"),
        ("chosen", (X, True, "a"), "expected a number of dtype float64"),
        ("sized", (X, 1), "m"),
    ],
)
def test_what_does_not_fit_is_refused(
    exe: unity.Executable, name: str, args: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(unity.UnityError, match=said):
        exe[name](*args)


def test_a_single_is_no_more_than_it_holds() -> None:
    module = parse("""
@script.function
def main(x: f32[Tensor, 3], s: R.Prim("float32")) -> f32[Tensor, 3]:
    return R.negative(x)
""")
    exe = unity.compile(module)
    assert set(exe.native().values()) == {"native"}
    for fits in (1.5, -3.4028234663852886e38, float("nan")):
        np.testing.assert_array_equal(exe(X, fits), -X)
    for beyond in (1e300, -1e39):
        with pytest.raises(unity.UnityError, match="float32"):
            exe(X, beyond)


def test_lists_and_numpys_numbers_are_taken(exe: unity.Executable) -> None:
    wanted = exe["pair"]((X, (Y, X)), 7)
    np.testing.assert_array_equal(exe["pair"]([X, [Y, X]], np.int64(7)), wanted)


def test_c_gives_them_as_tensors(exe: unity.Executable, tmp_path: Path) -> None:
    """Fields of tuples each by itself, scalars without axes."""
    header = exe.export_library(tmp_path / "libparams.so").read_text()
    assert " *  inputs[2] p[1][1] float32[n]\n" in header
    assert " *  inputs[1] k int64(m), as a tensor of int64 without axes\n" in header
    library = Exported(tmp_path / "libparams.so")
    for name, args in CALLS:
        wanted = np.asarray(interpret(MODULE, name, args))
        found = np.empty_like(wanted)
        given = [np.asarray(a, d) for a, d in zip(_leaves(args), DTYPES[name], strict=True)]
        library.run(given, [found], name)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    for k, said in ((-1, r"input k is negative"), (1, "input k: m must be at least 2")):
        with pytest.raises(Failed, match=said):
            library.run([X, np.asarray(k)], [np.empty(2, np.float32)], "sized")
    with pytest.raises(Failed, match="input k is not int64"):
        library.run([X, np.asarray(2, np.int32)], [np.empty(2, np.float32)], "sized")


DTYPES: dict[str, list[Any]] = {
    "pair": [None, None, None, np.int64], "chosen": [None, np.bool_, np.float64],
    "sized": [None, np.int64], "main": [None, None, np.bool_],
}  # fmt: skip


def _leaves(value: object) -> list[Any]:
    return [x for v in value for x in _leaves(v)] if isinstance(value, tuple) else [value]
