"""What the interpreter makes of graph functions: control flow, symbols, calls, storage."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.graph import arguments_for, module
from unity.errors import UnityError, UnsupportedError
from unity.interpreter import Interpreter, interpret
from unity.interpreter.sizes import Sizes
from unity.interpreter.values import bind_result
from unity.ir.dims import as_dim, dim
from unity.ir.dtype import Array, dtype
from unity.ir.types import TensorType
from unity.script import parse

KERNELS = """
n = dim("n")


@script.prim_func
def double(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
    for i in range(n):
        b[i] = a[i] * 2.0


@script.prim_func
def shifted(a: f32[Buffer, n], b: f32[Buffer, n], k: T.size) -> None:
    for i in range(n):
        b[i] = a[i] + T.cast("float32", k)


@script.prim_func
def add_into(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
    for i in range(n):
        b[i] += a[i]
"""


def run(body: str, *args: object, params: str = "x: f32[Tensor, n]", **more: object) -> object:
    """Interpret a function with this body."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    text = f"{KERNELS}\n\n@script.function(pure=False)\ndef main({params}) -> R.Object:\n{lines}\n"
    return interpret(parse(text, names=more), "main", args)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def test_operators_run_by_their_reference() -> None:
    result = run("y = R.nn.relu(x)\nreturn R.multiply(y, 3.0)", f32(-1, 2))
    np.testing.assert_array_equal(result, f32(0, 6))


def test_a_kernel_gets_its_destination_and_extra_sizes() -> None:
    result = run(
        "y = R.call_tir(shifted, (x,), out=f32[Tensor, n], sym_args=(n * 2,))\nreturn y",
        f32(1, 2, 3),
    )
    np.testing.assert_array_equal(result, f32(7, 8, 9))


def test_an_output_in_place_begins_with_what_its_argument_holds() -> None:
    body = """
        y = R.nn.relu(x)
        z = R.call_tir(add_into, (x, y), out=f32[Tensor, n], inplace=(1,))
        return (y, z)
    """
    y, z = _pair(run(_dedent(body), f32(1, 2)))
    np.testing.assert_array_equal(z, f32(2, 4))
    np.testing.assert_array_equal(y, f32(1, 2))


def test_what_the_program_does_not_own_is_never_written() -> None:
    x = f32(1, 2)
    found = run("return R.call_tir(add_into, (x, x), out=f32[Tensor, n], inplace=(1,))", x)
    np.testing.assert_array_equal(found, f32(2, 4))
    np.testing.assert_array_equal(x, f32(1, 2))


def test_both_branches_and_loops() -> None:
    body = """
        total = R.sum(x)
        c = R.greater(total, 0.0)
        if c:
            y = R.negative(x)
        else:
            y = x
        return y
    """
    np.testing.assert_array_equal(run(_dedent(body), f32(-1)), f32(-1))
    np.testing.assert_array_equal(run(_dedent(body), f32(1)), f32(-1))


def test_while_carries_its_state() -> None:
    body = """
        i = R.const(0, "int64")
        while R.less(i, 3):
            x = R.multiply(x, 2.0)
            i = R.add(i, 1)
        return x
    """
    np.testing.assert_array_equal(run(_dedent(body), f32(1, 3)), f32(8, 24))


def test_a_state_of_unknown_size_may_grow() -> None:
    body = """
        i = R.const(0, "int64")
        y: f32[Tensor, R.rank(1)] = R.nn.relu(x)
        while R.less(i, 3):
            y = R.concat((y, y), axis=0)
            i = R.add(i, 1)
        return y
    """
    result = run(_dedent(body), f32(1, 2))
    assert isinstance(result, np.ndarray)
    assert result.shape == (16,)


@pytest.mark.parametrize("count", [0, 3])
def test_scan_stacks_what_each_step_gives(count: int) -> None:
    body = """
        zero = R.const(0.0, "float32")
        def step(total, element):
            new = R.add(total, element)
            return (new, new)
        out = R.scan(step, init=(zero,), inputs=(x,))
        return out
    """
    xs = np.arange(count, dtype=np.float32)
    total, running = _pair(run(_dedent(body), xs))
    assert total == xs.sum()
    np.testing.assert_array_equal(running, np.cumsum(xs))


def test_closures_see_values_and_symbols_around_them() -> None:
    body = """
        @script.function
        def inner(y: f32[Tensor, n]) -> f32[Tensor, n]:
            return R.add(x, y)
        z = inner(x)
        return z
    """
    np.testing.assert_array_equal(run(_dedent(body), f32(1, 2)), f32(2, 4))


def test_recursion() -> None:
    text = """
@script.function
def down(i: i64[Tensor, ()], x: f32[Tensor, ()]) -> f32[Tensor, ()]:
    done = R.less_equal(i, 0)
    if done:
        y = x
    else:
        j = R.subtract(i, 1)
        x2 = R.multiply(x, 2.0)
        y = down(j, x2)
    return y
"""
    assert interpret(parse(text), "down", [np.int64(5), np.float32(1)]) == 32


def test_each_call_binds_symbols_anew() -> None:
    text = """
n = dim("n")
m = dim("m")


@script.function
def size(x: f32[Tensor, n]) -> R.Shape(n):
    return R.shape(n)


@script.function
def main(x: f32[Tensor, n], y: f32[Tensor, m]) -> R.Tuple(R.Shape(n), R.Shape(m)):
    a = size(x)
    b = size(y)
    return (a, b)
"""
    assert interpret(parse(text), "main", [f32(1), f32(1, 2)]) == ((1,), (2,))


def test_data_dependent_sizes_get_their_value() -> None:
    text = """
n = dim("n")
k = dim("k")


@script.function
def main(x: f32[Tensor, n]) -> R.Object:
    at: i64[Tensor, 1, k] = R.nonzero(x)
    flat = R.reshape(at, (k,))
    return R.shape(k + 1)
"""
    assert interpret(parse(text), "main", [f32(1, 0, 2)]) == (3,)


def test_two_values_of_a_symbol_are_named_with_their_places() -> None:
    with pytest.raises(
        UnityError, match=r"argument 1 \('y'\), dim 0, is n, which is 2 .*'x'.*got 3"
    ):
        run("return x", f32(1, 2), f32(1, 2, 3), params="x: f32[Tensor, n], y: f32[Tensor, n]")


@pytest.mark.parametrize(
    ("arg", "said"),
    [
        (np.zeros(2, np.float64), "should be of float32, got float64"),
        (np.zeros((2, 2), np.float32), r"should have rank 1, got shape \(2, 2\)"),
        ((1, 2), "should be a tensor, got a tuple of 2"),
    ],
)
def test_arguments_are_checked_against_the_parameters(arg: object, said: str) -> None:
    with pytest.raises(UnityError, match=said):
        run("return x", arg)


def test_a_match_cast_that_does_not_hold_is_an_error() -> None:
    with pytest.raises(UnityError, match="dim 0, should be 5, got 2"):
        run("y = R.match_cast(x, f32[Tensor, 5])\nreturn y", f32(1, 2))


def test_facts_of_symbols_are_checked() -> None:
    text = """
n = dim("n", multiple_of=4)


@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return x
"""
    with pytest.raises(UnityError, match="multiple_of=4"):
        interpret(parse(text), "main", [f32(1, 2)])


def test_a_python_function_fills_its_destination() -> None:
    def negate(x: Array, out: Array) -> None:
        out[...] = np.negative(x)

    result = run("return R.call_python(negate, (x,), out=f32[Tensor, n])", f32(1), negate=negate)
    np.testing.assert_array_equal(result, f32(-1))


def test_a_library_call_needs_its_meaning() -> None:
    text = """
n = dim("n")


@script.function(pure=False)
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.call_library("c_neg", (x,), out=f32[Tensor, n])
    return y
"""
    m = parse(text)
    with pytest.raises(UnsupportedError, match="c_neg"):
        interpret(m, "main", [f32(1)])
    np.testing.assert_array_equal(
        interpret(m, "main", [f32(1)], {"c_neg": lambda x, out: np.negative(x, out=out)}), f32(-1)
    )


def test_an_engine_is_its_subgraph() -> None:
    text = """
n = dim("n")


@script.function
def part(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.exp(x)


@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.call_engine("ort", part, (x,), out=f32[Tensor, n])
    return y
"""
    np.testing.assert_array_equal(interpret(parse(text), "main", [f32(0)]), f32(1))


PLANNED = """
arena = R.memory.alloc_arena((n * 4 + 64,))
a = R.memory.view(arena, (0,), (n,), "float32")
b = R.memory.view(arena, ({second},), (n,), "float32")
c = R.memory.alloc_tensor((n,), "float32")
d = R.memory.call_kernel(double, (x, a), R.shape(n))
e = R.memory.call_kernel(shifted, (x, b), R.shape(n, 1))
f = R.memory.call_kernel(double, (a, c), R.shape(n))
return c
"""


def test_a_planned_module_runs_in_its_arena() -> None:
    result = run(PLANNED.format(second="64"), f32(1, 2))
    np.testing.assert_array_equal(result, f32(4, 8))


def test_tensors_planned_into_one_place_overwrite_each_other() -> None:
    result = run(PLANNED.format(second="0"), f32(1, 2))
    np.testing.assert_array_equal(result, f32(4, 6))


def test_a_view_outside_its_arena_is_an_error() -> None:
    with pytest.raises(UnityError, match="leaves the arena of 72 bytes"):
        run(PLANNED.format(second="128"), f32(1, 2))


def test_a_reshaped_view_is_the_same_storage() -> None:
    body = """
        c = R.memory.alloc_tensor((n,), "float32")
        d = R.memory.call_kernel(double, (x, c), R.shape(n))
        v = R.memory.reshape_view(c, (1, n))
        e = R.memory.call_kernel(add_into, (x, c), R.shape(n))
        return v
    """
    np.testing.assert_array_equal(run(_dedent(body), f32(1, 2)), [f32(3, 6)])


def test_a_result_may_hold_a_symbol_that_nothing_determines() -> None:
    counted = parse(
        """
n = dim("n")


@script.function
def main(x: f32[Tensor, n]):
    k = 0
    while k < n and k < 3:
        k += 1
    return x[:k]
"""
    )
    for size in (0, 1, 5):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(interpret(counted, "main", [x]), x[:3])


def test_a_result_that_no_number_fits_is_refused() -> None:
    twice = TensorType((as_dim(dim("k") * 2),), dtype("float32"))
    bind_result(twice, np.ones(4, np.float32), Sizes(), "the result")
    with pytest.raises(UnityError, match="the result, dim 0, is 3, which does not determine"):
        bind_result(twice, np.ones(3, np.float32), Sizes(), "the result")


def test_an_interpreter_is_called_many_times() -> None:
    text = """
n = dim("n")


@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.exp(x)
"""
    machine = Interpreter(parse(text))
    for size in (1, 2):
        result = machine.call("main", [np.zeros(size, np.float32)])
        assert isinstance(result, np.ndarray)
        assert result.shape == (size,)


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_every_value_of_a_random_program_has_its_inferred_type(seed: int) -> None:
    m = module(Random(seed))
    interpret(m, "main", arguments_for(m, np.random.default_rng(0)))


def _pair(value: object) -> tuple[Array, Array]:
    assert isinstance(value, tuple)
    a, b = value
    return np.asarray(a) if not isinstance(a, np.ndarray) else a, b


def _dedent(body: str) -> str:
    lines = body.strip("\n").splitlines()
    return "\n".join(line[8:] for line in lines if line.strip())
