"""Iterations run at once where each touches a slice of its own, whatever blocks do within it."""

from __future__ import annotations

import pytest

from tests.transform.schedule.hostile import Program, differ
from unity.errors import UnityError
from unity.transform.schedule import Schedule

TEXT = """
for r in range(n * 3):
    for k in range(1):
        with T.block("edge"):
            vi = T.axis.spatial(n, r // 3 % n)
            vj = T.axis.spatial(3, r % 3)
            vk = T.axis.spatial(5, k)
            c[vi, vj, vk] = 0.0
    for k in range(4):
        with T.block("inside"):
            vi = T.axis.spatial(n, {row})
            vj = T.axis.spatial(3, r % 3)
            vk = T.axis.spatial(5, k + 1)
            c[vi, vj, vk] = a[vi, vj, vk - 1]
"""
SIZES = ({"n": 4}, {"n": 1}, {"n": 0})


def program(row: str) -> Program:
    """Rows of which one block begins each, and another one fills those that `row` names."""
    return Program("a: f32[Buffer, n, 3, 4], c: f32[Buffer, n, 3, 5]", TEXT.format(row=row), SIZES)


def test_rows_of_their_own() -> None:
    rows = program("r // 3 % n")
    sch = Schedule(rows.func())
    sch.parallel(sch.get_loops("edge")[0])
    assert differ(rows, rows.func(), sch.func) is None


def test_rows_of_others_are_refused() -> None:
    sch = Schedule(program("n - 1 - r // 3 % n").func())
    with pytest.raises(UnityError, match="which block 'inside' writes later"):
        sch.parallel(sch.get_loops("edge")[0])


SLABS = """
for o in range(n):
    for i, k in T.grid(3, 1):
        with T.block("edge"):
            vj = T.axis.spatial(n * 3, o * 3 + i)
            vk = T.axis.spatial(5, k)
            c[vj, vk] = 0.0
    for i, k in T.grid({rows}, 4):
        with T.block("inside"):
            vj = T.axis.spatial(n * 3, {row})
            vk = T.axis.spatial(5, k + 1)
            T.where(k < 3)
            c[vj, vk] = a[vj, vk - 1]
"""


def slabs(row: str, rows: int = 3) -> Program:
    """Three rows of which one block begins each, and another one fills `rows`."""
    text = SLABS.format(row=row, rows=rows)
    return Program("a: f32[Buffer, n * 3, 4], c: f32[Buffer, n * 3, 5]", text, SIZES)


@pytest.mark.parametrize("rows", [2, 3])
def test_several_rows_of_their_own(rows: int) -> None:
    own = slabs("o * 3 + i", rows)
    sch = Schedule(own.func())
    sch.parallel(sch.get_loops("edge")[0])
    assert differ(own, own.func(), sch.func) is None


@pytest.mark.parametrize("row", ["(n - 1 - o) * 3 + i", "T.min(o * 3 + i + 1, n * 3 - 1)"])
def test_rows_that_overlap_those_of_others_are_refused(row: str) -> None:
    sch = Schedule(slabs(row).func())
    with pytest.raises(UnityError):
        sch.parallel(sch.get_loops("edge")[0])
