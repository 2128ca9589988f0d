"""vectorize of a loop that reduces: a partial result a lane, joined behind the reduction."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.run_kernel import build, sizes_of
from tests.generators.prim_func import arrays_for
from tests.transform.tensor.kernels import after, assert_same
from unity.interpreter import run_prim_func
from unity.ir.equality import first_difference
from unity.ir.prim_expr import Load
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import stmt_loads, walk_stmt
from unity.script import parse
from unity.transform.schedule import Schedule, Trace
from unity.transform.tensor import lowering

STEPS = {
    "f32": ("0.5", "c[vi, vj] + a[vi, vk] * b[vj, vk]"),
    "f64": ("1.0", "a[vi, vk] * c[vi, vj]"),
    "i8": ("-100", "T.max(c[vi, vj], a[vi, vk] + b[vj, vk])"),
    "i32": ("100", "T.min(c[vi, vj], a[vi, vk] - b[vj, vk])"),
    "boolean": ("False", "c[vi, vj] or (a[vi, vk] and b[vj, vk])"),
    "i64": ("-1", "c[vi, vj] & (a[vi, vk] + b[vj, vk])"),
}
"""By dtype, where a reduction starts and how it goes on."""


def reduction(dtype: str, k: str = "38") -> PrimFunc:
    init, value = STEPS[dtype]
    return parse(f"""
k = dim("k")
@script.prim_func(attrs={{"num_outputs": 1}})
def main(a: {dtype}[Buffer, 5, {k}], b: {dtype}[Buffer, 3, {k}], c: {dtype}[Buffer, 5, 3]) -> None:
    for i, j, l in T.grid(5, 3, {k}):
        with T.block("r"):
            vi, vj, vk = T.axis.remap("SSR", i, j, l)
            with T.init():
                c[vi, vj] = {init}
            c[vi, vj] = {value}
""").prim_funcs()["main"]


def tiled(func: PrimFunc, lanes: int) -> Schedule:
    """Tiles of rows, every sum of which has its lanes."""
    sch = Schedule(func)
    i, j, k = sch.get_loops("r")
    tile, row = sch.split(i, [None, 2])
    step, lane = sch.split(k, [None, lanes])
    sch.reorder(tile, j, step, row, lane)
    sch.vectorize(lane)
    return sch


def test_every_operation() -> None:
    """Tails of rows and of steps, and lanes that are no power of two."""
    cases = {f"{dtype}_{n}": (dtype, n) for dtype in STEPS for n in (8, 6)}
    before = {name: reduction(dtype, "k") for name, (dtype, _) in cases.items()}
    made = {name: tiled(before[name], n).func for name, (_, n) in cases.items()}
    kernels = build({name: after(func, *lowering()) for name, func in made.items()})
    for k in (0, 5, 38):
        for name, func in before.items():
            sizes = {"k": k}
            assert_same(func, made[name], sizes)
            inputs = arrays_for(func, np.random.default_rng(k), sizes_of(sizes))
            (want,) = run_prim_func(func, inputs, sizes_of(sizes))
            out = np.zeros_like(want)
            assert kernels[name]([*inputs, out], sizes) == 0
            np.testing.assert_allclose(
                out.astype(np.float64), want.astype(np.float64), 1e-4, 1e-4, err_msg=f"{name}, {k}"
            )


def test_lanes_are_vectors_from_end_to_end() -> None:
    """No loop over lanes is left, of the steps or of the join."""
    func = after(tiled(reduction("f32"), 8).func, *lowering())
    loops = [s for s in walk_stmt(func.body) if isinstance(s, For)]
    assert not [s for s in loops if s.kind == "vectorized" or "k_1" in s.var.name]
    lanes = {e.dtype.lanes for s in walk_stmt(func.body) for e in stmt_loads(s)}
    assert lanes >= {8, 4, 2}


def test_the_join_of_partial_results_is_lanes_too() -> None:
    """rfactor by hand: the block that joins has no other steps, so only its loop changes."""
    func = reduction("f32", "32")
    sch = Schedule(func)
    *_, k = sch.get_loops("r")
    _, lane = sch.split(k, [None, 8])
    partial = sch.rfactor(lane, 2)
    sch.compute_at(partial, sch.get_loops("r")[1])
    init = sch.decompose_reduction("r", sch.get_loops("r")[2])
    sch.vectorize(sch.get_loops("r")[-1])
    assert [b.name for b in sch.get_blocks()] == [partial.name, init.name, "r"]
    assert_same(func, sch.func, {})
    joins = after(sch.func, *lowering())
    halves = [e for s in walk_stmt(joins.body) for e in stmt_loads(s) if e.dtype.lanes == 4]
    assert all(isinstance(e, Load) for e in halves)
    assert halves


def test_several_vectors_of_partial_results() -> None:
    """rfactor in each iteration of a loop: what is local there is joined there."""
    func = reduction("f32")
    sch = Schedule(func)
    i, j, k = sch.get_loops("r")
    step, chain, lane = sch.split(k, [None, 2, 4])
    sch.vectorize(lane)
    partial = sch.rfactor(chain, 2, j)
    assert sch.get_loops(partial)[:5] == (i, j, step, chain, lane)
    again = Schedule(func).replay(Trace.from_json(sch.trace.to_json()))
    assert first_difference(again.func, sch.func) is None
    assert_same(func, sch.func, {})
    assert_same(func, after(sch.func, *lowering()), {})


@pytest.mark.parametrize("lanes", [4, 8])
def test_other_blocks_may_stand_in_the_reduction(lanes: int) -> None:
    """A producer computed step by step stays where it is."""
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 4, 32], c: f32[Buffer, 4]) -> None:
    t = T.alloc((4, 32), "float32")
    for i, k in T.grid(4, 32):
        with T.block("double"):
            vi, vk = T.axis.remap("SS", i, k)
            t[vi, vk] = a[vi, vk] * 2.0
    for i, k in T.grid(4, 32):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += t[vi, vk]
""").prim_funcs()["main"]
    sch = Schedule(func)
    _, k = sch.get_loops("sum")
    step, lane = sch.split(k, [None, lanes])
    sch.compute_at("double", step)
    sch.vectorize(lane)
    assert_same(func, sch.func, {})
    assert_same(func, after(sch.func, *lowering()), {})
