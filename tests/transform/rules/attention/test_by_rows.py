"""Attention is a program of steps, the one that is compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.transform.schedule.printed import difference, run_printed
from tests.transform.tensor.kernels import CPU, assert_same
from unity.ir.dims import Dim, dim
from unity.transform.rules.default import default_rules, default_schedule, schedule

from ..kernels import lowered
from .test_blocks import WIDE, attention

N, M = dim("n"), dim("m")
CASES: dict[tuple[Dim, Dim, tuple[str, ...]], tuple[int, int]] = {
    (1, 9, ()): (1, 1),
    (3, 11, ("keys",)): (1, 4),  # of those that are left there are none
    (8, 7, ("full",)): (8, 8),
    (16, 4, ()): (16, 8),
    (112, 2, ("heads", "full")): (56, 8),
    (16, M, ("keys",)): (16, 8),
    (9, 4, ()): (16, 16),
    (50, 3, ("keys",)): (56, 56),
    (70, 3, ("full",)): (64, 8),
    (N, M, ("keys",)): (64, 16),
    (N, N + M, ()): (64, 16),
}
"""Queries, keys and what is added to scores; with eight lanes the rows that go together, and of
those that are left."""


@pytest.mark.rotated(2)
@pytest.mark.long("checks each step, and computes in the interpreter")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps(case: tuple[Dim, Dim, tuple[str, ...]]) -> None:
    queries, keys, extra = case
    func = attention(queries, keys, extra, heads=1, size=16, scale=0.5)
    (rule,) = default_rules(func, CPU)
    assert (rule.rule, rule.passed) == ("attention", ())
    assert (rule.decisions["rows"], rule.decisions["rest"]) == CASES[case]
    sch = default_schedule(func, CPU)
    compiled = schedule(func, CPU)
    assert difference(sch.func, compiled) is None
    assert difference(sch.func, run_printed(sch, "attention").func) is None
    low = lowered(compiled, CPU)
    for n in (3, 43) if N in case else (1,):
        assert_same(func, low, {"n": n, "m": 5})


def test_other_sizes_of_blocks() -> None:
    func = attention(16, 3, heads=1, size=2)
    target = replace(WIDE, vector_bits=128)
    legal = default_rules(func, target)[0].legal["rows"].values
    assert list(legal) == [1, *range(4, 33, 4)]
    for rows in (1, 12):
        done = default_schedule(func, target, {"scores": {"rows": rows}})
        assert_same(func, lowered(done.func, target), {})


@pytest.mark.rotated(1 / 4)
def test_rows_that_are_left_may_be_one_block() -> None:
    """Of as many rows as a whole one, or more."""
    func = attention(N, 8, heads=1, size=2)
    target = replace(WIDE, vector_bits=128)
    (rule,) = default_rules(func, target)
    for rest in (rule.decisions["rows"], 32):
        done = default_schedule(func, target, {"scores": {"rest": rest, "few": 2}})
        assert_same(func, done.func, {"n": 19})


HIDDEN: dict[tuple[Dim, Dim, str], str | None] = {
    (112, 112, "TopLeft"): "vi_0_o * 56 + 56",
    (70, 90, "BottomRight"): "84",
    (3, 9, "TopLeft"): "vi_o + 1",
    (1, 9, "BottomRight"): None,
    (9, 4, "BottomRight"): None,
    (N, N, "TopLeft"): "vi_0_o * 64 + 64",
    (N, N + M, "BottomRight"): "vi_0_o * 64 + m + 64",
}
"""Queries, keys and a causal mask; with eight lanes how many keys a block of rows sees."""


@pytest.mark.rotated(1)
@pytest.mark.long("checks each step, and computes in the interpreter")
@pytest.mark.parametrize("case", HIDDEN, ids=str)
def test_keys_that_a_block_of_rows_does_not_see_are_left_out(case: tuple[Dim, Dim, str]) -> None:
    queries, keys, mask = case
    size = 4 if queries == 3 else 2
    func = attention(queries, keys, heads=1, size=size, causal_mask=mask)
    (rule,) = default_rules(func, CPU)
    assert (rule.decisions["trims"], rule.passed) == (True, ())
    sch = default_schedule(func, CPU)
    seen = HIDDEN[case]
    assert seen is None or f"T.axis.reduce({seen}, " in str(sch.func)
    compiled = schedule(func, CPU)
    assert difference(sch.func, compiled) is None
    assert difference(sch.func, run_printed(sch, "attention").func) is None
    low = lowered(compiled, CPU)
    for n in (2, 34) if queries is N else (1,):
        assert_same(func, low, {"n": n, "m": 5})
    whole = default_schedule(func, CPU, {"scores": {"trims": False}})
    assert_same(func, whole.func, {"n": 9, "m": 5})


def test_only_masks_by_place_hide_keys() -> None:
    for extra in ((), ("keys",), ("full", "full")):
        (rule,) = default_rules(attention(16, 8, extra), CPU)
        assert rule.decisions["trims"] is False
        assert list(rule.legal["trims"].values) == [False]
