"""Transposes by hand: rectangles of tiles, whole and clipped, are turned in registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.marks import INSTRUCTION
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.blocks.extents import number
from unity.transform.schedule import Schedule
from unity.transform.tensor import lowering

PLAIN = """
@script.prim_func
def main(a: f32[Buffer, 13, 22], c: f32[Buffer, 22, 13]) -> None:
    for i, j in T.grid(22, 13):
        with T.block("turn"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = {value}
"""
WITH_ITSELF = """
@script.prim_func
def main(a: f32[Buffer, 22, 22], c: f32[Buffer, 22, 22]) -> None:
    for i, j in T.grid(22, 22):
        with T.block("turn"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] + a[vj, vi]
"""


def rectangles(func: PrimFunc) -> set[tuple[int | None, int | None]]:
    """The sizes of what is turned."""
    found: set[tuple[int | None, int | None]] = set()
    for s in walk_stmt(func.body):
        if isinstance(s, For) and s.attrs.get(INSTRUCTION) == "transpose":
            assert isinstance(s.body, For)
            found.add((number(s.extent), number(s.body.extent)))
    return found


def tiles(sch: Schedule) -> None:
    i, j = sch.get_loops("turn")
    (down, row), (right, lane) = sch.split(i, [None, 8]), sch.split(j, [None, 4])
    sch.reorder(down, right, row, lane)
    sch.vectorize(lane)
    sch.unroll(row)


def computed(place: int | None) -> Callable[[Schedule], None]:
    def steps(sch: Schedule) -> None:
        tiles(sch)
        copy = sch.reindex_cache_read("turn", "a", "local", lambda i, j: (i, j), place)
        sch.compute_at(copy, sch.get_loops("turn")[1])
        *_, row, lane = sch.get_loops(copy)
        sch.vectorize(lane)
        sch.unroll(row)

    return steps


@pytest.mark.parametrize(
    ("source", "steps", "sizes"),
    [
        (PLAIN.format(value="a[vj, vi]"), tiles, {(8, 4), (6, 4)}),
        (PLAIN.format(value="a[vj, vi] * 2.0"), computed(None), {(8, 4), (6, 4)}),
        (WITH_ITSELF, computed(1), {(8, 4), (6, 4), (8, 2), (6, 2)}),
    ],
    ids=["copied", "computed", "read at two places"],
)
def test_turned(
    source: str, steps: Callable[[Schedule], None], sizes: set[tuple[int, int]]
) -> None:
    func = parse(source).prim_funcs()["main"]
    sch = Schedule(func)
    steps(sch)
    low = after(sch.func, *lowering())
    assert_same(func, low, {})
    assert rectangles(low) == sizes
