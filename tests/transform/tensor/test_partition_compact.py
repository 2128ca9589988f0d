"""Temporaries compacted and loops partitioned: random schedules keep what they compute."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.transform.schedule.programs import random_chain, random_kernel
from tests.transform.schedule.steps import BLOCKS, KINDS, LOOPS, REDUCTIONS, scheduled
from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, imm
from unity.ir.stmt import Allocate, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.blocks.tree import all_blocks
from unity.transform.passes import Context
from unity.transform.schedule import Schedule
from unity.transform.tensor import CompactBuffers, PartitionLoops, lowering

STEPS = (*BLOCKS, *LOOPS, *REDUCTIONS, *KINDS)


def tiled(before: PrimFunc, random: Random) -> Schedule:
    """A random schedule; blocks moved to where they are read; loops split unevenly, written out."""
    sch, _ = scheduled(before, random, STEPS, count=3)
    for name in [b.name for b in all_blocks(sch.func.body)]:
        at = sch.sample_compute_location(name)
        if at is not None:
            sch.compute_at(name, at)
    for name in [b.name for b in all_blocks(sch.func.body)]:
        loops = sch.get_loops(name)
        if not loops:
            continue
        try:
            loop = random.choice(loops)
            if random.random() < 0.5:
                sch.decompose_reduction(name, loops[0])
            _, inner = sch.split(loop, [None, random.choice([2, 4])])
            random.choice([sch.vectorize, sch.unroll])(inner)
        except UnityError:
            continue
    return sch


@pytest.mark.rotated(4)
@pytest.mark.parametrize("seed", range(32))
def test_random_schedules(seed: int) -> None:
    random = Random(seed)
    before = random.choice([random_kernel, random_chain])(random)
    done = tiled(before, random).func
    compacted = after(done, CompactBuffers())
    partitioned = after(compacted, PartitionLoops())
    low = after(done, *lowering())
    for sizes in ({"n": 1, "m": 13}, {"n": 7, "m": 4}):
        for made in (compacted, partitioned, low):
            assert_same(before, made, sizes)


def test_the_random_schedules_are_changed() -> None:
    """That the test above tests something."""
    compacted = partitioned = 0
    for seed in range(20):
        random = Random(seed)
        done = tiled(random.choice([random_kernel, random_chain])(random), random).func
        small = after(done, CompactBuffers())
        compacted += small is not done
        partitioned += after(small, PartitionLoops()) is not small
    assert compacted >= 2
    assert partitioned >= 4


def chain() -> Schedule:
    return Schedule(
        parse("""
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 16], c: f32[Buffer, n, 14]) -> None:
    t = T.alloc((n, 16), "float32")
    for i, j in T.grid(n, 16):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = a[vi, vj] * 2.0
    for i, j in T.grid(n, 14):
        with T.block("window"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = t[vi, vj] + t[vi, vj + 2]
""").prim_funcs()["main"]
    )


def shape_of(func: PrimFunc) -> list[object]:
    (found,) = [s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate)]
    return [n.value if isinstance(n, Imm) else n for n in found.shape]


def test_a_window_of_a_tile() -> None:
    sch = chain()
    i, j = sch.get_loops("window")
    _, j0, _, _ = sch.tile(i, j, 4, 7)
    sch.compute_at("double", j0)
    done = after(sch.func, CompactBuffers())
    assert shape_of(done) == [4, 9]
    for n in (1, 4, 9):
        assert_same(sch.func, done, {"n": n})


def test_values_of_earlier_iterations_keep_their_room() -> None:
    """What an iteration takes was made in the one before."""
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 8], c: f32[Buffer, 8]) -> None:
    t = T.alloc((9,), "float32")
    for i in range(8):
        with T.block("make"):
            vi = T.axis.spatial(8, i)
            t[vi + 1] = a[vi] * 2.0
        with T.block("take"):
            vi = T.axis.opaque(8, i)
            c[vi] = T.select(vi == 0, 0.0, t[vi])
""").prim_funcs()["main"]
    assert after(func, CompactBuffers()) is func


def test_padded_lines_of_large_temporaries_stay_padded_in_runs() -> None:
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 9, 200, 200], c: f32[Buffer, 9, 200, 200]) -> None:
    for b in T.parallel(9):
        t = T.alloc((200, 200), "float32", strides=(208, 1))
        for i, j in T.grid(200, 200):
            with T.block("double"):
                vb, vi, vj = T.axis.remap("SSS", b, i, j)
                t[vi, vj] = a[vb, vi, vj] * 2.0
        for i, j in T.grid(200, 200):
            with T.block("turn"):
                vb, vi, vj = T.axis.remap("SSS", b, i, j)
                c[vb, vi, vj] = t[vj, vi]
""").prim_funcs()["main"]
    done = after(func, CompactBuffers())
    (buffer,) = [s.buffer for s in walk_stmt(done.body) if isinstance(s, Allocate)]
    assert len(buffer.shape) == 3
    assert [s.value for s in buffer.strides or () if isinstance(s, Imm)] == [200 * 208, 208, 1]


def test_what_is_reduced_over_an_outer_loop_stays() -> None:
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 8, 8], c: f32[Buffer, 8]) -> None:
    t = T.alloc((8,), "float32")
    for k in range(8):
        for i in range(8):
            with T.block("sum"):
                vk, vi = T.axis.remap("RS", k, i)
                with T.init():
                    t[vi] = 0.0
                t[vi] += a[vi, vk]
        for i in range(8):
            with T.block("running"):
                vk, vi = T.axis.remap("OS", k, i)
                c[vi] = t[vi]
""").prim_funcs()["main"]
    assert after(func, CompactBuffers()) is func


def test_a_limit_in_memory_is_asked_each_time() -> None:
    """The loop may write it."""
    func = parse("""
@script.prim_func
def main(a: f32[Buffer, 32], limit: i64[Buffer, 1], c: f32[Buffer, 32]) -> None:
    for i in range(4):
        for j in T.vectorized(8):
            with T.block("copy"):
                vi = T.axis.spatial(32, i * 8 + j)
                T.where(i * 8 + j < limit[0])
                c[vi] = a[vi]
        for k in range(1):
            with T.block("less"):
                vk = T.axis.spatial(1, k)
                limit[vk] = limit[vk] - 9
""").prim_funcs()["main"]
    assert after(func, PartitionLoops()) is func


def test_large_memory_of_threads_is_shared_by_runs_of_iterations() -> None:
    """7 iterations that need 17 kB each: four runs of 1 or 2 have a part of one buffer each."""
    before = parse("""
@script.prim_func
def main(a: f32[Buffer, 7, 4200], c: f32[Buffer, 7, 4200]) -> None:
    for i in T.parallel(7):
        t = T.alloc((4200,), "float32")
        for j in range(4200):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", i, j)
                t[vj] = a[vi, vj] * 2.0
        for j in range(4200):
            with T.block("turned"):
                vi, vj = T.axis.remap("SS", i, j)
                c[vi, vj] = t[4199 - vj]
""").prim_funcs()["main"]
    target = replace(Context().target, threads=2)
    low = CompactBuffers()(IRModule({"main": before}), Context(target)).prim_funcs()["main"]
    assert isinstance(low.body, Allocate)
    assert low.body.buffer.shape == (imm(4), imm(4200))
    (run,) = [s for s in walk_stmt(low.body) if isinstance(s, For) and s.kind == "parallel"]
    assert run.extent == imm(4)
    assert_same(before, low, {})


def test_a_tile_that_reaches_past_its_chunk_makes_what_is_read_of_it() -> None:
    """Tiles of 5 in chunks of 14: what a tile leaves is taken in it, and each point made once."""
    before = parse("""
@script.prim_func
def main(a: f32[Buffer, 28, 8], c: f32[Buffer, 28]) -> None:
    t = T.alloc((28,), "float32")
    for i, k in T.grid(28, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                t[vi] = 0.0
            t[vi] += a[vi, vk]
    for i in range(28):
        with T.block("take"):
            vi = T.axis.spatial(28, i)
            c[vi] = t[vi] + 1.0
""").prim_funcs()["main"]
    sch = Schedule(before)
    chunk, inner = sch.split(sch.get_loops("sum")[0], [None, 14])
    tile, _ = sch.split(inner, [None, 5])
    sch.reverse_compute_at("take", tile)
    sch.store_at("sum", 0, tile)
    sch.parallel(chunk)
    small = after(sch.func, CompactBuffers())
    (room,) = [s.buffer for s in walk_stmt(small.body) if isinstance(s, Allocate)]
    assert room.shape == (imm(5),)
    assert_same(before, sch.func, {})


def test_a_value_of_an_axis_is_one_point_however_it_is_counted() -> None:
    before = parse("""
n = dim("n")
h = dim("h")

@script.prim_func
def main(a: f32[Buffer, n, h, 8], c: f32[Buffer, n, h - 2, 8]) -> None:
    t = T.alloc((n, h - 2, 8), "float32")
    for f in range(n * (h - 2)):
        for j in range(8):
            with T.block("t"):
                vi = T.axis.spatial(n, f // (h - 2))
                vk = T.axis.spatial(h - 2, f % (h - 2))
                vj = T.axis.spatial(8, j)
                t[vi, vk, vj] = a[vi, vk + 2, vj] * 2.0
        for j in range(8):
            with T.block("c"):
                vi = T.axis.spatial(n, f // (h - 2))
                vk = T.axis.spatial(h - 2, f % (h - 2))
                vj = T.axis.spatial(8, j)
                c[vi, vk, vj] = t[vi, vk, vj] + t[vi, vk, 7 - vj]
""").prim_funcs()["main"]
    done = after(before, CompactBuffers())
    (made,) = [s.buffer for s in walk_stmt(done.body) if isinstance(s, Allocate)]
    assert [e.value for e in made.shape if isinstance(e, Imm)] == [1, 1, 8]
    assert_same(before, done, {"n": 3, "h": 5})


@pytest.mark.parametrize("kind", ["T.parallel(tasks)", "of a thread"])
def test_tasks_ask_whether_their_columns_are_whole(kind: str) -> None:
    """Columns and chunks of rows that are one loop: a thread's as much as one on threads."""
    text = """
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
    LOOPS
            for j in T.grid(4):
                for k in T.vectorized(4):
                    with T.block("double"):
                        vi = T.axis.spatial(8, task % 2 * 4 + j)
                        vk = T.axis.spatial(n, task // 2 * 4 + k)
                        T.where(task // 2 * 4 + k < n)
                        c[vk, vi] = a[vk, vi] * 2.0
"""
    tasks = "(n + 3) // 4 * 2"
    loops = f"for run in T.parallel(1):\n        for task in T.parallel({tasks}):"
    if kind == "of a thread":
        loops = "for run in T.parallel(2):\n        "
        loops += "for task in range(run * ((n + 3) // 4), (run + 1) * ((n + 3) // 4)):"
    before = parse(text.replace("LOOPS", loops)).prim_funcs()["main"]
    low = after(before, PartitionLoops())
    asked = [b for b in all_blocks(low.body) if b.predicate is not None]
    assert len(asked) < len(all_blocks(low.body)), "what lies inside whole asks no more"
    for n in (0, 1, 4, 7, 12):
        assert_same(before, low, {"n": n})
