"""Types written in a module against those of the rules, where sizes are only known at run time."""

from __future__ import annotations

import pytest

from unity.errors import UnityError
from unity.op.check import check_types
from unity.script import parse

TWICE = """
k = dim("k")
a = dim("a")
b = dim("b")


@script.function
def places(x: f32[Tensor, 4]) -> R.Tuple(i64[Tensor, k * 2 + 1], i64[Tensor, k]):
    found = R.match_cast(R.nonzero(x), i64[Tensor, 1, k])
    flat = R.reshape(found, (k,))
    return (R.concat((flat, flat, R.const([0]))), flat)


@script.function
def main(x: f32[Tensor, 4]):
    both: R.Tuple(i64[Tensor, {first}], i64[Tensor, {second}]) = places(x)
    return both[0]
"""


@pytest.mark.parametrize(("first", "second"), [("a * 2 + 1", "a"), ("a * 4 + 3", "a * 2 + 1")])
def test_a_result_is_declared_by_what_its_new_size_is_called(first: str, second: str) -> None:
    check_types(parse(TWICE.format(first=first, second=second)))


@pytest.mark.parametrize(("first", "second"), [("a * 2 + 1", "b"), ("a * 2", "a"), ("a", "a")])
def test_sizes_that_belong_together_are_not_declared_apart(first: str, second: str) -> None:
    with pytest.raises(UnityError, match="binding both: has type"):
        check_types(parse(TWICE.format(first=first, second=second)))
