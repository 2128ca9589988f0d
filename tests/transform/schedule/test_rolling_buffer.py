"""rolling_buffer: lines that windows share are made once, in a buffer that goes around."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.ir.stmt import Allocate
from unity.ir.visit import walk_stmt
from unity.transform.blocks.extents import number
from unity.transform.schedule import Schedule


def windows(step: int = 1, n: int | str = "n") -> Program:
    return Program(
        f"a: f32[Buffer, {n} * {step} + 2, 8], c: f32[Buffer, {n}, 8]",
        f"""
t = T.alloc(({n} * {step} + 2, 8), "float32")
for i, j in T.grid({n} * {step} + 2, 8):
    with T.block("double"):
        vi, vj = T.axis.remap("SS", i, j)
        t[vi, vj] = a[vi, vj] * 2.0
for i, j in T.grid({n}, 8):
    with T.block("window"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = t[vi * {step}, vj] - t[vi * {step} + 1, vj] + t[vi * {step} + 2, vj]
""",
        ({"n": 9}, {"n": 1}, {"n": 0}) if n == "n" else ({},),
    )


SUMS = Program(
    "a: f32[Buffer, 12, 3], c: f32[Buffer, 10]",
    """
t = T.alloc((12,), "float32")
for i, k in T.grid(12, 3):
    with T.block("double"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            t[vi] = 0.0
        t[vi] += a[vi, vk]
for i in range(10):
    with T.block("window"):
        vi = T.axis.spatial(10, i)
        c[vi] = t[vi] - t[vi + 2]
""",
)


def _rolled(s: Schedule) -> None:
    rows = s.get_loops("window")[0]
    s.compute_at("double", rows)
    s.rolling_buffer("double", 0, rows)


def _in_lanes(s: Schedule) -> None:
    _rolled(s)
    for block in ("double", "window"):
        s.vectorize(s.split(s.get_loops(block)[-1], [None, 4])[1])


def _by_threads(s: Schedule) -> None:
    """Each thread rolls through its own rows; the first window of them is made whole."""
    tiles, rows = s.split(s.get_loops("window")[0], [None, 4])
    s.compute_at("double", rows)
    s.store_at("double", 0, tiles)
    s.rolling_buffer("double", 0, rows)
    s.parallel(tiles)


LEGAL: dict[str, tuple[Program, Steps]] = {
    "rows": (windows(), _rolled),
    "two rows on": (windows(2), _rolled),
    "in lanes": (windows(), _in_lanes),
    "by threads": (windows(n=12), _by_threads),
    "sums": (SUMS, _rolled),
}


def test_compiled() -> None:
    assert_kept(LEGAL)


def test_holds_a_window() -> None:
    sch = Schedule(windows().func())
    _rolled(sch)
    (made,) = (s.buffer for s in walk_stmt(sch.func.body) if isinstance(s, Allocate))
    assert [number(n) for n in made.shape] == [3, 8]


REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "its own nest": (
        windows(),
        lambda s: s.rolling_buffer("double", 0, s.get_loops("double")[0]),
        "rolling_buffer, argument 3 'loop': 't' is used outside of it, or outside any block",
    ),
    "nothing shared": (
        windows(3),
        _rolled,
        "rolling_buffer, argument 3 'loop': its iterations share nothing of 't'",
    ),
    "no order": (
        windows(n=12),
        lambda s: (
            s.compute_at("double", s.get_loops("window")[0]),
            s.unroll(s.get_loops("window")[0]),
            s.rolling_buffer("double", 0, s.get_loops("window")[0]),
        ),
        "rolling_buffer, argument 3 'loop': it is unrolled: its iterations are in no order",
    ),
    "memory of its own": (
        windows(),
        lambda s: (
            s.compute_at("double", s.get_loops("window")[0]),
            s.store_at("double", 0, s.get_loops("window")[0]),
            s.rolling_buffer("double", 0, s.get_loops("window")[0]),
        ),
        "rolling_buffer, argument 3 'loop': each of its iterations has its own 't'",
    ),
    "threads around": (
        windows(),
        lambda s: (
            s.split(s.get_loops("window")[0], [None, 4]),
            s.compute_at("double", s.get_loops("window")[1]),
            s.rolling_buffer("double", 0, s.get_loops("window")[1]),
            s.parallel(s.get_loops("window")[0]),
        ),
        "parallel, argument 1 'loop': different iterations reach one point of block 'double'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])
