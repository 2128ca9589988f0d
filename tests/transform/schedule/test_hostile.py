"""Whatever steps are legal on hostile programs keep what these do; every other one is refused."""

from __future__ import annotations

from random import Random

import pytest

from tests.transform.schedule.hostile import HOSTILE, differ
from tests.transform.schedule.hostile.every_step import Step, next_steps, take, told
from tests.transform.schedule.steps import backwards
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.verify import verify
from unity.transform.schedule import Schedule, Trace


def wrong(name: str, before: PrimFunc, after: PrimFunc) -> str | None:
    """What a schedule broke, iterations that may run at once in either order."""
    verify(IRModule({"main": after}))
    return differ(HOSTILE[name], before, after) or differ(HOSTILE[name], before, backwards(after))


@pytest.mark.parametrize("name", HOSTILE)
def test_every_single_step(name: str) -> None:
    sch = Schedule(HOSTILE[name].func())
    before = sch.func
    legal = 0
    for step in next_steps(sch):
        sch.func = before
        try:
            take(sch, step)
        except UnityError:
            continue
        legal += 1
        broken = wrong(name, before, sch.func)
        assert broken is None, f"{told([step])}\n{sch.func}\n{broken}"
    assert legal


def several(name: str, random: Random, count: int) -> tuple[Schedule, list[Step]]:
    """Legal steps at random, each kind as likely as another."""
    sch, steps = Schedule(HOSTILE[name].func()), list[Step]()
    for _ in range(count):
        found = next_steps(sch)
        kinds = sorted({step[0] for step in found})
        for _ in range(20):
            kind = random.choice(kinds)
            step = random.choice([s for s in found if s[0] == kind])
            try:
                take(sch, step)
            except UnityError:
                continue
            steps.append(step)
            break
    return sch, steps


@pytest.mark.parametrize("seed", range(120))
def test_several_steps(seed: int) -> None:
    random = Random(seed)
    name = random.choice(sorted(HOSTILE))
    sch, steps = several(name, random, 4)
    broken = wrong(name, HOSTILE[name].func(), sch.func)
    assert broken is None, f"{name}: {told(steps)}\n{sch.func}\n{broken}"
    again = Schedule(HOSTILE[name].func()).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
