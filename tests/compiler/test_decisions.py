"""Decisions of default schedules, given to `unity.compile` by the names of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unity
from unity import script
from unity.errors import UnityError
from unity.transform.schedule import AppliedRule, ScheduleDefault

MODULE = script.parse("""
@script.function
def main(x: f32[Tensor, 3, 40]):
    return (R.nn.softmax(x), R.exp(x))
""")


def rule_of(executable: unity.Executable, kernel: str) -> AppliedRule:
    (rule,) = executable.rules(kernel)
    return rule


def test_a_changed_decision_is_used_and_told() -> None:
    usual = unity.compile(MODULE)
    changed = unity.compile(MODULE, decisions={"exp": {"lanes": 2}})
    assert rule_of(changed, "exp").decisions == {**rule_of(usual, "exp").decisions, "lanes": 2}
    assert rule_of(changed, "softmax") == rule_of(usual, "softmax")
    assert changed.rules("exp") == usual.rules("exp", {"exp": {"lanes": 2}})
    wrong: Any = {"lanes": 2}
    with pytest.raises(UnityError, match="decisions for the block 'lanes' are by name"):
        usual.rules("exp", wrong)
    assert usual.llvm("exp") != changed.llvm("exp")
    assert usual.llvm("softmax") == changed.llvm("softmax")
    x = np.random.default_rng(0).standard_normal((3, 40), np.float32)
    for was, now in zip(usual(x), changed(x), strict=True):
        np.testing.assert_allclose(now, was, 1e-6)


def test_they_go_before_those_of_a_pipeline() -> None:
    def narrow(rule: AppliedRule, _target: unity.Target) -> dict[str, int]:
        return {"lanes": 4, "grain": 7} if rule.rule == "elementwise" else {}

    passes = unity.pipeline().replace(ScheduleDefault, ScheduleDefault(narrow))
    changed = unity.compile(MODULE, pipeline=passes, decisions={"exp": {"lanes": 2}})
    found = rule_of(changed, "exp").decisions
    assert (found["lanes"], found["grain"]) == (2, 7)


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        ({"exp": {"lanes": 3}}, "lanes=3 is not legal for the rule 'elementwise'"),
        ({"exp": {"lane": 2}}, "has no decision 'lane'"),
        ({"expp": {"lanes": 2}}, "no kernel has a block 'expp'"),
        ({"lanes": 2}, "decisions for the block 'lanes' are by name"),
    ],
)
def test_what_can_not_be_is_refused(decisions: dict[str, dict[str, int]], message: str) -> None:
    with pytest.raises(UnityError, match=message):
        unity.compile(MODULE, decisions=decisions)
