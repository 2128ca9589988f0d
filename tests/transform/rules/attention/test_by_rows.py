"""Attention of known numbers of rows is a program of steps, the one that is compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.transform.schedule.printed import difference, run_printed
from tests.transform.tensor.kernels import CPU, assert_same
from unity.transform.rules.default import default_rules, default_schedule, schedule

from ..kernels import lowered
from .test_blocks import WIDE, attention

CASES: dict[tuple[int, int, tuple[str, ...]], int] = {
    (1, 9, ()): 1,
    (3, 5, ("keys",)): 1,
    (8, 7, ("full",)): 8,
    (16, 4, ()): 16,
    (48, 2, ("heads", "full")): 24,
    (40, 3, ("keys",)): 40,
}
"""Queries, keys and what is added to scores; how many rows go together with eight lanes."""


@pytest.mark.rotated(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps(case: tuple[int, int, tuple[str, ...]]) -> None:
    queries, keys, extra = case
    func = attention(queries, keys, extra, heads=1, size=2, scale=0.5)
    (rule,) = default_rules(func, CPU)
    assert (rule.rule, rule.decisions["rows"], rule.passed) == ("attention", CASES[case], ())
    sch = default_schedule(func, CPU)
    at_once = {str(step.args[0]) for step in sch.trace if step.name == "lay_out"}
    assert not at_once
    compiled = schedule(func, CPU)
    assert difference(sch.func, compiled) is None
    assert difference(sch.func, run_printed(sch, "attention").func) is None
    assert_same(func, lowered(compiled, CPU), {})


@pytest.mark.parametrize("queries", [9, 88])
def test_rows_that_fill_no_equal_blocks_are_left_to_another_rule(queries: int) -> None:
    (rule,) = default_rules(attention(queries, 4), CPU)
    assert rule.rule == "chain_blocks"


def test_other_sizes_of_blocks() -> None:
    func = attention(16, 3, heads=1, size=2)
    target = replace(WIDE, vector_bits=128)
    legal = default_rules(func, target)[0].legal["rows"].values
    assert list(legal) == [1, 4, 8, 16]
    for rows in (1, 4, 16):
        done = default_schedule(func, target, {"scores": {"rows": rows}})
        assert "lay_out" not in {step.name for step in done.trace}
        assert_same(func, lowered(done.func, target), {})
