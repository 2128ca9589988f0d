"""skip_padding: taps that read padding are left out, and the sums are what they were."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.ir.prim_expr import imm
from unity.ir.stmt import Block, For
from unity.ir.visit import walk_stmt
from unity.transform.schedule import Schedule
from unity.transform.tensor import PartitionLoops

SUMS = Program(
    "a: f32[Buffer, n, 9], w: f32[Buffer, 3, 5], c: f32[Buffer, n, 9]",
    """
for y, x, ky, kx in T.grid(n, 9, 3, 5):
    with T.block("sum"):
        vy, vx, vky, vkx = T.axis.remap("SSRR", y, x, ky, kx)
        with T.init():
            c[vy, vx] = 0.0
        c[vy, vx] += T.select(
            vy + vky >= 1 and vy + vky < n + 1 and 1 < vx + vkx and 11 > vx + vkx,
            a[vy + vky - 1, vx + vkx - 2],
            0.0,
        ) * w[vky, vkx]
""",
    ({"n": 5}, {"n": 1}, {"n": 0}),
)
LINES = Program(
    "a: f32[Buffer, 2, n], k: f32[Buffer, 4], c: f32[Buffer, 2, (n + 1) // 2]",
    """
for y, x, kx in T.grid(2, (n + 1) // 2, 4):
    with T.block("sum"):
        vy, vx, vkx = T.axis.remap("SSR", y, x, kx)
        with T.init():
            c[vy, vx] = 0.0
        c[vy, vx] += T.select(
            vx * 2 + vkx >= 2 and vx * 2 + vkx < n + 2, a[vy, vx * 2 + vkx - 2], 0.0
        ) * k[vkx]
""",
    tuple({"n": n} for n in (0, 1, 2, 3, 7, 10, 13, 16)),
)
BACKWARDS = Program(
    "a: f32[Buffer, 12], c: f32[Buffer, 5]",
    """
for i, k in T.grid(5, 4):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            c[vi] = 0.0
        c[vi] += T.select(vi * 3 - vk <= 11 and vi * 3 - vk > -1, a[vi * 3 - vk], 0.0)
""",
    ({},),
)


def _whole(s: Schedule, *also: str) -> None:
    s.decompose_reduction("sum", s.get_loops("sum")[-2])
    for block in ("sum", *also):
        s.skip_padding(block)


def _tiled(s: Schedule, factor: int, *, fused: bool = False) -> None:
    """Tiles of pixels that are written out, taps around them; lines on threads."""
    y, x, ky, kx = s.get_loops("sum")
    tile, pixel = s.split(x, [None, factor])
    s.reorder(y, tile, ky, kx, pixel)
    s.decompose_reduction("sum", ky)
    s.skip_padding("sum")
    s.unroll(pixel)
    s.parallel(s.fuse(y, tile) if fused else y)


def _taps_written_out(s: Schedule) -> None:
    y, x, ky, kx = s.get_loops("sum")
    lines, line = s.split(y, [None, 2])
    tile, pixel = s.split(x, [None, 4])
    s.reorder(lines, tile, ky, kx, line, pixel)
    s.decompose_reduction("sum", ky)
    s.skip_padding("sum")
    for loop in (kx, line, pixel):
        s.unroll(loop)


def _lanes(s: Schedule) -> None:
    y, x, ky, kx = s.get_loops("sum")
    tile, pixel = s.split(x, [None, 4])
    s.reorder(y, tile, ky, kx, pixel)
    s.decompose_reduction("sum", ky)
    s.skip_padding("sum")
    s.vectorize(pixel)


def _lines(s: Schedule, *, written_out: bool = False, runs: int = 1) -> None:
    """Tiles of a line of unknown length, both of whose ends see padding."""
    _, x, kx = s.get_loops("sum")
    tile, pixel = s.split(x, [None, 3])
    if runs > 1:
        _, tile = s.split(tile, [runs, None])
    s.reorder(tile, kx, pixel)
    s.decompose_reduction("sum", kx)
    s.skip_padding("sum")
    for loop in (pixel, s.get_loops("sum_init")[-1], *([kx] if written_out else [])):
        s.unroll(loop)


def _backwards(s: Schedule) -> None:
    i, k = s.get_loops("sum")
    tile, point = s.split(i, [None, 2])
    s.reorder(tile, k, point)
    s.decompose_reduction("sum", k)
    s.skip_padding("sum")
    s.unroll(point)


def _before_other_steps(s: Schedule) -> None:
    _whole(s)
    y, x, ky, kx = s.get_loops("sum")
    s.split(x, [None, 4])
    s.split(kx, [2, None])
    s.split(ky, [None, 2])
    s.parallel(y)


CASES: dict[str, tuple[Program, Steps]] = {
    "as it is": (SUMS, _whole),
    "tiles": (SUMS, lambda s: _tiled(s, 4)),
    "one tile": (SUMS, lambda s: _tiled(s, 16)),
    "tiles and lines fused": (SUMS, lambda s: _tiled(s, 4, fused=True)),
    "lines in tiles": (SUMS, _taps_written_out),
    "lanes": (SUMS, _lanes),
    "other steps behind it": (SUMS, _before_other_steps),
    "lines of unknown length": (LINES, _lines),
    "the same with taps written out": (LINES, lambda s: _lines(s, written_out=True)),
    "in runs of tiles": (LINES, lambda s: _lines(s, runs=2)),
    "backwards": (BACKWARDS, _backwards),
}


@pytest.mark.rotated(1 / 4)
@pytest.mark.long("compiles a kernel of each kind")
def test_compiled() -> None:
    assert_kept(CASES)


@pytest.mark.parametrize("factor", [3, 4])
def test_nothing_is_asked_in_tiles(factor: int) -> None:
    """Where sizes are known, loops are cut so that no predicate is left."""
    s = Schedule(SUMS.func(), None)
    s.specialize({"n": 6})
    _tiled(s, factor)
    for loop in s.get_loops("sum_init")[1:]:
        s.unroll(loop)
    body = PartitionLoops().partition(s.func).body
    assert all(b.predicate is None for b in walk_stmt(body) if isinstance(b, Block))
    begins = [str(x.begin) for x in walk_stmt(body) if isinstance(x, For) and x.kind == "unrolled"]
    assert len(set(begins)) > 1


def test_nothing_is_asked_in_tiles_of_an_unknown_line() -> None:
    """Single pixels are left that see a border, in loops over the taps that they see."""
    s = Schedule(LINES.func(), None)
    _lines(s)
    body = PartitionLoops().partition(s.func).body
    assert all(b.predicate is None for b in walk_stmt(body) if isinstance(b, Block))
    sizes = [x.extent for x in walk_stmt(body) if isinstance(x, For) and x.kind == "unrolled"]
    assert sizes == [imm(n) for n in (1, 1, 3, 3, 2, 2, 1, 1, 1, 1)]


REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "an init": (SUMS, lambda s: s.skip_padding("sum"), "'sum' has an init"),
    "no choice": (
        SUMS,
        lambda s: _whole(s, "sum"),
        "'sum' makes no choice, or one of which both parts count",
    ),
    "no reduction": (
        SUMS,
        lambda s: _whole(s, "sum_init"),
        "'sum_init' does not reduce one formula by an operation with a zero",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    program, steps, why = REFUSED[name]
    assert_refused(program, steps, f"skip_padding, argument 1 'block': {why}")
