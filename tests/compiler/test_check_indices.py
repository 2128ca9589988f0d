"""Scatters out of range and integers divided by 0: left out and 0, or refused if so compiled."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.equality import structural_equal
from unity.runtime.executable import Executable
from unity.script import parse
from unity.transform import Context
from unity.transform.graph.simplify.check_indices import CheckIndices

PROGRAM = """
n = dim("n")
m = dim("m")

@script.function
def elements(x: f32[Tensor, n, 2], i: i64[Tensor, m, 2], u: f32[Tensor, m, 2]) -> f32[Tensor, n, 2]:
    return R.scatter_elements(x, i, u, axis=0)

@script.function
def nd(x: f32[Tensor, n, 2], i: i32[Tensor, m, 1], u: f32[Tensor, m, 2]) -> f32[Tensor, n, 2]:
    return R.scatter_nd(x, i, u)

@script.function
def quotient(a: i32[Tensor, n], b: i32[Tensor, n]) -> i32[Tensor, n]:
    return R.add(R.divide(a, b), R.floor_divide(a, b))

@script.function
def rest(a: i64[Tensor, n], b: i64[Tensor, ()]) -> i64[Tensor, n]:
    return R.add(R.mod(a, b), R.floor_mod(a, b))
"""


@pytest.fixture(scope="module")
def compiled() -> tuple[Executable, Executable]:
    program = parse(PROGRAM)
    return unity.compile(program), unity.compile(program, check_bounds=True)


@pytest.mark.parametrize("function", ["elements", "nd"])
@pytest.mark.parametrize("wrong", [5, -6, 2**31 - 1, -(2**31)])
def test_a_scatter_out_of_range_writes_nothing_or_is_refused(
    compiled: tuple[Executable, Executable], function: str, wrong: int
) -> None:
    plain, checked = (exe[function] for exe in compiled)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    new = np.array([[-1, -2], [-3, -4]], np.float32)

    def indices(second: int) -> Array:
        rows = np.array([-5, second])
        return rows[:, None].astype(np.int32) if function == "nd" else np.stack([rows, rows], 1)

    expected = x.copy()
    expected[0] = new[0]
    np.testing.assert_array_equal(np.asarray(plain(x, indices(wrong), new)), expected)
    with pytest.raises(UnityError, match="index_out_of_range"):
        checked(x, indices(wrong), new)
    expected[4] = new[1]
    for exe in (plain, checked):
        np.testing.assert_array_equal(np.asarray(exe(x, indices(-1), new)), expected)


@pytest.mark.parametrize("function", ["quotient", "rest"])
def test_an_integer_by_zero_gives_zero_or_is_refused(
    compiled: tuple[Executable, Executable], function: str
) -> None:
    plain, checked = (exe[function] for exe in compiled)
    kind = np.int32 if function == "quotient" else np.int64
    a = np.array([7, -7, 0], kind)
    zeros = np.zeros(() if function == "rest" else 3, kind)
    np.testing.assert_array_equal(np.asarray(plain(a, zeros)), [0, 0, 0])
    with pytest.raises(UnityError, match="divides_by_zero"):
        checked(a, zeros)
    divisor, expected = (
        (-3, [-2 - 3, 2 + 2, 0]) if function == "quotient" else (3, [1 + 1, -1 + 2, 0])
    )
    by = np.full(zeros.shape, divisor, kind)
    for exe in (plain, checked):
        np.testing.assert_array_equal(np.asarray(exe(a, by)), expected)


def test_a_divisor_that_is_known_is_not_looked_at() -> None:
    halves = parse("""
n = dim("n")

@script.function
def main(a: i64[Tensor, n]) -> i64[Tensor, n]:
    return R.divide(a, R.const(2, "int64"))
""")
    assert structural_equal(CheckIndices()(halves, Context()), halves)
