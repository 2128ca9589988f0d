"""round_up and transform_block_layout: what may not be left out of a block's conditions."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.script import parse
from unity.transform.schedule import Schedule


def test_a_divisor_may_be_zero_beyond_the_limits() -> None:
    sch = Schedule(
        parse("""
@script.prim_func
def main(c: i64[Buffer, 5]) -> None:
    t = T.alloc((8,), "int64")
    for i in range(8):
        with T.block("fill"):
            vi = T.axis.spatial(8, i)
            T.where(i < 5)
            t[vi] = 10 // (5 - vi)
    for i in range(5):
        with T.block("copy"):
            vi = T.axis.spatial(5, i)
            c[vi] = t[vi]
""").prim_funcs()["main"]
    )
    with pytest.raises(UnityError, match="divides by what may be 0 beyond its limits"):
        sch.round_up("fill")


def test_a_limit_from_memory_may_change() -> None:
    sch = Schedule(
        parse("""
@script.prim_func
def main(m: i64[Buffer, 1], c: i64[Buffer, 8]) -> None:
    t = T.alloc((8,), "int64")
    for i in range(8):
        with T.block("fill"):
            vi = T.axis.spatial(8, i)
            T.where(i < m[0])
            t[vi] = 1
    for i in range(8):
        with T.block("copy"):
            vi = T.axis.spatial(8, i)
            T.where(i < m[0])
            c[vi] = t[vi]
""").prim_funcs()["main"]
    )
    with pytest.raises(UnityError, match="does not limit where 'fill' stores"):
        sch.round_up("fill")


def test_a_loop_that_may_have_no_iteration_stays() -> None:
    sch = Schedule(
        parse("""
n = dim("n")
@script.prim_func
def main(a: f32[Buffer, n, 5], c: f32[Buffer, n, 5]) -> None:
    for i, j in T.grid(n % 2, 5):
        with T.block("copy"):
            vi = T.axis.spatial(n % 2, i)
            vj = T.axis.spatial(5, j)
            c[vi, vj] = a[vi, vj]
""").prim_funcs()["main"]
    )
    with pytest.raises(UnityError, match="'vi' is in no output and may have no iteration"):
        sch.transform_block_layout("copy", lambda i, j: (j,))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_an_axis_of_one_point_at_most_keeps_its_loop(n: int) -> None:
    before = parse("""
n = dim("n")

@script.prim_func
def main(a: f32[Buffer, T.min(1, n), 4], c: f32[Buffer, T.min(1, n), 4]) -> None:
    t = T.alloc((1, T.min(1, n), 4), "float32")
    for i, j, k in T.grid(1, T.min(1, n), 4):
        with T.block("first"):
            vi, vj, vk = T.axis.remap("SSS", i, j, k)
            t[vi, vj, vk] = a[vj, vk] + 1.0
    for i, j, k in T.grid(1, T.min(1, n), 4):
        with T.block("second"):
            vi, vj, vk = T.axis.remap("SSS", i, j, k)
            c[vj, vk] = t[vi, vj, vk] * 2.0
""").prim_funcs()["main"]
    sch = Schedule(before)
    for block in ("first", "second"):
        sch.transform_block_layout(block, lambda i, j, k: (i + j, k))
    sch.transform_layout("first", 0, lambda i, j, k: (i + j, k))
    assert_same(before, sch.func, {"n": n})
