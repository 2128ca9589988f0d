"""Each tensor pass keeps what a kernel computes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transform.tensor.kernels import KERNELS, Kernel, after, assert_same
from tests.transform.tensor.mangle import mangled
from unity.ir.stmt import Block, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.transform.tensor import (
    FlattenBuffers,
    LowerBlocks,
    SimplifyTir,
    lowering,
)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_each_step_keeps_the_values(kernel: Kernel) -> None:
    before = kernel.make()
    steps: list[PrimFunc] = [before]
    for step in (LowerBlocks(), SimplifyTir(), FlattenBuffers(), SimplifyTir()):
        steps.append(after(steps[-1], step))
    for sizes in kernel.sizes:
        for lowered in steps[1:]:
            assert_same(before, lowered, sizes)
    assert not any(isinstance(s, Block) for s in walk_stmt(steps[-1].body))


@settings(max_examples=40)
@given(st.sampled_from([k for k in KERNELS if "conv" not in k.name]), st.randoms())
def test_loops_of_any_kind_lower_to_the_same_values(kernel: Kernel, random: Random) -> None:
    before = kernel.make()
    changed = mangled(before, random.randrange)
    sizes = random.choice(list(kernel.sizes))
    assert_same(before, changed, sizes)
    lowered = after(changed, *lowering())
    assert_same(before, lowered, sizes)
    loops = [s for s in walk_stmt(lowered.body) if isinstance(s, For)]
    assert {s.kind for s in loops} <= {"serial", "parallel"}
    inside = [x for s in loops if s.kind == "parallel" for x in walk_stmt(s.body)]
    assert not any(isinstance(x, For) and x.kind == "parallel" for x in inside)
