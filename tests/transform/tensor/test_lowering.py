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
from unity.script import parse
from unity.transform.tensor import (
    FlattenBuffers,
    LowerBlocks,
    SimplifyTir,
    UnrollRegisters,
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


def test_inner_loops_that_index_registers_are_written_out_first() -> None:
    """All of them were 96 iterations: the outer one stays, for `total` is no register then."""
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 6, 16], c: f32[Buffer, 6, 16]) -> None:
    total = T.alloc((6,), "float32", scope="local")
    for i in range(6):
        with T.block("first"):
            vi = T.axis.spatial(6, i)
            total[vi] = a[vi, 0]
    for i in range(6):
        t = T.alloc((16,), "float32", scope="local")
        for j in range(16):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", i, j)
                t[vj] = a[vi, vj] + total[vi]
        for j in range(16):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = t[vj]
""").prim_funcs()["main"]
    done = after(func, UnrollRegisters())
    kinds = [s.kind for s in walk_stmt(done.body) if isinstance(s, For)]
    assert kinds == ["unrolled", "serial", "unrolled", "unrolled"]
    assert_same(func, done, {})
