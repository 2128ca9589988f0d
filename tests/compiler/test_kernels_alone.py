"""Kernels that nobody decorated in graph functions, and modules of nothing but kernels."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity import script, te
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.script import Buffer, R, T, Tensor, dim, f32
from unity.transform.schedule.schedule import Schedule

n = dim("n")
X = np.arange(6, dtype=np.float32)


def doubling(size: int = 6) -> PrimFunc:
    x = te.placeholder((size,), "float32", "x")
    return te.create_prim_func([x, te.compute((size,), lambda i: x[i] * 2.0, "y")])


BY_TE, BY_SCHEDULE = doubling(), Schedule(doubling()).kernel()


@script.function
def quadruple(x: f32[Tensor, 6]) -> f32[Tensor, 6]:
    y = R.call_tir(BY_TE, (x,), out=f32[Tensor, 6])
    return R.call_tir(BY_TE, (y,), out=f32[Tensor, 6])


@script.function
def both(x: f32[Tensor, 6]) -> f32[Tensor, 6]:
    y = R.call_tir(BY_SCHEDULE, (x,), out=f32[Tensor, 6])
    return quadruple(y)


@script.prim_func
def twice(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = x[i] * 2.0


@script.prim_func
def ones(y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = 1.0


@script.prim_func(attrs={"num_outputs": 2})
def halves(x: f32[Buffer, n], low: f32[Buffer, n // 2], high: f32[Buffer, n - n // 2]) -> None:
    for i in range(n // 2):
        low[i] = x[i]
    for i in range(n - n // 2):
        high[i] = x[i + n // 2]


@script.prim_func
def added(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = y[i] + x[i]


@script.prim_func
def nothing() -> None:
    T.evaluate(0)


def test_a_kernel_of_te_is_called_and_is_one_kernel() -> None:
    assert list(quadruple.module().functions) == ["BY_TE", "quadruple"]
    np.testing.assert_array_equal(unity.compile(quadruple)(X), 4 * X)


def test_a_kernel_of_a_schedule_beside_a_function_that_names_others() -> None:
    assert set(both.module().functions) == {"BY_SCHEDULE", "BY_TE", "quadruple", "both"}
    np.testing.assert_array_equal(unity.compile(both)(X), 8 * X)


def test_a_decorated_kernel_is_compiled_to_what_gives_its_outputs() -> None:
    exe = unity.compile(twice)
    np.testing.assert_array_equal(exe(X), 2 * X)
    np.testing.assert_array_equal(exe(X[:2]), 2 * X[:2])


def test_every_kernel_of_a_module_is_a_function() -> None:
    exe = unity.compile(unity.IRModule({"te": doubling(), "twice": twice.func, "ones": ones.func}))
    np.testing.assert_array_equal(exe(X), 2 * X)
    np.testing.assert_array_equal(exe["twice"](X[:3]), 2 * X[:3])
    np.testing.assert_array_equal(exe["ones"](4), np.ones(4, np.float32))


def test_several_outputs_are_a_tuple() -> None:
    low, high = unity.compile(halves)(X[:5])
    np.testing.assert_array_equal(low, X[:2])
    np.testing.assert_array_equal(high, X[2:5])


def test_it_is_saved_and_read_as_others(tmp_path: object) -> None:
    path = f"{tmp_path}/twice.unity"
    unity.compile(twice).save(path)
    np.testing.assert_array_equal(unity.load(path)(X), 2 * X)


def test_what_no_function_can_call_is_told() -> None:
    with pytest.raises(UnityError, match="'y' is read before anything is stored"):
        unity.compile(added)
    with pytest.raises(UnityError, match=r"nothing is a kernel .* it has no output"):
        unity.compile(nothing)


def test_the_builder_calls_kernels_that_exist() -> None:
    b = unity.GraphBuilder()
    x = b.param("x", f32[Tensor, 6])
    y = b.emit_tir(BY_TE, [x], f32[Tensor, 6], "double")
    module = b.finish(b.emit_tir(BY_TE, [y], f32[Tensor, 6]))
    assert list(module.functions) == ["main", "double"]
    np.testing.assert_array_equal(unity.compile(module)(X), 4 * X)
    with pytest.raises(UnityError, match="emit_tir: kernel: argument 1, axis 0: expected 6, got 5"):
        b.emit_tir(doubling(), [x], f32[Tensor, 5])
    with pytest.raises(UnityError, match="takes 2 buffers, got 2 inputs and 1 outputs"):
        b.emit_tir(BY_TE, [x, y], f32[Tensor, 6])


def test_a_size_of_a_kernel_is_that_of_what_it_is_given() -> None:
    b, m = unity.GraphBuilder(), dim("m")
    x = b.param("x", f32[Tensor, m])
    module = b.finish(b.emit_tir(twice.func, [x], f32[Tensor, m]))
    np.testing.assert_array_equal(unity.compile(module)(X), 2 * X)
