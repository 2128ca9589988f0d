"""Whatever steps are legal on hostile programs keep what these do; every other one is refused."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import build
from tests.transform.schedule.hostile import HOSTILE, differ
from tests.transform.schedule.hostile.every_step import Step, next_steps, take, told
from tests.transform.schedule.hostile.program import contents, filled, told_apart
from tests.transform.schedule.steps import backwards
from tests.transform.tensor.kernels import after
from unity.errors import UnityError
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.well_formed.verify import verify
from unity.transform.schedule import Schedule, Trace
from unity.transform.tensor import lowering


def wrong(name: str, before: PrimFunc, after: PrimFunc) -> str | None:
    """What a schedule broke, iterations that may run at once in either order."""
    verify(IRModule({"main": after}))
    return differ(HOSTILE[name], before, after) or differ(HOSTILE[name], before, backwards(after))


@pytest.mark.rotated(4)
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


@pytest.mark.rotated(3)
@pytest.mark.parametrize("seed", range(120))
def test_several_steps(seed: int) -> None:
    random = Random(seed)
    name = random.choice(sorted(HOSTILE))
    sch, steps = several(name, random, 4)
    broken = wrong(name, HOSTILE[name].func(), sch.func)
    assert broken is None, f"{name}: {told(steps)}\n{sch.func}\n{broken}"
    again = Schedule(HOSTILE[name].func()).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None


@pytest.mark.parametrize("name", HOSTILE)
def test_lowered_as_they_are(name: str) -> None:
    before = HOSTILE[name].func()
    assert differ(HOSTILE[name], before, after(before, *lowering())) is None


@pytest.mark.rotated(1)
def test_compiled() -> None:
    """Machine code of scheduled programs does what the interpreter says of the programs."""
    random = Random(7)
    cases = {f"k{k}": random.choice(sorted(HOSTILE)) for k in range(40)}
    made = {k: several(name, random, 3)[0].func for k, name in cases.items()}
    kernels = build({k: after(func, *lowering()) for k, func in made.items()})
    for k, name in cases.items():
        before = HOSTILE[name].func()
        for sizes in HOSTILE[name].sizes:
            wanted, got = contents(before, before, sizes), filled(before, sizes)
            assert kernels[k](got, sizes) == 0
            if any(np.isnan(a.astype(float)).any() for a in wanted):
                continue  # memory that was never written is poisoned in the interpreter only
            assert told_apart(before, wanted, got) is None, f"{name} at {sizes}\n{made[k]}"
