"""One table of dot products: what every user of it relies on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.codegen.llvm.levels import ARM, LEVELS
from unity.codegen.llvm.abilities import abilities
from unity.ir.dtype import BFLOAT16, FLOAT32
from unity.machine.dot_units import DOT_UNITS, DotUnit, dot_unit, group_of, has_dot
from unity.machine.target import Target
from unity.transform.graph.layout.interleave import interleave_for
from unity.transform.schedule.dots import DOTS


@pytest.mark.parametrize("unit", DOT_UNITS, ids=lambda u: u.name)
def test_a_unit_is_found_by_what_it_multiplies(unit: DotUnit) -> None:
    assert dot_unit(unit.form, unit.left, unit.right, unit.out) is unit
    assert group_of(unit.left) == group_of(unit.right), "operands come in groups of one length"
    assert unit.out.bytes == 4, "a group becomes a sum of as many bytes"
    assert any(name.startswith(unit.name) for name in DOTS), "schedules can name it"


def test_targets_have_the_units_that_their_features_say() -> None:
    have = {name: {u.name for u in DOT_UNITS if u.on(t)} for name, t in {**LEVELS, **ARM}.items()}
    lanes, pairs = {"avx512bf16", "vnni_u8s8"}, {"avx2_s16s16"}
    assert have.pop("amx") == {u.name for u in DOT_UNITS} - pairs
    assert have.pop("avx512 with dots") == lanes
    assert have.pop("avx2") == pairs
    assert not any(have.values())


def test_narrow_registers_need_a_feature_of_their_own() -> None:
    target = replace(LEVELS["avx512 with dots"], vector_bits=256)
    without = replace(target, features=tuple(f for f in target.features if f != "avx512vl"))
    operands = (BFLOAT16, BFLOAT16, FLOAT32)
    assert has_dot(target, "lanes", *operands)
    assert not has_dot(without, "lanes", *operands)
    assert interleave_for(*operands, target) is None, "a block of channels fills 512 bits"


@pytest.mark.parametrize("target", LEVELS.values(), ids=LEVELS)
def test_code_may_use_what_schedules_chose(target: Target) -> None:
    able = abilities(target).dots
    for unit in DOT_UNITS:
        assert not unit.on(target) or able.issuperset(unit.needs(target.vector_bits // 32))
