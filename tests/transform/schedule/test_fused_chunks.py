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
