"""RequireElements: argmax, argmin and median of nothing are errors, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from tests.transform.cases import stays
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform.graph import RequireElements


def program(dims: str, call: str) -> str:
    return f"""
n = dim("n")
m = dim("m", min=1)
@script.function
def main(x: f32[Tensor, {dims}]):
    y = R.{call}
    return y
"""


def fields(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def run(module: IRModule, x: object) -> None:
    array = np.asarray(x, np.float32)
    for got, want in zip(
        fields(unity.compile(module)(array)),
        fields(interpret(module, "main", [array])),
        strict=True,
    ):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("name", ["argmax", "argmin", "median"])
@pytest.mark.parametrize(
    ("dims", "axis", "empty"), [("3, n", 1, (3, 0)), ("n, m", 0, (0, 2)), ("n, m", None, (0, 2))]
)
def test_an_axis_that_turns_out_to_be_empty(
    name: str, dims: str, axis: int | None, empty: tuple[int, ...]
) -> None:
    module = parse(program(dims, f"{name}(x, axis={axis})"))
    run(module, np.random.default_rng(0).standard_normal((3, 4)))
    with pytest.raises(UnityError, match=f"{name}: .* is empty over axis {axis}"):
        interpret(module, "main", [np.zeros(empty, np.float32)])
    with pytest.raises(UnityError, match=r"'y_over_nothing' of .*n = 0.*elements_of_\w+ is 0"):
        unity.compile(module)(np.zeros(empty, np.float32))


def test_an_axis_that_is_known_to_be_empty() -> None:
    with pytest.raises(UnityError, match=r"argmax: float32\(3, 0\) is empty over axis 1"):
        parse(program("3, 0", "argmax(x, axis=1)"))
    with pytest.raises(UnityError, match=r"median: float32\(3, 0\) is empty over axis 1"):
        parse(program("3, 0", "median(x, axis=1)"))
    run(parse(program("0, 3", "argmax(x, axis=1)")), np.zeros((0, 3)))


@pytest.mark.parametrize("dims", ["n, 4", "n, m", "3, m + n"])
def test_nothing_is_asked_where_there_are_elements(dims: str) -> None:
    stays(RequireElements(), program(dims, "argmax(x, axis=1)"))
