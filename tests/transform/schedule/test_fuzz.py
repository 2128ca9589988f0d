"""Random sequences of schedule steps keep what random prim funcs compute."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import build, sizes_of
from tests.generators.prim_func import Options, arrays_for, prim_func
from tests.transform.schedule.programs import random_chain, random_kernel
from tests.transform.schedule.steps import (
    BLOCKS,
    KINDS,
    LOOPS,
    REDUCTIONS,
    SAMPLES,
    Step,
    backwards,
    scheduled,
)
from tests.transform.tensor.kernels import after, assert_same
from unity.interpreter import run_prim_func
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.well_formed.verify import verify
from unity.transform.schedule import IndexMap, Schedule, Trace
from unity.transform.tensor import lowering

GROUPS: dict[str, Sequence[Step]] = {
    "loops": (*LOOPS, *KINDS),
    "blocks": (*BLOCKS, *KINDS),
    "reductions": (*REDUCTIONS, *KINDS),
    "samples": SAMPLES,
    "every": (*LOOPS, *BLOCKS, *REDUCTIONS, *SAMPLES, *KINDS),
}
PLAIN = Options(intrinsics=False, depth=2)


def generated(random: Random) -> tuple[PrimFunc, dict[str, int]]:
    """A prim func and sizes to run it at."""
    if random.random() < 0.5:
        return prim_func(random, random, PLAIN), {
            "n": random.randint(0, 5),
            "m": random.randint(0, 4),
        }
    make = random.choice([random_kernel, random_chain])
    return make(random), {"n": random.choice([1, 2, 7]), "m": random.choice([1, 4])}


def hold(seed: int, steps: Sequence[Step]) -> tuple[PrimFunc, PrimFunc, dict[str, int]]:
    """Schedule at random; interpret both."""
    random = Random(seed)
    before, sizes = generated(random)
    sch, _ = scheduled(before, random, steps)
    verify(IRModule({"main": sch.func}))
    assert_same(before, sch.func, sizes)
    assert_same(before, backwards(sch.func), sizes)
    again = Schedule(before).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    assert first_difference(run_as_python(sch.trace, before), sch.func) is None
    return before, sch.func, sizes


def run_as_python(trace: Trace, func: PrimFunc) -> PrimFunc:
    """The prim func after the program that a trace prints."""
    names: dict[str, Any] = {"Schedule": Schedule, "IndexMap": IndexMap}
    exec(trace.to_python(), names)
    sch = Schedule(func)
    names["steps"](sch)
    return sch.func


@pytest.mark.rotated(5)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("seed", range(60))
def test_interpreted(seed: int, group: str) -> None:
    hold(seed, GROUPS[group])


def compiled(steps: Sequence[Step], seeds: range) -> None:
    """Lower and compile scheduled prim funcs together; compare with the interpreter."""
    lowered: dict[str, PrimFunc] = {}
    cases: dict[str, tuple[PrimFunc, dict[str, int], int]] = {}
    for seed in seeds:
        random = Random(seed)
        before = prim_func(random, random, PLAIN)
        sch, _ = scheduled(before, random, steps)
        sizes = {"n": random.randint(0, 5), "m": random.randint(0, 4)}
        lowered[f"k{seed}"] = after(sch.func, *lowering())
        cases[f"k{seed}"] = before, sizes, seed
    kernels = build(lowered)
    for name, (before, sizes, seed) in cases.items():
        inputs = arrays_for(before, np.random.default_rng(seed), sizes_of(sizes))
        (want,) = run_prim_func(before, inputs, sizes_of(sizes))
        out = np.zeros_like(want)
        assert kernels[name]([*(np.ascontiguousarray(x) for x in inputs), out], sizes) == 0
        np.testing.assert_allclose(
            out.astype(np.float64), want.astype(np.float64), 1e-4, 1e-4, err_msg=name
        )


@pytest.mark.rotated(3)
@pytest.mark.parametrize("first", range(5010, 5040, 10))
@pytest.mark.parametrize("group", GROUPS)
def test_compiled(group: str, first: int) -> None:
    compiled(GROUPS[group], range(first, first + 10))
