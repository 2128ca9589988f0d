"""Calls between graph functions, native code to native code."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import parse
from unity.transform.graph import CountNonzero, InlineFunctions

MODULE = parse("""
n = dim("n")
m = dim("m", min=2)
@script.function
def layer(
    a: f32[Tensor, m, 4], w: f32[Tensor, 4, 4]
) -> tuple[f32[Tensor, m, 4], f32[Tensor, 4]]:
    c = R.tanh(R.add(a, R.sum(w, axis=0)))
    return c, R.sum(c, axis=0)
@script.function
def square(a: f32[Tensor, n, n]) -> f32[Tensor, n, n]:
    return R.multiply(a, a)
@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4, 4]):
    r = layer(R.concat((x, x), axis=0), w)
    i = R.const(0)
    state = r[0]
    while R.less(i, 3):
        i = R.add(i, 1)
        both = layer(state, square(w))
        state = R.add(both[0], both[1])
    last = layer(state, w)
    return R.add(last[1], 1.0), last[0]
@script.function
def product(x: f32[Tensor, 3], k: i64[Tensor, ()]) -> f32[Tensor, 3]:
    if R.less(k, 1):
        y = R.exp(x)
    else:
        y = R.add(product(x, R.subtract(k, 1)), x)
    return y
@script.function
def squared(x: f32[Tensor, n, m]) -> f32[Tensor, n, n]:
    checked = R.match_cast(x, f32[Tensor, n, n])
    return square(checked)
@script.function
def found(x: f32[Tensor, n]) -> i64[Tensor, ()]:
    return R.sum(R.nonzero(x))
@script.function
def finder(x: f32[Tensor, n]) -> i64[Tensor, ()]:
    return found(R.exp(x))
""")


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(
        MODULE, pipeline=unity.pipeline().without(InlineFunctions).without(CountNonzero)
    )


def test_who_calls_native_code_is_native_and_the_table_says_so(exe: unity.Executable) -> None:
    how = exe.native()
    native = ("layer", "square", "main", "product", "squared", "finder")
    assert {how[name] for name in native} == {"native"}
    assert how["found"] == "bytecode: it calls Python (op:nonzero)"
    assert f"found: {how['found']}" in str(exe.explain())
    assert "main: native" in exe.explain()._repr_html_()


@pytest.mark.parametrize("n", [1, 7])
def test_results_of_calls_in_a_row_and_in_a_loop(exe: unity.Executable, n: int) -> None:
    rng = np.random.default_rng(n)
    args = [rng.standard_normal((n, 4), np.float32), rng.random((4, 4), np.float32) / 8]
    wanted = interpret(MODULE, "main", args)
    assert isinstance(wanted, tuple)
    for _ in range(2):  # arenas are used again
        for mine, theirs in zip(exe(*args), wanted, strict=True):
            np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-4, atol=1e-5)


def test_a_callees_facts_are_checked(exe: unity.Executable) -> None:
    with pytest.raises(UnityError, match="call of layer: argument 'a' axis 0: symbol m is 0"):
        exe(np.zeros((0, 4), np.float32), np.zeros((4, 4), np.float32))
    x = np.full((3, 3), 2, np.float32)
    np.testing.assert_array_equal(exe["squared"](x), x * x)
    with pytest.raises(UnityError, match="match_cast 'checked'"):
        exe["squared"](x[:, :2].copy())


def test_recursion_has_an_end(exe: unity.Executable) -> None:
    one = np.ones(3, np.float32)
    for depth in (0, 1, 200):
        got = exe["product"](one, np.array(depth))
        np.testing.assert_allclose(got, np.exp(one) + depth, rtol=1e-5)
    for depth in (100_000, 2**62):
        with pytest.raises(UnityError, match="product: calls of graph functions nest too deeply"):
            exe["product"](one, np.array(depth))
