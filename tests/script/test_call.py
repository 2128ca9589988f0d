"""Decorated functions run when they are called with arrays."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unity import script
from unity.errors import UnityError
from unity.script import Buffer, R, T, Tensor, dim, f32

n = dim("n")


@script.prim_func
def add(a: f32[Buffer, n, 4], b: f32[Buffer, 4], c: f32[Buffer, n, 4]) -> None:
    for i, j in T.grid(n, 4):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] + b[vj]


@script.function
def main(x: f32[Tensor, n, 4], w: f32[Tensor, 4]) -> f32[Tensor, n, 4]:
    y = R.call_tir(add, (x, w), out=f32[Tensor, n, 4])
    return R.nn.relu(y)


def test_a_function_returns_arrays() -> None:
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    w = np.ones(4, np.float32)
    np.testing.assert_array_equal(np.asarray(main(x, w)), np.maximum(x + w, 0))
    longer = np.ones((5, 4), np.float32)
    np.testing.assert_array_equal(np.asarray(main(longer, w=w)), longer + w)


def test_a_prim_func_writes_its_outputs() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = np.zeros((3, 4), np.float32)
    add(a, np.ones(4, np.float32), out)
    np.testing.assert_array_equal(out, a + 1)


def test_a_prim_func_checks_its_arrays() -> None:
    with pytest.raises(UnityError, match="argument 'b'"):
        add(np.ones((3, 4), np.float32), np.ones(5, np.float32), np.zeros((3, 4), np.float32))


def test_a_prim_func_is_not_given_memory_twice_that_it_writes_to() -> None:
    @script.prim_func
    def twice(a: f32[Buffer, n], b: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i in range(n):
            c[n - 1 - i] = a[i] + b[i]

    x = np.arange(8, dtype=np.float32)
    shared = "argument 'a' and argument 'c' share memory, and argument 'c' is written to"
    for a, c in ((x, x), (x[:4], x[3:7]), (x[4:], x[2:6])):
        with pytest.raises(UnityError, match=shared) as caught:
            twice(a, np.ones_like(a), c)
        assert "copy" in str(caught.value.hint)
    twice(x[:4], x[:4], x[4:])  # what is only read may be given twice, and parts may lie together
    np.testing.assert_array_equal(x, [0, 1, 2, 3, 6, 4, 2, 0])
    empty = np.zeros(0, np.float32)
    twice(empty, empty, empty)


def test_an_input_that_a_prim_func_writes_to_is_looked_at_as_well() -> None:
    @script.prim_func
    def both(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i in range(n):
            c[i] = a[i]
            a[i] = 0.0

    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(UnityError, match="argument 'a' is an output, but the array is read-only"):
        both(frozen, np.zeros(3, np.float32))


def test_a_size_that_no_shape_gives_is_an_argument() -> None:
    @script.prim_func
    def first(a: f32[Buffer, n], c: f32[Buffer, n], k: T.size) -> None:
        for i in T.serial(n):
            c[i] = T.select(i < k, a[i], 0.0)

    out = np.ones(4, np.float32)
    first(np.arange(4, dtype=np.float32) + 1, out, 2)
    np.testing.assert_array_equal(out, [1, 2, 0, 0])


def test_errors_of_calls_end_in_the_users_line() -> None:
    @script.prim_func
    def copied(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
        for i in range(4):
            b[i] = a[i]

    @script.function
    def twice(a: f32[Tensor, 4]) -> f32[Tensor, 4]:
        return a + a

    short = np.ones(3, np.float32)
    calls: list[Callable[[], object]] = [lambda: copied(short, short), lambda: twice(short)]
    for call in calls:
        for _ in range(2):  # compiled anew, and found
            with pytest.raises(UnityError) as told:
                call()
            assert traceback.extract_tb(told.value.__traceback__)[-1].filename == __file__


def test_errors_of_annotations_end_at_the_users_line() -> None:
    element: Any = f32
    for wrong in ("n", -1):
        with pytest.raises(UnityError) as told:
            element[Tensor, wrong]
        assert traceback.extract_tb(told.value.__traceback__)[-1].filename == __file__


def test_a_private_function_runs_where_it_is_called_itself() -> None:
    @script.prim_func(attrs={"private": True})
    def copied(a: f32[Buffer, 4], b: f32[Buffer, 4]) -> None:
        for i in range(4):
            b[i] = a[i]

    @script.function(attrs={"private": True})
    def twice(a: f32[Tensor, 4]) -> f32[Tensor, 4]:
        return a + a

    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    copied(x, out)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(np.asarray(twice(x)), 2 * x)


def test_a_decorated_function_is_told_in_a_line() -> None:
    @script.function
    def scaled(x: f32[Tensor, n], by: f32[float, R.Prim]) -> f32[Tensor, n]:
        return x * by

    @script.prim_func
    def double(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
        for i in range(n):
            y[i] = x[i] * 2.0

    told = "<graph function scaled(x: float32(n,), by: float32 scalar) -> float32(n,)>"
    assert repr(scaled) == told
    assert repr(double) == "<kernel double(x, y)>"
    assert [scaled.__name__, double.__name__] == ["scaled", "double"]
