"""Decisions of the default rules: what is legal keeps the values, the rest is refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.transform.passes import Context
from unity.transform.rules.decisions import AppliedRule, Decisions
from unity.transform.schedule import Schedule, ScheduleDefault, default_rules, default_schedule

from ...rotation import examples
from ..schedule.printed import difference
from .families import FAMILIES, TARGET, Family, drawn

IDS = [f"{f.rule}-{k}" for k, f in enumerate(FAMILIES)]


@pytest.mark.rotated(1)
@pytest.mark.parametrize("family", FAMILIES, ids=IDS)
def test_legal_draws_keep_what_is_computed(family: Family) -> None:
    func, random = family.make(), Random(0)
    rules = default_rules(func, family.target)
    assert rules[0].rule == family.rule
    for rule in rules:
        assert all(rule.decisions[name] in legal.values for name, legal in rule.legal.items())
    for _ in range(examples(2)):
        changes = drawn(rules, random)
        sch = default_schedule(func, family.target, changes)
        assert_same(func, sch.func, family.sizes)


@pytest.mark.rotated(1)
@pytest.mark.parametrize("family", FAMILIES, ids=IDS)
def test_each_decision_is_told_and_used(family: Family) -> None:
    """A changed decision is one of the rule's from then on, and recorded in the trace."""
    func = family.make()
    before = default_rules(func, family.target)
    changes = drawn(before, Random(1))
    after = default_rules(func, family.target, changes)
    for was, now in zip(before, after, strict=True):
        assert now.decisions == {**was.decisions, **changes.get(was.blocks[0], {})}
    sch = default_schedule(func, family.target, changes)
    again = Schedule(func, family.target).replay(sch.trace)
    assert first_difference(again.func, sch.func) is None


MATMUL = FAMILIES[0].make()


def test_what_is_not_legal_is_refused_with_the_fact() -> None:
    (rule,) = default_rules(MATMUL, TARGET)
    (block, *_) = rule.blocks
    with pytest.raises(UnityError, match="rows=99 is not legal for the rule 'packed'") as caught:
        default_schedule(MATMUL, TARGET, {block: {"rows": 99}})
    assert "registers" in caught.value.message
    with pytest.raises(UnityError, match="has no decision 'row'"):
        default_schedule(MATMUL, TARGET, {block: {"row": 2}})
    with pytest.raises(UnityError, match="no rule takes a block 'matmull'"):
        default_schedule(MATMUL, TARGET, {"matmull": {"rows": 2}})
    with pytest.raises(UnityError, match="'ahead' of the rule 'packed' is a yes or no, not 2"):
        default_schedule(MATMUL, TARGET, {block: {"ahead": 2}})
    with pytest.raises(UnityError, match="'rows' of the rule 'packed' is a number, not True"):
        default_rules(MATMUL, TARGET, {block: {"rows": True}})


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"rows": 2}, "decisions for the block 'rows' are by name, not 2"),
        ([("matmul", {"rows": 2})], "expected {block: {decision: value}}"),
        ({"matmul": {"rows": "2"}}, "'rows' for the block 'matmul' is a number"),
        ({("matmul",): {"rows": 2}}, "by the name of a block"),
    ],
)
def test_decisions_of_another_shape_are_refused(decisions: Decisions, message: str) -> None:
    for ask in (default_rules, default_schedule):
        with pytest.raises(UnityError, match=message) as caught:
            ask(MATMUL, TARGET, decisions)
        told = f"{caught.value.message} {caught.value.hint}"
        assert "{block: {decision: value}}" in told


def test_a_run_may_have_fewer_steps_than_a_sum_has_copies() -> None:
    changes = {"matmul": {"rows": 1, "steps": 3, "runs": 8}}
    assert_same(MATMUL, default_schedule(MATMUL, TARGET, changes).func, {})


def test_steps_in_a_row_divide_those_of_a_run() -> None:
    func = MATMUL
    (rule,) = default_rules(func, TARGET)
    assert rule.rule == "packed"
    assert list(rule.legal["runs"].values) == [1, 2, 3, 6]  # of 24 steps, 4 in a row
    for changes in ({"runs": 6}, {"runs": 3, "steps": 8}):
        assert_same(func, default_schedule(func, TARGET, {"matmul": changes}).func, {})
    with pytest.raises(UnityError, match="steps=4 is not legal for the rule 'packed': of 3 steps"):
        default_schedule(func, TARGET, {"matmul": {"runs": 8}})


def test_a_backend_decides_otherwise() -> None:
    def narrow(rule: AppliedRule, target: Target) -> dict[str, int]:
        assert target == TARGET
        return {"rows": 2} if rule.rule == "packed" else {}

    module = IRModule({"main": MATMUL})
    func = ScheduleDefault(narrow)(module, Context(TARGET)).prim_funcs()["main"]
    (rule,) = default_rules(MATMUL, TARGET)
    expected = default_schedule(MATMUL, TARGET, {rule.blocks[0]: {"rows": 2}}).func
    assert difference(replace(func, attrs=expected.attrs), expected) is None
    assert_same(MATMUL, func, {})
