"""The default schedule keeps what a kernel computes, at every size and for every target."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from textwrap import dedent

import pytest

from tests.transform.schedule.programs import random_kernel, random_sizes
from tests.transform.tensor.kernels import CPU, KERNELS, Kernel, assert_same
from unity import te
from unity.ir.dims import Dim, dim
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, Block, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.script import parse
from unity.transform.blocks.nest import opened
from unity.transform.passes import Context
from unity.transform.rules.cover import cover
from unity.transform.rules.stages import parts_of
from unity.transform.schedule import Schedule, ScheduleDefault, Trace, default_schedule
from unity.transform.tactics import packing
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


@pytest.mark.rotated(6)
@pytest.mark.parametrize("target", [CPU, WIDE, NARROW], ids=["avx2", "avx512", "sse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_values_stay(kernel: Kernel, target: Target) -> None:
    before = kernel.make()
    scheduled, low = lowered(before, target)
    assert not any(isinstance(s, Block) for s in walk_stmt(low.body))
    for sizes in kernel.sizes:
        assert_same(before, scheduled, sizes)
        assert_same(before, low, sizes)


@pytest.mark.rotated(8)
@pytest.mark.parametrize("seed", range(64))
def test_random_kernels_keep_their_values(seed: int) -> None:
    random = Random(seed)
    target, before = random.choice([CPU, WIDE, NARROW]), random_kernel(random)
    scheduled, low = lowered(before, target)
    sizes = random_sizes(before, random)
    assert_same(before, scheduled, sizes)
    assert_same(before, low, sizes)


def packed_product(rows: Dim) -> PrimFunc:
    """A product whose right side is packed, with columns that fill no whole tile."""
    a, b = te.placeholder((rows, 7), "float32", "a"), te.placeholder((7, 83), "float32", "b")
    bias = te.placeholder((83,), "float32", "bias")
    k = te.reduce_axis(7, "k")
    y = te.compute((rows, 83), lambda i, j: te.sum(a[i, k] * b[k, j], [k]), "y")
    z = te.compute((rows, 83), lambda i, j: te.max_(y[i, j] + bias[j], 0.0), "z")
    return te.create_prim_func([a, b, bias, z])


@pytest.mark.long("interprets 83 columns in every tail of tiles")
@pytest.mark.rotated(8)
@pytest.mark.parametrize("target", [CPU, WIDE], ids=["avx2", "avx512"])
@pytest.mark.parametrize("rows", [14, dim("n")], ids=str)
def test_packed_columns(rows: Dim, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ROWS", 3), ("DEPTH", 2), ("STRIDE", 8)):
        monkeypatch.setattr(packing, name, value)
    before = packed_product(rows)
    scheduled, low = lowered(before, target)
    panels = [s.buffer for s in walk_stmt(scheduled.body) if isinstance(s, Allocate)]
    assert {"panel", "b_reindex"} & {b.name for b in panels}
    for sizes in [{}] if isinstance(rows, int) else [{"n": n} for n in (0, 3, 11)]:
        assert_same(before, scheduled, sizes)
        assert_same(before, low, sizes)


def several() -> PrimFunc:
    """Stages of three rules: products of a row, a sum down and across, a shift."""
    a, b = te.placeholder((8, 6), "float32", "a"), te.placeholder((6, 37), "float32", "b")
    x = te.placeholder((3, 4, 2), "float16", "x")
    k, p, q = te.reduce_axis(6, "k"), te.reduce_axis(3, "p"), te.reduce_axis(2, "q")
    y = te.compute((8, 37), lambda i, j: te.sum(a[i, k] * b[k, j], [k]), "y")
    z = te.compute((4, 1), lambda i, _: te.sum(te.cast(x[p, i, q], "float32"), [p, q]), "z")
    w = te.compute((8, 37), lambda i, j: y[i, j] + 1.0, "w")
    return te.create_prim_func([a, b, x, y, z, w])


@pytest.mark.rotated(2)
@pytest.mark.parametrize("kernel", [*KERNELS, Kernel("several", several)], ids=lambda k: k.name)
def test_the_default_schedule_is_a_trace(kernel: Kernel) -> None:
    before = kernel.make()
    sch = default_schedule(before, WIDE)
    again = Schedule(before, WIDE).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    for sizes in kernel.sizes:
        assert_same(before, sch.func, sizes)


def test_several_rules_take_steps_on_one_schedule() -> None:
    taken = cover(parts_of(opened(several().body)[1], set()), set(), WIDE, {})
    assert [t.rule for t in taken] == ["contraction", "plain", "elementwise"]


def test_two_unknown_lengths_behind_each_other_have_lanes_and_threads() -> None:
    source = """
    p = dim("p")
    t = dim("t")

    @script.prim_func
    def main(
        a: f32[Buffer, 12, p, 64], b: f32[Buffer, 12, t, 64], c: f32[Buffer, 12, p + t, 64]
    ) -> None:
        for i, j, k in T.grid(12, p + t, 64):
            with T.block("concat"):
                vi, vj, vk = T.axis.remap("SSS", i, j, k)
                c[vi, vj, vk] = T.select(vj < p, a[vi, vj, vk], b[vi, vj - p, vk])
    """
    before = parse(dedent(source)).prim_funcs()["main"]
    scheduled, low = lowered(before, WIDE)
    kinds = {s.kind for s in walk_stmt(scheduled.body) if isinstance(s, For)}
    assert {"parallel", "vectorized"} <= kinds
    for sizes in ({"p": 3, "t": 1}, {"p": 0, "t": 2}, {"p": 5, "t": 0}, {"p": 0, "t": 0}):
        assert_same(before, scheduled, sizes)
        assert_same(before, low, sizes)
