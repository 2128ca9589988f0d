"""tile_axis: an axis in tiles of one size, the last of which overlaps the one before."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.transform.schedule import Schedule

TEXT = """
t = T.alloc(({n}, 6), "float32")
for i, j, k in T.grid({n}, 6, 3):
    with T.block("sums"):
        vi, vj, vk = T.axis.remap("SSR", i, j, k)
        with T.init():
            t[vi, vj] = 0.0
        t[vi, vj] += a[vi, vk] * b[vk, vj]
for i, j in T.grid({n}, 6):
    with T.block("result"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = T.max(t[vi, vj], a[vi, 0])
"""
KNOWN = Program(
    "a: f32[Buffer, 11, 3], b: f32[Buffer, 3, 6], c: f32[Buffer, 11, 6]", TEXT.format(n=11), ({},)
)
UNKNOWN = Program(
    "a: f32[Buffer, n, 3], b: f32[Buffer, 3, 6], c: f32[Buffer, n, 6]",
    TEXT.format(n="n"),
    tuple({"n": n} for n in (0, 1, 3, 4, 5, 8)),
)


def _tiled(s: Schedule) -> None:
    """The sums of a tile where they are read, in memory of a tile's size."""
    s.tile_axis("sums", 0, 4)
    row, column = s.get_loops("result")
    tile, _ = s.split(row, [None, 4])
    s.compute_at("sums", tile)
    s.store_at("sums", 0, tile)
    s.decompose_reduction("sums", s.get_loops("sums")[-1])
    s.vectorize(column)
    s.parallel(tile)


def _of_both(s: Schedule) -> None:
    s.tile_axis("sums", 1, 4)
    s.tile_axis("sums", 0, 3)


def _where_enough(s: Schedule) -> None:
    """No point is asked to be inside where there is a tile, and one tile does where there is not"""
    few_sums, few_result = s.specialize_when("n >= 4", "sums", "result")
    _tiled(s)
    assert "T.min(n - 4, vi_tile * 4)" in str(s.func)
    s.specialize_when("n >= 1", few_sums, few_result)
    s.tile_axis(few_sums, 0, 4)
    assert "T.alloc((1, 4, 6)" in str(s.func)


@pytest.mark.long("compiles a kernel of each kind")
def test_compiled() -> None:
    assert_kept(
        {
            "known": (KNOWN, _tiled),
            "unknown": (UNKNOWN, _tiled),
            "two axes": (KNOWN, _of_both),
            "two axes, one unknown": (UNKNOWN, _of_both),
            "tiles that divide": (KNOWN, lambda s: s.tile_axis("sums", 1, 3)),
            "of more than there is": (KNOWN, lambda s: s.tile_axis("sums", 0, 16)),
            "versions": (UNKNOWN, _where_enough),
        }
    )


REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "a parameter": (
        KNOWN,
        lambda s: s.tile_axis("result", 0, 4),
        "tile_axis, argument 1 'block': it stores to 'c', which is no temporary of its own",
    ),
    "what is summed over": (
        KNOWN,
        lambda s: s.tile_axis("sums", 2, 2),
        "tile_axis, argument 2 'axis': 'sums' has no spatial axis 2",
    ),
    "tiles of nothing": (
        KNOWN,
        lambda s: s.tile_axis("sums", 0, 0),
        "tile_axis, argument 3 'size': it must be positive, got 0",
    ),
    "a loop that is split": (
        KNOWN,
        lambda s: (s.split(s.get_loops("sums")[0], [None, 4]), s.tile_axis("sums", 0, 4)),
        "tile_axis, argument 1 'block': 'sums' is not directly in one loop for each of its axes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert_refused(*REFUSED[case])
