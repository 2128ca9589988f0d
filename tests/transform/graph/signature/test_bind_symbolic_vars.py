"""BindSymbolicVars: the program gives what it gave for tensors of that size."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, floats
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import BindSymbolicVars

PROGRAM = """
n = dim("n", max=8, multiple_of=2)
m = dim("m")
@script.prim_func
def twice(a: f32[Buffer, n], b: f32[Buffer, n]) -> None:
    for i in range(n):
        b[i] = a[i] * 2.0
@script.function
def main(x: f32[Tensor, m, n], w: f32[Tensor, n]) -> f32[Tensor, m * n]:
    v = R.call_tir(twice, (w,), out=f32[Tensor, n])
    y = R.add(x, v)
    return R.reshape(y, (m * n,))
@script.function
def other(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.exp(x)
@script.function
def caller(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return other(x)
"""


def test_numbers_are_those_of_tensors_of_that_size() -> None:
    x, w = floats(1, (3, 4), (4,))
    bound = apply(BindSymbolicVars("main", {"n": 4}), PROGRAM)
    main = bound.graph_functions()["main"]
    assert [str(p.type) for p in main.params] == ["float32(m, 4)", "float32(4,)"]
    assert str(main.result) == "float32(m * 4,)"
    wanted = np.asarray(interpret(parse(PROGRAM), "main", [x, w]))
    np.testing.assert_array_equal(np.asarray(interpret(bound, "main", [x, w])), wanted)
    exe = unity.compile(bound)
    np.testing.assert_allclose(exe["main"](x, w), wanted)


def test_nothing_to_bind_changes_nothing() -> None:
    module = parse(PROGRAM)
    assert BindSymbolicVars("main", {})(module, Context()) is module


@pytest.mark.parametrize(
    ("function", "sizes", "message"),
    [
        ("main", {"k": 4}, "the inputs of main have no size 'k'"),
        ("main", {"n": 3}, "n of main can't be 3"),
        ("main", {"n": 10}, "n of main can't be 10"),
        ("main", {"m": -1}, "m of main can't be -1"),
        ("lost", {"n": 4}, "the module has no graph function 'lost'"),
        ("other", {"n": 4}, "caller calls other"),
    ],
)
def test_mistakes(function: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(UnityError) as caught:
        BindSymbolicVars(function, sizes)(parse(PROGRAM), Context())
    assert message in caught.value.message
