"""cache_write at a loop: sums that wait in memory between runs of steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.codegen.llvm.run_kernel import build, sizes_of
from tests.generators.prim_func import arrays_for
from tests.transform.tensor.kernels import after, assert_same
from unity.interpreter import run_prim_func
from unity.ir.equality import first_difference
from unity.ir.stmt import Block, PrimFunc, Store
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.schedule import BlockRef, Schedule, Trace
from unity.transform.tensor import lowering

PRODUCT = """
n = dim("n")
@script.prim_func(attrs={"num_outputs": 1})
def main(a: f32[Buffer, n, 32], b: f32[Buffer, 32, 8], c: f32[Buffer, n, 8]) -> None:
    for i, j, k in T.grid(n, 8, 32):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]
"""


def product() -> PrimFunc:
    return parse(PRODUCT).prim_funcs()["main"]


def runs(sch: Schedule, extents: tuple[int, ...] = (2,)) -> BlockRef:
    """Runs of steps of a product, tiles of 3 rows passing over the columns in each."""
    i, j, k = sch.get_loops("product")
    tile, row = sch.split(i, [None, 3])
    *run, step = sch.split(k, [*extents, None])
    sch.reorder(*run, tile, step, row, j)
    stored = sch.cache_write("product", 0, "local", tile)
    init = sch.decompose_reduction("product", step)
    for block in (stored, init, BlockRef("product"), BlockRef("c_local_load")):
        sch.vectorize(sch.get_loops(block)[-1])
    sch.parallel(tile)
    return stored


def kept_apart(sch: Schedule) -> BlockRef:
    """The same with the sums of a column of tiles in a buffer of their own between runs."""
    sch.cache_write("product", 0, "global")
    return runs_of_kept(sch)


def runs_of_kept(sch: Schedule) -> BlockRef:
    i, j, k = sch.get_loops("product")
    run, step = sch.split(k, [4, None])
    sch.reorder(run, i, step, j)
    return sch.cache_write("product", 0, "local", i)


def whole(sch: Schedule) -> BlockRef:
    """At a loop outside the reduction: nothing is loaded."""
    return sch.cache_write("product", 0, "local", sch.get_loops("product")[0])


WAYS: dict[str, Callable[[Schedule], object]] = {
    "runs": runs,
    "runs of runs": lambda sch: runs(sch, (2, 4)),
    "kept apart": kept_apart,
    "whole": whole,
}


def test_sums_are_what_they_were() -> None:
    before = product()
    made: dict[str, PrimFunc] = {}
    for name, do in WAYS.items():
        sch = Schedule(before)
        do(sch)
        made[name.replace(" ", "_")] = sch.func
        again = Schedule(before).replay(Trace.from_json(sch.trace.to_json()))
        assert first_difference(again.func, sch.func) is None
    kernels = build({name: after(func, *lowering()) for name, func in made.items()})
    for n in (0, 1, 7):
        inputs = arrays_for(before, np.random.default_rng(n), sizes_of({"n": n}))
        (want,) = run_prim_func(before, inputs, sizes_of({"n": n}))
        for name, func in made.items():
            assert_same(before, func, {"n": n})
            out = np.full_like(want, np.nan)
            assert kernels[name]([*inputs, out], {"n": n}) == 0
            np.testing.assert_allclose(
                out.astype(np.float64), want.astype(np.float64), 1e-5, 1e-5, err_msg=name
            )


def test_only_what_was_begun_is_loaded() -> None:
    """Blocks in order: none that loads where the reduction is whole in an iteration."""
    sch = Schedule(product())
    whole(sch)
    assert [b.name for b in sch.get_blocks()] == ["product", "c_local"]
    sch = Schedule(product())
    runs(sch)
    assert [b.name for b in sch.get_blocks()] == [
        *("c_local_load", "product_init", "product", "c_local"),
    ]


def test_sums_that_go_on_are_loaded_always() -> None:
    """A block without an init: what the buffer holds is part of the result."""
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 4, 6], c: f32[Buffer, 4]) -> None:
    for i in range(4):
        with T.block("begin"):
            vi = T.axis.spatial(4, i)
            c[vi] = 5.0
    for i, k in T.grid(4, 6):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            c[vi] += a[vi, vk]
""").prim_funcs()["main"]
    sch = Schedule(func)
    sch.cache_write("sum", 0, "local", sch.get_loops("sum")[0])
    load = next(s for s in walk_stmt(sch.func.body) if isinstance(s, Block) and "load" in s.name)
    assert load.predicate is None
    assert isinstance(load.body, Store)
    assert_same(func, sch.func, {})
