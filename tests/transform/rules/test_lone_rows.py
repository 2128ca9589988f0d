"""Rows of which there is one or none: laid out as one, in a call that has it."""

from __future__ import annotations

import pytest

from tests.transform.rules.kernels import lowered
from tests.transform.tensor.kernels import CPU, assert_same
from unity.ir.stmt import IfThen, PrimFunc
from unity.script import parse
from unity.transform.rules.default import default_rules, default_schedule, schedule
from unity.transform.rules.lone_rows import when_rows_are_there


def last_row(least: int = 0) -> PrimFunc:
    """A product of the last row of n."""
    return parse(f"""
n = dim("n", min={least})

@script.prim_func
def main(
    x: f32[Buffer, T.min(1, n), 12], w: f32[Buffer, 2, 12, 8], c: f32[Buffer, T.min(1, n), 13]
) -> None:
    for i, j, k in T.grid(T.min(1, n), 13, 12):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += x[vi, vk] * w[vj // 8, vk, vj % 8]
""").prim_funcs()["main"]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_values_stay(n: int) -> None:
    before = last_row()
    for done in (schedule(before, CPU), default_schedule(before, CPU).func):
        assert isinstance(done.body, IfThen)
        assert_same(before, done, {"n": n})
        assert_same(before, lowered(done, CPU), {"n": n})


def test_the_row_is_laid_out_as_one_of_a_known_number() -> None:
    rule, nothing = default_rules(last_row(), CPU)
    assert (rule.rule, rule.decisions["rows"]) == ("packed", 1)
    assert nothing.rule == "as_written"


def test_rows_that_are_surely_there_have_one_version() -> None:
    assert when_rows_are_there(last_row(least=1).body) is None
