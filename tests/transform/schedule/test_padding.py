"""decompose_padding: what is filled and copied is what was selected."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import HOSTILE, Program
from unity.transform.schedule import Schedule

IMAGE = Program(
    "a: f32[Buffer, n, 8], c: f32[Buffer, n + 2, 10]",
    """
t = T.alloc((n + 2, 10), "float32")
for i, j in T.grid(n + 2, 10):
    with T.block("pad"):
        vi, vj = T.axis.remap("SS", i, j)
        t[vi, vj] = T.select(
            vi - 1 >= 0 and vi - 1 < n and 1 <= vj and 9 > vj, a[vi - 1, vj - 1], 1.0
        )
for i, j in T.grid(n + 2, 10):
    with T.block("use"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = t[vi, vj] * 2.0
""",
    ({"n": 5}, {"n": 1}, {"n": 0}),
)


def _row_by_row(s: Schedule) -> None:
    rows = s.get_loops("use")[0]
    s.compute_at("pad", rows)
    s.decompose_padding("pad", s.get_loops("pad")[1])
    s.parallel(rows)


def _tiles(s: Schedule) -> None:
    i, j = s.get_loops("pad")
    _, inner = s.split(i, [None, 4])
    s.decompose_padding("pad", inner)
    s.vectorize(j)


LEGAL: dict[str, Steps] = {
    "before all": lambda s: s.decompose_padding("pad", s.get_loops("pad")[0]),
    "row by row": lambda s: s.decompose_padding("pad", s.get_loops("pad")[1]),
    "at a loop that reads": _row_by_row,
    "in tiles": _tiles,
    "before a loop that reads": lambda s: (
        s.compute_at("pad", s.get_loops("use")[0]),
        s.decompose_padding("pad", s.get_loops("use")[0]),
    ),
}


def test_compiled() -> None:
    assert_kept({name: (IMAGE, steps) for name, steps in LEGAL.items()})


def test_loops_shrink() -> None:
    sch = Schedule(IMAGE.func())
    sch.decompose_padding("pad", sch.get_loops("pad")[0])
    assert "for i, j in T.grid(n, 8):" in str(sch.func)


LATER = Program(
    "a: f32[Buffer, 8], c: f32[Buffer, 8], d: f32[Buffer, 8]",
    """
for i in range(8):
    with T.block("read"):
        vi = T.axis.spatial(8, i)
        d[vi] = c[vi]
    with T.block("pad"):
        vi = T.axis.spatial(8, i)
        c[vi] = T.select(vi < 6, a[vi], 0.0)
""",
)
MASKED = Program(
    "a: f32[Buffer, 8], m: f32[Buffer, 8], c: f32[Buffer, 8]",
    """
for i in range(8):
    with T.block("pad"):
        vi = T.axis.spatial(8, i)
        c[vi] = T.select(m[vi] < 1.0, a[vi], 0.0)
""",
)
REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "no padding": (
        HOSTILE["chainreduce"],
        lambda s: s.decompose_padding("p", s.get_loops("p")[0]),
        "decompose_padding, argument 1 'block': 'p' is more than the store of a selection",
    ),
    "another nest": (
        IMAGE,
        lambda s: s.decompose_padding("pad", s.get_loops("use")[0]),
        "decompose_padding, argument 2 'loop': it is not around 'pad'",
    ),
    "a mask": (
        MASKED,
        lambda s: s.decompose_padding("pad", s.get_loops("pad")[0]),
        "decompose_padding, argument 1 'block': the padding, or where it is, is loaded from memory",
    ),
    "what is there before": (
        LATER,
        lambda s: s.decompose_padding("pad", s.get_loops("pad")[0]),
        "decompose_padding, argument 2 'loop': block 'read' may read of 'c' what is not begun yet",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])
