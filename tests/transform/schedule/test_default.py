"""The default schedule keeps what a kernel computes, at every size and for every target."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transform.schedule.programs import SIZES, random_kernel
from tests.transform.tensor.kernels import CPU, KERNELS, Kernel, assert_same
from unity.ir.module import IRModule
from unity.ir.stmt import Block, PrimFunc
from unity.ir.target import Target
from unity.ir.verify import verify
from unity.ir.visit import walk_stmt
from unity.transform.passes import Context
from unity.transform.schedule import ScheduleDefault
from unity.transform.tensor import lowering

WIDE = replace(CPU, vector_bits=512, vector_registers=32, threads=2)
NARROW = replace(CPU, vector_bits=128, threads=1)


def lowered(func: PrimFunc, target: Target) -> tuple[PrimFunc, PrimFunc]:
    """The kernel scheduled, and then lowered whole."""
    module, ctx = IRModule({"main": func}), Context(target)
    module = ScheduleDefault()(module, ctx)
    verify(module)
    scheduled = module.prim_funcs()["main"]
    for step in lowering():
        module = step(module, ctx)
        verify(module)
    return scheduled, module.prim_funcs()["main"]


@pytest.mark.parametrize("target", [CPU, WIDE, NARROW], ids=["avx2", "avx512", "sse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_values_stay(kernel: Kernel, target: Target) -> None:
    before = kernel.make()
    scheduled, low = lowered(before, target)
    assert not any(isinstance(s, Block) for s in walk_stmt(low.body))
    for sizes in kernel.sizes:
        assert_same(before, scheduled, sizes)
        assert_same(before, low, sizes)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([CPU, WIDE, NARROW]))
def test_random_kernels_keep_their_values(seed: int, target: Target) -> None:
    random = Random(seed)
    before = random_kernel(random)
    scheduled, low = lowered(before, target)
    sizes = {name: random.choice(values) for name, values in SIZES.items()}
    assert_same(before, scheduled, sizes)
    assert_same(before, low, sizes)
