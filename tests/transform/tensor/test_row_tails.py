"""What is left of rows of unknown length: whole vectors, then one under a mask."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.stmt import Allocate, PrimFunc, Store
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.pipeline import TENSOR
from unity.transform.schedule import Schedule
from unity.transform.tensor import ForwardStores, HoistFunctions, MaskLanes, lowering

SIZES = (0, 1, 7, 8, 9, 31, 32, 45, 64)


def test_the_pipeline_lowers_by_the_same_passes() -> None:
    assert TENSOR.passes == lowering()[2:]


def squares() -> PrimFunc:
    """What a row is multiplied by itself, and the sum of that."""
    return parse("""
n = dim("n")


@script.prim_func
def main(a: f32[Buffer, n], c: f32[Buffer, n], d: f32[Buffer, 1]) -> None:
    for i in range(n):
        with T.block("square"):
            vi = T.axis.spatial(n, i)
            c[vi] = a[vi] * a[vi]
    for k in range(n):
        with T.block("sum"):
            vk = T.axis.reduce(n, k)
            with T.init():
                d[0] = 0.0
            d[0] += c[vk]
""").prim_funcs()["main"]


@pytest.mark.parametrize("vectors", [1, 4])
def test_one_vector_is_stored_under_a_mask(vectors: int) -> None:
    before = squares()
    sch = Schedule(before)
    _, row, lane = sch.split(sch.get_loops("square")[0], [None, vectors, 8])
    sch.vectorize(lane)
    sch.unroll(row)
    low = after(sch.func, *lowering())
    masked = [s for s in walk_stmt(low.body) if isinstance(s, Store) and s.predicate is not None]
    assert len(masked) == 1
    for n in SIZES:
        assert_same(before, low, {"n": n})


def test_stages_in_one_pass_have_copies_of_their_sums() -> None:
    before = squares()
    sch = Schedule(before)
    for name in ("square", "sum"):
        sch.add_unit_loop(sch.get_loops(name)[0])
        sch.split(sch.get_loops(name)[-1], [None, 4, 8])
    row = sch.fuse_siblings(sch.get_loops("square")[0], sch.get_loops("sum")[0])
    partial = sch.rfactor(sch.get_loops("sum")[-1], 0, row)
    begun = sch.decompose_reduction(partial, sch.get_loops(partial)[1])
    for level in (1, 2):
        loops = [sch.get_loops(name)[level] for name in ("square", partial)]
        vector = sch.fuse_siblings(*loops)
    for block in ("square", partial, begun):
        sch.vectorize(sch.get_loops(block)[-1])
    sch.unroll(vector)
    sch.annotate(vector, "accumulators", 4)
    low = after(sch.func, *lowering())
    names = [s.buffer.name for s in walk_stmt(low.body) if isinstance(s, Allocate)]
    assert sum(name.startswith("d_rf") for name in names) == 4
    for n in SIZES:
        assert_same(before, low, {"n": n})


def test_lanes_that_leave_a_step_out_keep_what_they_have() -> None:
    """All of them count: the largest of negative numbers is none that a lane past the end makes."""
    before = parse("""
@script.prim_func
def main(a: f32[Buffer, 13], c: f32[Buffer, 1]) -> None:
    t = T.alloc((8,), "float32", scope="local")
    for j in range(8):
        t[j] = -1000.0
    for k in range(2):
        for j in T.vectorized(8):
            with T.block("largest"):
                vj = T.axis.spatial(8, j)
                vk = T.axis.reduce(2, k)
                T.where(k * 8 + j < 13)
                t[vj] = T.max(t[vj], 0.0 - a[vk * 8 + vj] * a[vk * 8 + vj] - 1.0)
    c[0] = t[0]
    for j in range(8):
        c[0] = T.max(c[0], t[j])
""").prim_funcs()["main"]
    assert_same(before, after(before, MaskLanes()), {})
    assert after(before, MaskLanes()) != before


VECTORS = """
n = dim("n")


@script.prim_func
def main(a: f32[Buffer, n], c: f32[Buffer, n], d: f32[Buffer, n]) -> None:
    inside = T.let(T.ramp(0, 1, 4) < T.broadcast(n, 4))
    T.store(c, (T.ramp(0, 1, 4),), T.load(a, (T.ramp(0, 1, 4),), inside), inside)
    {between}
    T.store(d, (T.ramp(0, 1, 4),), T.load(c, (T.ramp({at}, 1, 4),), inside), inside)
"""


@pytest.mark.parametrize(
    ("between", "at", "kept"),
    [("c[0] = 7.0", 0, False), ("d[0] = 7.0", 0, True), ("d[0] = 7.0", "0 * n", False)],
)
def test_only_what_was_stored_there_last_is_kept(between: str, at: int | str, kept: bool) -> None:
    before = parse(VECTORS.format(between=between, at=at)).prim_funcs()["main"]
    now = after(before, ForwardStores())
    assert (now != before) is kept
    assert_same(before, now, {"n": 5})


def test_what_a_foreign_function_may_write_is_loaded_again() -> None:
    call = 'T.evaluate(T.call_extern("lib.turn", T.address_of(c[0]), 4))'
    before = parse(VECTORS.format(between=call, at=0)).prim_funcs()["main"]
    assert after(before, ForwardStores()) == before


@pytest.mark.parametrize(("stored", "moves"), [("c[i]", True), ("t[0]", False)])
def test_functions_stay_in_loops_that_change_what_they_are_of(stored: str, moves: bool) -> None:
    before = parse(f"""
@script.prim_func
def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    t = T.alloc((1,), "float32", scope="local")
    t[0] = a[0]
    for i in range(8):
        {stored} = a[i] - T.exp(t[0])
    c[0] = t[0]
""").prim_funcs()["main"]
    now = after(before, HoistFunctions())
    assert (now != before) is moves
    assert_same(before, now, {})


JOINED = """
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 3], w: f32[Buffer, 3, 16], c: f32[Buffer, n, 13]) -> None:
    for f in range((n + 1) // 2 * 2):
        for i in range(2):
            t = T.alloc((8,), "float32", scope="local")
            for j in T.vectorized(8):
                t[j] = 0.0
            for k in range(3):
                for j in T.vectorized(8):
                    with T.block("sum"):
                        vi = T.axis.spatial(n, f % ((n + 1) // 2) * 2 + i)
                        vj = T.axis.spatial(13, PANEL * 8 + j)
                        vk = T.axis.reduce(3, k)
                        T.where(PANEL * 8 + j < 13 and f % ((n + 1) // 2) * 2 + i < n)
                        t[j] += a[vi, vk] * w[vk, vj]
            for j in T.vectorized(8):
                with T.block("copy"):
                    vi = T.axis.spatial(n, f % ((n + 1) // 2) * 2 + i)
                    vj = T.axis.spatial(13, PANEL * 8 + j)
                    T.where(PANEL * 8 + j < 13 and f % ((n + 1) // 2) * 2 + i < n)
                    c[vi, vj] = t[j]
"""


@pytest.mark.parametrize(
    ("panel", "whole"),
    [
        ("f // ((n + 1) // 2)", True),
        ("(f // ((n + 1) // 2) + f * 0)", False),
        ("(f // ((n + 1) // 2) + f // (n + 3))", False),
    ],
)
def test_a_loop_made_of_two_is_two(panel: str, whole: bool) -> None:
    """What moves with one of them is loaded for all lanes; the other tells how many there are."""
    before = parse(JOINED.replace("PANEL", panel)).prim_funcs()["main"]
    masked = after(before, MaskLanes())
    assert ("+= a[f % ((n + 1) // 2) * 2 + i, k] * " in str(masked)) is whole
    for n in (1, 3, 4):
        assert_same(before, masked, {"n": n})
