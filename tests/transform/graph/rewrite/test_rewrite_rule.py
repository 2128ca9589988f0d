"""Users' rewrite rules when they are made: both sides are compared, and what is none is refused."""

from __future__ import annotations

from typing import Any

import pytest

import unity
from tests.transform.graph.rewrite import user_rules
from tests.transform.graph.rewrite.user_rules import FALSE, TRUE
from unity import script
from unity.errors import UnityError
from unity.script import R, Tensor, dim, f32, i32
from unity.transform.graph import Rewrite, RewriteRule

n, m = dim("n"), dim("m")
RULES = {name: RewriteRule(name, a.func, b.func) for name, (a, b) in TRUE.items()}


@pytest.mark.parametrize("name", TRUE)
def test_rules_that_hold(name: str) -> None:
    rule = unity.rewrite_rule(*TRUE[name])
    assert rule.name == TRUE[name][0].name
    assert unity.rewrite_rule(*TRUE[name], seed=1) == rule


def test_a_rule_that_overflows_less_holds() -> None:
    """sqrt(x * x) is infinite for 1e20, which does not speak against abs(x)."""
    sides = (user_rules.root_of_square, user_rules.magnitude)
    for seed in range(5):
        assert unity.rewrite_rule(*sides, seed=seed).name == "root_of_square"
    with pytest.raises(UnityError, match=r"with numbers about 1e\+20, at .*, got inf"):
        unity.rewrite_rule(*reversed(sides))


def test_a_rule_is_printed_as_its_two_functions() -> None:
    shown = str(RULES["silu"])
    assert shown.startswith("silu:\n@script.function\ndef before(x: f32[Tensor, ...])")
    assert "def after(x" in shown
    assert "R.nn.silu(x)" in shown
    assert "Function(" not in shown


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("order", r"difference' changes what is computed, for x: float32\(.*largest difference"),
        ("zero", r"for x: float32\(.*expected nan, got 1"),
        ("clip", r"for x: float32\(.*with numbers about .*, at .* expected -?50, got"),
        ("overflow", r"with numbers about .*, at \[\d, \d\] expected .*, got (nan|0)"),
        ("tiny", r"for x: float32\(\d,\)"),
        ("axis", r"for x: float32\(\d, \d\): at \[\d, \d\] expected"),
        ("rounding", r"for x: int\d\d\(.*\(largest difference 1\)"),
        ("operand", r"for x: float32\(.*y: float32\("),
        ("constant", r"largest difference 0\.0"),
        ("shape", r"(?s)0 of 500 random inputs fit.*what takes its place is float32\(\d,\), not"),
    ],
)
def test_rules_that_do_not_hold_are_refused_with_a_counterexample(name: str, why: str) -> None:
    with pytest.raises(UnityError, match=why) as caught:
        unity.rewrite_rule(*FALSE[name])
    span = caught.value.span
    assert span is not None
    assert span.file == user_rules.__file__
    assert unity.rewrite_rule(*FALSE[name], check=False).name == FALSE[name][0].name


@script.function
def nothing_to_find(x: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return x


@script.function
def one_unused(x: f32[Tensor, ...], y: f32[Tensor, ...]) -> f32[Tensor, ...]:
    return R.exp(x)


@script.function
def large_constant(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return R.add(x, R.const([1.0, 2.0], "float32"))


@script.function
def not_told(x: f32[Tensor, n + m]) -> f32[Tensor, n + m]:
    return R.exp(x)


@script.function
def branches(x: f32[Tensor, 2]) -> f32[Tensor, 2]:
    return R.exp(x) if R.greater(R.sum(x), 0.0) else x


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (nothing_to_find, user_rules.by_silu, "looks for anything at all"),
        (one_unused, one_unused, "does not look for y"),
        (
            user_rules.by_silu,
            user_rules.exp_of_sum,
            r"other parameters before and after: x: .* and",
        ),
        (large_constant, large_constant, "constants of one element only"),
        (not_told, not_told, "has m, n, which nothing that it looks for tells"),
        (branches, branches, "holds If"),
    ],
)
def test_what_is_no_rule(
    before: script.ScriptFunction[..., object],
    after: script.ScriptFunction[..., object],
    why: str,
) -> None:
    with pytest.raises(UnityError, match=why):
        unity.rewrite_rule(before, after, check=False)


def test_what_rules_are_made_of_is_told() -> None:
    wrong: Any = abs
    with pytest.raises(UnityError, match=r"(?s)expected a ScriptFunction, got.*@script.function"):
        unity.rewrite_rule(wrong, wrong)
    sides: Any = TRUE["silu"]
    with pytest.raises(UnityError, match=r"(?s)by_sigmoid is no rule.*unity\.rewrite_rule"):
        Rewrite(sides)
    rule = RULES["silu"]
    assert Rewrite([rule]) == Rewrite((rule,))
    assert hash(Rewrite([rule])) == hash(Rewrite((rule,)))


def test_integers_that_wrap_around_are_tried() -> None:
    @script.function
    def by_differences(
        x: R.any_dtype[Tensor, ...], y: R.any_dtype[Tensor, ...]
    ) -> R.any_dtype[Tensor, ...]:
        return R.less(R.subtract(x, y), R.subtract(y, x))

    @script.function
    def by_themselves(
        x: R.any_dtype[Tensor, ...], y: R.any_dtype[Tensor, ...]
    ) -> R.any_dtype[Tensor, ...]:
        return R.less(x, y)

    @script.function
    def there_and_back(x: i32[Tensor, ...]) -> i32[Tensor, ...]:
        return R.floor_divide(R.multiply(x, 1000000), 1000000)

    @script.function
    def unchanged(x: i32[Tensor, ...]) -> i32[Tensor, ...]:
        return x

    with pytest.raises(UnityError, match=r"changes what is computed, for x: u?int"):
        unity.rewrite_rule(by_differences, by_themselves)
    with pytest.raises(UnityError, match=r"changes what is computed, for x: int32"):
        unity.rewrite_rule(there_and_back, unchanged)
