"""Decisions of the default rules: what is legal keeps the values, the rest is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import pytest

from tests.transform.rules.attention.test_blocks import attention
from tests.transform.rules.contraction.test_grouped_panels import LANES, TILES
from tests.transform.tensor.kernels import KERNELS, assert_same
from unity.errors import UnityError
from unity.ir.dims import Dim, dim
from unity.ir.dtype import BFLOAT16, FLOAT32
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.passes import Context
from unity.transform.rules.default import AppliedRule, Decisions
from unity.transform.schedule import Schedule, ScheduleDefault, default_rules, default_schedule

from ...rotation import examples
from .kernels import unscheduled

TARGET = Target("cpu", "x86_64-unknown-linux-gnu", "generic", ("avx2",), 128, 16, threads=2)
"""Four lanes keep the interpreter's work small."""
N, H, W = dim("n"), dim("h"), dim("w")


@dataclass(frozen=True, slots=True)
class Family:
    """A kernel whose first rule is one, and sizes to run it at."""

    rule: str
    make: Callable[[], PrimFunc]
    sizes: dict[str, int]
    target: Target = TARGET


def op(name: str, *shapes: tuple[Dim, ...], **attrs: int | bool | tuple[int, ...]) -> PrimFunc:
    """The unscheduled kernel of an operator."""
    return unscheduled(name, shapes, attrs)[0]


def narrow(name: str, *shapes: tuple[Dim, ...], **attrs: int) -> PrimFunc:
    """The same of bfloat16 numbers, summed in float32."""
    return unscheduled(name, shapes, {**attrs, "out_dtype": FLOAT32}, BFLOAT16)[0]


def named(name: str) -> PrimFunc:
    """One of the kernels made with te."""
    return next(k for k in KERNELS if k.name == name).make()


FAMILIES = [
    Family("panels", partial(op, "matmul_packed", (13, 24), (3, 24, 8), columns=21), {}),
    Family("panels", partial(op, "matmul_packed", (N, 12), (2, 12, 8), columns=16), {"n": 11}),
    Family("packed", partial(op, "matmul_packed", (12, 24), (3, 24, 8), columns=21), {}),
    Family("packed", partial(op, "matmul_packed", (2, 1, 24), (2, 2, 24, 8), columns=16), {}),
    Family(
        "blocked_unpadded",
        partial(op, "nn.conv2d_blocked", (1, 2, 5, 9, 4), (3, 2, 3, 3, 4, 4), padding=1),
        {},
    ),
    Family(
        "blocked",
        partial(op, "nn.conv2d_blocked", (1, 2, 6, 6, 4), (4, 2, 1, 1, 4, 4)),
        {},
    ),
    Family(
        "blocked_unpadded",
        partial(op, "nn.conv2d_blocked", (1, 1, H, W, 4), (2, 1, 3, 3, 4, 4), padding=1),
        {"h": 4, "w": 9},
    ),
    Family(
        "winograd",
        partial(op, "nn.conv2d_winograd", (1, 2, 9, 6, 4), (6, 6, 4, 2, 4, 4), tile=4, padding=1),
        {},
    ),
    Family(
        "winograd",
        partial(op, "nn.conv2d_winograd", (1, 1, H, W, 4), (4, 4, 2, 1, 4, 4), tile=2),
        {"h": 6, "w": 9},
    ),
    Family("chain_blocks", partial(attention, 9, 7), {}),
    Family("chain_blocks", partial(attention, N, 8), {"n": 17}),
    Family("crosswise", partial(named, "transpose"), {"n": 19, "m": 5}),
    Family("padded", partial(named, "conv"), {"n": 1}),
    Family(
        "matrix_tiles",
        partial(narrow, "matmul_interleaved", (33, 32), (1, 16, 32, 2), columns=20),
        {},
        TILES,
    ),
    Family(
        "lane_dots",
        partial(narrow, "matmul_interleaved", (9, 32), (2, 16, 16, 2), columns=20),
        {},
        LANES,
    ),
    Family(
        "interleaved",
        partial(narrow, "nn.conv2d_interleaved", (1, 1, 2, 3, 32), (1, 1, 1, 1, 16, 32, 2)),
        {},
        LANES,
    ),
    Family("rows", partial(named, "softmax"), {"n": 3, "m": 37}),
    Family("split_reduction", partial(named, "whole_sum"), {"n": 5, "m": 37}),
]
IDS = [f"{f.rule}-{k}" for k, f in enumerate(FAMILIES)]


def drawn(rules: Sequence[AppliedRule], random: Random) -> Decisions:
    """Another value for one decision of each rule."""
    changes: dict[str, dict[str, int]] = {}
    for rule in rules:
        open_ones = {k: v for k, v in rule.legal.items() if len(v.values) > 1}
        if not open_ones:
            continue
        name = random.choice(sorted(open_ones))
        values = open_ones[name].values
        few = (
            values
            if len(values) < 1000
            else [values[(1 << k) - 1] for k in range(len(values).bit_length())]
        )
        changes[rule.blocks[0]] = {name: random.choice(few)}
    return changes


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
    with pytest.raises(UnityError, match="rows=99 is not legal for the rule 'panels'") as caught:
        default_schedule(MATMUL, TARGET, {block: {"rows": 99}})
    assert "registers" in caught.value.message
    with pytest.raises(UnityError, match="has no decision 'row'"):
        default_schedule(MATMUL, TARGET, {block: {"row": 2}})
    with pytest.raises(UnityError, match="no rule takes a block 'matmull'"):
        default_schedule(MATMUL, TARGET, {"matmull": {"rows": 2}})
    with pytest.raises(UnityError, match="ahead=2 is not legal"):
        default_schedule(MATMUL, TARGET, {block: {"ahead": 2}})


def test_a_run_may_have_fewer_steps_than_a_sum_has_copies() -> None:
    changes = {"matmul": {"rows": 1, "last_rows": 1, "runs": 8}}
    assert_same(MATMUL, default_schedule(MATMUL, TARGET, changes).func, {})


def test_steps_in_a_row_divide_those_of_a_run() -> None:
    func = FAMILIES[2].make()
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
        return {"rows": 2} if rule.rule == "panels" else {}

    module = IRModule({"main": MATMUL})
    func = ScheduleDefault(narrow)(module, Context(TARGET)).prim_funcs()["main"]
    (rule,) = default_rules(MATMUL, TARGET)
    expected = default_schedule(MATMUL, TARGET, {rule.blocks[0]: {"rows": 2}}).func
    assert first_difference(replace(func, attrs=expected.attrs), expected) is None
    assert_same(MATMUL, func, {})


def test_blocks_that_a_rule_does_not_take_are_refused() -> None:
    (rule,) = default_rules(MATMUL, TARGET)
    sch = Schedule(MATMUL, TARGET)
    with pytest.raises(UnityError, match="'winograd' does not take"):
        sch.lay_out("winograd", rule.blocks, {})
    with pytest.raises(UnityError, match="no rule 'panel'"):
        sch.lay_out("panel", rule.blocks, {})
    with pytest.raises(UnityError, match="these are no nests"):
        sch.lay_out("panels", ["other"], {})
    with pytest.raises(UnityError, match="for no target"):
        Schedule(MATMUL).lay_out("panels", rule.blocks, {})


def test_blocks_are_found_behind_those_that_are_laid_out() -> None:
    """The first stage has no blocks then, and the second is where it was."""
    for func in (op("nn.group_norm", (2, 4, 5), (4,), (4,), num_groups=2), op("exp", (0, 3))):
        rules = default_rules(func, TARGET)
        sch = Schedule(func, TARGET)
        for rule in rules:
            sch.lay_out(rule.rule, rule.blocks, rule.decisions)
        assert_same(func, sch.func, {})
