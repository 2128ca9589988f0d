"""tile_lines: lines in tiles that go on from one line to the next, as what is read does."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.transform.schedule import Schedule

TEXT = """
t = T.alloc(({lines}, 3), "float32")
for i, j, k in T.grid({lines}, 3, 2):
    with T.block("sums"):
        vi, vj, vk = T.axis.remap("SSR", i, j, k)
        with T.init():
            t[vi, vj] = 0.0
        t[vi, vj] += {value}
for i, j in T.grid({lines}, 3):
    with T.block("result"):
        vi, vj = T.axis.remap("SS", i, j)
        c[vi, vj] = T.max(t[vi, vj], 0.5)
"""


def _program(lines: int | str, value: str, a: str, sizes: tuple[int, ...] = ()) -> Program:
    """Sums along lines of 3 points of an image."""
    params = f"a: f32[Buffer, {a}], b: f32[Buffer, 2], c: f32[Buffer, {lines}, 3]"
    text = TEXT.format(lines=lines, value=value)
    return Program(params, text, tuple({"n": n} for n in sizes) or ({},))


KNOWN = _program(5, "a[vi, vj + vk] * b[vk]", "5, 4")
STRIDED = _program(5, "a[vi * 2 + vk, vj * 2 + vk] * b[vk]", "10, 6")
WIDE = _program(5, "(a[vi, vj + vk] + a[vi, vj]) * b[vk]", "6, 9")
UNKNOWN = _program("n", "a[vi + vk, vj] * b[vk]", "n + 1, 4", (2, 3, 4, 7))


def _tiled(s: Schedule) -> None:
    """The sums of a tile where they are read, in memory of a tile's size."""
    s.tile_lines("sums", 0, 2)
    line, _ = s.get_loops("result")
    tile, _ = s.split(line, [None, 2])
    s.compute_at("sums", tile)
    s.store_at("sums", 0, tile)
    s.decompose_reduction("sums", s.get_loops("sums")[-1])
    s.parallel(tile)


def _where_enough(s: Schedule) -> None:
    s.specialize_when("n >= 2", "sums", "result")
    _tiled(s)


@pytest.mark.long("compiles a kernel of each kind")
def test_compiled() -> None:
    assert_kept(
        {
            "overlapping": (KNOWN, _tiled),
            "one line a tile": (KNOWN, lambda s: s.tile_lines("sums", 0, 1)),
            "all lines": (KNOWN, lambda s: s.tile_lines("sums", 0, 5)),
            "strided": (STRIDED, lambda s: s.tile_lines("sums", 0, 3)),
            "much between lines": (WIDE, _tiled),
            "unknown": (UNKNOWN, _where_enough),
        }
    )


def test_points_between_lines_are_computed() -> None:
    """A tile of two lines has the one point between them, and nothing behind the last."""
    s = Schedule(KNOWN.func())
    s.tile_lines("sums", 0, 2)
    assert "T.alloc((3, 7)" in str(s.func)
    assert "a[T.min(3, vi_tile * 2) + (vj + vk) // 4, (vj + vk) % 4]" in str(s.func)


UNEVEN = "T.select(vj < 2, a[vi, vj], 0.0)"
REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "a parameter": (
        KNOWN,
        lambda s: s.tile_lines("result", 0, 2),
        "tile_lines, argument 1 'block': it stores to 'c', which is no temporary of its own",
    ),
    "no line behind": (
        KNOWN,
        lambda s: s.tile_lines("sums", 1, 2),
        "tile_lines, argument 2 'axis': 'sums' has no spatial axes 1 and 2",
    ),
    "tiles of nothing": (
        KNOWN,
        lambda s: s.tile_lines("sums", 0, 0),
        "tile_lines, argument 3 'lines': it must be positive, got 0",
    ),
    "more than there are": (
        KNOWN,
        lambda s: s.tile_lines("sums", 0, 6),
        "tile_lines, argument 3 'lines': it is not known that there are 6 lines",
    ),
    "maybe more than there are": (
        UNKNOWN,
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 3 'lines': it is not known that there are 2 lines",
    ),
    "a line inside another": (
        _program(5, "a[vi, vj * 2 + vk] * b[vk]", "5, 4"),
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 2 'axis': a line of 3 points is 2 before the next",
    ),
    "columns": (
        _program(5, "a[vj + vk, vi] * b[vk]", "4, 5"),
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 2 'axis': a[vj + vk, vi] does not go evenly from line to line",
    ),
    "an uneven distance": (
        _program(5, "a[vi, vj * 2 + vk] * b[vk]", "5, 7"),
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 2 'axis': a[vi, vj * 2 + vk] does not go evenly from line to line",
    ),
    "two distances": (
        _program(5, "a[vi, vj] * a[vi * 2, vj + vk] * b[vk]", "10, 4"),
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 2 'axis': what is read is not at one distance of lines, but 4, 8",
    ),
    "what is read is asked for": (
        _program(5, UNEVEN, "5, 2"),
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 2 'axis': more than what is read depends on it: " + UNEVEN,
    ),
    "nothing read": (
        _program(5, "b[vk]", "5, 4"),
        lambda s: s.tile_lines("sums", 0, 2),
        "tile_lines, argument 2 'axis': what is read is not at one distance of lines, but none",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert_refused(*REFUSED[case])
