"""reverse_compute_at of blocks that read several sources, or chunks of one."""

from __future__ import annotations

import pytest

from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.script import parse
from unity.transform.schedule import Schedule

CHUNKS = """
@script.prim_func
def main(a: f32[Buffer, 3, 8], s: f32[Buffer, 8], h: f32[Buffer, 8]) -> None:
    t = T.alloc((3, 8), "float32")
    for i, j in T.grid(3, 8):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", i, j)
            t[vi, vj] = a[vi, vj] * 2.0
    for j in range(8):
        with T.block("state"):
            vj = T.axis.spatial(8, j)
            s[vj] = t[0, vj] + t[2, vj]
    for j in range(8):
        with T.block("output"):
            vj = T.axis.spatial(8, j)
            h[vj] = s[vj] * t[1, vj]
"""


def test_readers_of_chunks_and_of_each_other_follow() -> None:
    func = parse(CHUNKS).prim_funcs()["main"]
    sch = Schedule(func)
    chunk, j = sch.get_loops("double")
    strip, lane = sch.split(j, [None, 4])
    sch.reorder(strip, chunk, lane)
    for reader in ("state", "output"):
        sch.reverse_compute_at(reader, strip)
        assert sch.get_loops(reader)[0] == strip
    assert_same(func, sch.func, {})


def test_all_chunks_that_are_read_must_be_there() -> None:
    sch = Schedule(parse(CHUNKS).prim_funcs()["main"])
    chunk, _ = sch.get_loops("double")
    with pytest.raises(UnityError, match="does not make all that it reads of 't'"):
        sch.reverse_compute_at("state", chunk)


def test_sources_must_be_made_for_the_same_points() -> None:
    text = CHUNKS.replace("s[vj] * t[1, vj]", "s[vj] * t[1, 7 - vj]")
    sch = Schedule(parse(text).prim_funcs()["main"])
    chunk, j = sch.get_loops("double")
    strip, lane = sch.split(j, [None, 4])
    sch.reorder(strip, chunk, lane)
    sch.reverse_compute_at("state", strip)
    with pytest.raises(UnityError, match="reads 't' elsewhere than at its axes"):
        sch.reverse_compute_at("output", strip)
