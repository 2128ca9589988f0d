"""Rules take their steps unchecked on stages that are sound, and on no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.transform.tensor.kernels import CPU
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.stmt import PrimFunc, Store
from unity.script import parse
from unity.transform.blocks.nest import Nest, nest_of, opened
from unity.transform.blocks.sound import is_sound
from unity.transform.blocks.stage import stage_of
from unity.transform.blocks.trust import is_trusted, trusted
from unity.transform.rules.contraction.packed import PACKED
from unity.transform.schedule import Schedule

PRODUCT = """
@script.prim_func
def main(a: f32[Buffer, 12, 32], b: f32[Buffer, 4, 32, 16], c: f32[Buffer, 12, 64]) -> None:
    for i, j, k in T.grid(12, 64, 32):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vj // 16, vk, vj % 16]
"""


def product() -> Nest:
    """A product whose weights lie in panels."""
    (stage,) = opened(parse(PRODUCT).prim_funcs()["main"].body)[1]
    nest = nest_of(stage)
    assert nest is not None
    return nest


def test_what_is_trusted_gives_what_is_checked() -> None:
    roles = PACKED.match(product(), CPU)
    assert roles is not None
    assert PACKED.steps is not None
    decisions = PACKED.decide(roles, CPU)
    both = [
        PrimFunc((), f(roles, decisions, CPU)) for f in (PACKED.steps.stmt, PACKED.steps.checked)
    ]
    assert first_difference(*both) is None


def test_sums_of_what_their_result_is_stored_to_are_not_sound() -> None:
    nest = product()
    read = next(x for x in nest.loads() if x.buffer.name == "a")
    store = nest.finish
    assert isinstance(store, Store)
    over = replace(store, buffer=read.buffer, indices=(nest.axes[0].var, nest.axes[1].var))
    assert is_sound(stage_of(nest).func)
    assert not is_sound(stage_of(replace(nest, finish=over)).func)


def test_points_that_meet_in_one_place_are_not_sound() -> None:
    nest = product()
    store = nest.finish
    assert isinstance(store, Store)
    meeting = replace(store, indices=(nest.axes[0].var, nest.axes[0].var))
    assert not is_sound(stage_of(replace(nest, finish=meeting)).func)


def test_steps_are_checked_again_behind_a_rule() -> None:
    sch = Schedule(parse(PRODUCT).prim_funcs()["main"])
    with pytest.raises(ZeroDivisionError), trusted(True):
        raise ZeroDivisionError
    assert not is_trusted()
    with pytest.raises(UnityError, match="reduce axis"):
        sch.parallel(sch.get_loops("product")[2])
