"""Rows of unknown number: what is left of whole tiles, in tiles of the sizes a loop asks for."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.prim_expr import Imm
from unity.ir.stmt import For, PrimFunc, Stmt
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.tensor import PartitionLoops, lowering

PRODUCT = """
n = dim("n")


@script.prim_func
def main(a: f32[Buffer, n, STEPS], w: f32[Buffer, STEPS, 4], c: f32[Buffer, n, 4]) -> None:
    for tile in T.serial((n + LAST) // ROWS, attrs=ATTRS):
        t = T.alloc((ROWS, 4), "float32", scope="local")
        for i in T.unroll(ROWS):
            for j in T.vectorized(4):
                with T.block("init"):
                    vi = T.axis.spatial(n, tile * ROWS + i)
                    vj = T.axis.spatial(4, j)
                    T.where(tile * ROWS + i < n)
                    t[vi - tile * ROWS, vj] = 0.0
        for k in T.unroll(STEPS):
            for i in T.unroll(ROWS):
                for j in T.vectorized(4):
                    with T.block("sum"):
                        vi = T.axis.spatial(n, tile * ROWS + i)
                        vj = T.axis.spatial(4, j)
                        vk = T.axis.reduce(STEPS, k)
                        T.where(tile * ROWS + i < n)
                        t[vi - tile * ROWS, vj] += a[vi, vk] * w[vk, vj]
        for i in T.unroll(ROWS):
            for j in T.vectorized(4):
                with T.block("copy"):
                    vi = T.axis.spatial(n, tile * ROWS + i)
                    vj = T.axis.spatial(4, j)
                    T.where(tile * ROWS + i < n)
                    c[vi, vj] = t[vi - tile * ROWS, vj]
"""


def product(steps: int, attrs: dict[str, str], rows: int = 6) -> PrimFunc:
    """Rows times a matrix, some rows in a tile."""
    text = PRODUCT.replace("STEPS", str(steps)).replace("ATTRS", repr(attrs))
    text = text.replace("ROWS", str(rows)).replace("LAST", str(rows - 1))
    return parse(text).prim_funcs()["main"]


def loops(s: Stmt, name: str) -> list[tuple[str, object]]:
    """The kinds and extents of a name's loops."""
    every = [x for x in walk_stmt(s) if isinstance(x, For) and x.var.name == name]
    return [(x.kind, x.extent.value) for x in every if isinstance(x.extent, Imm)]


@pytest.mark.parametrize(
    ("tail", "rows"),
    [("", [6, 4, 2, 1]), ("fitting", [6, 1, 2, 3, 4, 5]), ("compact", [6, 1, 2, 3, 4, 5])],
)
def test_what_is_left_is_done_in_the_tiles_that_the_loop_asks_for(
    tail: str, rows: list[int]
) -> None:
    before = product(3, {"tail": tail} if tail else {})
    parted = after(before, PartitionLoops())
    assert loops(parted.body, "i") == [("unrolled", n) for n in rows for _ in range(3)]
    low = after(before, *lowering())
    for n in range(20):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize(
    ("tail", "steps", "left"),
    [
        ("fitting", 4, [("unrolled", 4)]),
        ("compact", 3, [("unrolled", 3)]),
        ("compact", 8, [("serial", 2), ("unrolled", 4)]),
        ("compact", 6, [("serial", 2), ("unrolled", 3)]),
        ("compact", 7, [("serial", 7)]),
    ],
)
def test_compact_tiles_write_out_few_steps(
    tail: str, steps: int, left: list[tuple[str, object]]
) -> None:
    before = product(steps, {"tail": tail})
    whole, *rest = loops(after(before, PartitionLoops()).body, "k")
    assert whole == ("unrolled", steps)
    assert rest == left * 5
    low = after(before, *lowering())
    for n in range(13):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize("tail", ["fitting", "compact"])
@pytest.mark.parametrize("rows", [9, 14])
def test_many_rows_that_are_left_are_two_tiles_of_half_as_many(tail: str, rows: int) -> None:
    before = product(3, {"tail": tail}, rows)
    parted = after(before, PartitionLoops())
    sizes = [rows, *range(1, rows // 2 + 1)]
    assert loops(parted.body, "i") == [("unrolled", n) for n in sizes for _ in range(3)]
    low = after(before, *lowering())
    for n in range(2 * rows + 2):
        assert_same(before, low, {"n": n})
