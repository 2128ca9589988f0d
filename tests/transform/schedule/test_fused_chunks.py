"""Chunks of an axis of unknown length, fused with loops around them, run at once."""

from __future__ import annotations

import numpy as np
import pytest

from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.script import parse
from unity.transform.schedule import LoopRef, Schedule

LINES = """
n = dim("n")
m = dim("m")


@script.prim_func
def main(a: f32[Buffer, n, m], c: f32[Buffer, n, m]) -> None:
    for i, j in T.grid(n, m):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] * 2.0
"""


def chunks() -> tuple[Schedule, LoopRef]:
    """Chunks of five columns of all lines as one loop."""
    sch = Schedule(parse(LINES).prim_funcs()["main"])
    i, j = sch.get_loops("double")
    chunk, _ = sch.split(j, [None, 5])
    return sch, sch.fuse(i, chunk)


@pytest.mark.parametrize("shape", [(3, 14), (1, 5), (2, 0), (0, 7), (4, 1)])
def test_chunks_of_all_lines_run_at_once(shape: tuple[int, int]) -> None:
    sch, task = chunks()
    sch.parallel(task)
    a = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    (c,) = run_prim_func(sch.func, [a])
    assert np.array_equal(c, a * 2)


def test_chunks_that_overlap_do_not() -> None:
    overlapping = LINES.replace("(n, m)", "(n, (m + 4) // 5, 5)").replace("i, j in", "i, j, k in")
    overlapping = overlapping.replace(
        'vi, vj = T.axis.remap("SS", i, j)',
        "vi = T.axis.spatial(n, i)\n            vj = T.axis.spatial(m, j * 4 + k)\n"
        "            T.where(j * 4 + k < m)",
    )
    sch = Schedule(parse(overlapping).prim_funcs()["main"])
    i, j, _ = sch.get_loops("double")
    task = sch.fuse(i, j)
    with pytest.raises(UnityError, match="reach one point"):
        sch.parallel(task)


CUBES = """
n = dim("n")
m = dim("m")


@script.prim_func
def main(a: f32[Buffer, n, m, 6], c: f32[Buffer, n, m, 6]) -> None:
    for i, j, k in T.grid(n, m, 6):
        with T.block("double"):
            vi, vj, vk = T.axis.remap("SSS", i, j, k)
            c[vi, vj, vk] = a[vi, vj, vk] * 2.0
"""


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(3, 14, 6), (1, 5, 6), (2, 0, 6), (4, 1, 6)])
def test_chunks_and_groups_of_other_axes_run_at_once(
    order: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    sch = Schedule(parse(CUBES).prim_funcs()["main"])
    i, j, k = sch.get_loops("double")
    chunk, inside = sch.split(j, [None, 5])
    group, few = sch.split(k, [None, 2])
    tasks = [(i, chunk, group)[x] for x in order]
    sch.reorder(*tasks, inside, few)
    sch.parallel(sch.fuse(*tasks))
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    (c,) = run_prim_func(sch.func, [a])
    assert np.array_equal(c, a * 2)


def test_groups_that_overlap_do_not() -> None:
    overlapping = CUBES.replace("T.grid(n, m, 6)", "T.grid(n, (m + 4) // 5, 3, 5, 2)")
    overlapping = overlapping.replace("i, j, k in", "i, j, g, b, k in")
    overlapping = overlapping.replace(
        'vi, vj, vk = T.axis.remap("SSS", i, j, k)',
        "vi = T.axis.spatial(n, i)\n            vj = T.axis.spatial(m, j * 5 + b)\n"
        "            vk = T.axis.spatial(6, g + k)\n            T.where(j * 5 + b < m)",
    )
    sch = Schedule(parse(overlapping).prim_funcs()["main"])
    i, j, g, _, _ = sch.get_loops("double")
    with pytest.raises(UnityError, match="reach one point"):
        sch.parallel(sch.fuse(i, j, g))
