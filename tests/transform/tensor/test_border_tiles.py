"""Lines whose ends see a border: whole tiles that may share rows, smaller ones of short lines."""

from __future__ import annotations

from random import Random

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.ir.attrs import Attrs
from unity.ir.prim_expr import Imm
from unity.ir.stmt import Block, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.script import parse
from unity.transform.blocks.tree import all_blocks
from unity.transform.tensor import PartitionLoops, lowering
from unity.transform.tensor.tails.tail_tiles import halves

LINE = """
n = dim("n")


@script.prim_func(attrs=ATTRS)
def main(a: f32[Buffer, n], w: f32[Buffer, TAPS], c: f32[Buffer, COUNT]) -> None:
    for tile in range((COUNT + LAST) // ROWS):
        t = T.alloc((ROWS,), "float32", scope="local")
        for i in T.unroll(ROWS):
            with T.block("init"):
                vi = T.axis.spatial(COUNT, tile * ROWS + i)
                vr = T.axis.spatial(ROWS, i)
                T.where(tile * ROWS + i < COUNT)
                t[vr] = 0.0
        for k in T.unroll(TAPS):
            for i in T.unroll(ROWS):
                with T.block("sum"):
                    vi = T.axis.spatial(COUNT, tile * ROWS + i)
                    vr = T.axis.spatial(ROWS, i)
                    vk = T.axis.reduce(TAPS, k)
                    T.where(tile * ROWS + i < COUNT and 0 <= PLACE - PAD and PLACE - PAD < n)
                    t[vr] += a[vi * STEP + vk * GAP - PAD] * w[vk]
        for i in T.unroll(ROWS):
            with T.block("copy"):
                vi = T.axis.spatial(COUNT, tile * ROWS + i)
                vr = T.axis.spatial(ROWS, i)
                T.where(tile * ROWS + i < COUNT)
                c[vi] = STORED
"""


def line(
    rows: int,
    taps: int,
    step: int,
    pads: tuple[int, int],
    stored: str = "t[vr]",
    attrs: Attrs | None = None,
    gap: int = 1,
) -> PrimFunc:
    """Taps so many elements apart over a line, some rows in a tile."""
    room = sum(pads) - (taps - 1) * gap - 1
    text = LINE.replace("ATTRS", "{}").replace("STORED", stored)
    text = text.replace("PLACE", "(tile * ROWS + i) * STEP + k * GAP").replace("PAD", str(pads[0]))
    text = text.replace("GAP", str(gap))
    text = text.replace("COUNT", f"((n + {room}) // STEP + 1)").replace("STEP", str(step))
    text = text.replace("TAPS", str(taps)).replace("LAST", str(rows - 1))
    func = parse(text.replace("ROWS", str(rows))).prim_funcs()["main"]
    return func if attrs is None else PrimFunc(func.params, func.body, attrs)


def tiles(func: PrimFunc) -> list[object]:
    """The rows of each tile."""
    every = [s for s in walk_stmt(func.body) if isinstance(s, For) and isinstance(s.body, Block)]
    begun = [s for s in every if isinstance(s.body, Block) and s.body.name.startswith("init")]
    return [s.extent.value for s in begun if isinstance(s.extent, Imm)]


@pytest.mark.parametrize(
    ("rows", "taps", "step", "pads"),
    [
        (4, 3, 1, (1, 1)),
        (5, 3, 2, (1, 1)),
        (3, 3, 2, (0, 1)),
        (4, 3, 1, (2, 0)),
        (6, 7, 1, (3, 3)),
        (2, 3, 3, (1, 1)),
    ],
)
def test_ends_are_whole_tiles_and_those_between_may_share_rows(
    rows: int, taps: int, step: int, pads: tuple[int, int]
) -> None:
    before = line(rows, taps, step, pads)
    parted = after(before, PartitionLoops())
    assert tiles(parted)[:3] == [rows] * 3
    assert rows not in tiles(parted)[3:], "of short lines there is no whole tile between borders"
    low = after(before, *lowering())
    for n in range(max(1, taps - sum(pads)), (3 * rows + 3) * step):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize(
    ("stored", "attrs", "rows", "pads"),
    [
        ("c[vi] + t[vr]", None, 4, (1, 1)),
        ("t[vr]", Attrs(overwritable=(0,)), 4, (1, 1)),
        ("t[vr]", None, 2, (2, 2)),
    ],
    ids=["adds to what there was", "may write over its input", "borders wider than a tile"],
)
def test_rows_are_computed_once_where_that_matters(
    stored: str, attrs: Attrs | None, rows: int, pads: tuple[int, int]
) -> None:
    before = line(rows, 5 if rows == 2 else 3, 1, pads, stored, attrs)
    parted = after(before, PartitionLoops())
    assert tiles(parted)[:2] == [1, rows]
    assert tiles(parted).count(rows) == 1
    low = after(before, *lowering())
    for n in range(3, 14):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize(
    ("rows", "taps", "step", "pads", "gap"),
    [
        (3, 3, 1, (4, 4), 4),
        (6, 3, 1, (4, 4), 4),
        (2, 3, 1, (5, 0), 5),
        (3, 3, 1, (8, 0), 4),
        (3, 3, 1, (0, 8), 4),
        (2, 5, 1, (12, 12), 6),
        (4, 3, 2, (6, 6), 6),
        (4, 2, 1, (3, 2), 7),
        (2, 4, 1, (1, 9), 3),
    ],
)
def test_borders_of_dilated_lines_are_tiles_of_what_sees_the_same(
    rows: int, taps: int, step: int, pads: tuple[int, int], gap: int
) -> None:
    before = line(rows, taps, step, pads, gap=gap)
    parted = after(before, PartitionLoops())
    size = min(rows, gap // step)
    found = [[n, *halves(n)] for n in (rows, size)]
    assert tiles(parted) == [*found[0], *found[1]], "each once"
    asked = [b.predicate for b in all_blocks(parted.body) if b.predicate is not None]
    assert len(asked) == len(found[1]), "no row whether it is there"
    low = after(before, *lowering())
    reach = (taps - 1) * gap
    for n in range(max(1, reach + 1 - sum(pads)), 2 * reach + (2 * rows + 3) * step):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize(("rows", "step", "pads"), [(3, 1, (0, 3)), (4, 1, (2, 2)), (2, 2, (3, 4))])
def test_a_single_tap_has_no_neighbours(rows: int, step: int, pads: tuple[int, int]) -> None:
    """The loop over it moves nothing."""
    before = line(rows, 1, step, pads, gap=2)
    low = after(before, *lowering())
    for n in range(1, (2 * rows + 3) * step):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize("seed", range(8))
def test_random_lines(seed: int) -> None:
    """Borders up to wider than a tile, on either side, and every length up to two tiles."""
    random = Random(seed)
    rows, taps, step = random.randint(2, 5), random.randint(2, 6), random.choice((1, 1, 2, 3))
    gap = random.choice((1, 1, 2, 3, 4))
    reach = (taps - 1) * gap
    pads = random.randint(0, reach + 1), random.randint(0, reach + 1)
    before = line(rows, taps, step, pads, gap=gap)
    low = after(before, *lowering())
    for n in range(max(1, reach + 1 - sum(pads)), reach + (2 * rows + 3) * step):
        assert_same(before, low, {"n": n})


@pytest.mark.parametrize(
    ("pads", "shares"), [((2, 0), True), ((0, 2), True), ((2, 1), True), ((3, 0), False)]
)
def test_borders_are_no_wider_than_a_tile(pads: tuple[int, int], shares: bool) -> None:
    before = line(2, 5, 1, pads)
    assert (tiles(after(before, PartitionLoops()))[:2] == [2, 2]) is shares
    low = after(before, *lowering())
    for n in range(max(1, 5 - sum(pads)), 14):
        assert_same(before, low, {"n": n})


def filled(rows: int, taps: int, before: int, many: str) -> PrimFunc:
    """A line that so many tiles fill, so that no block asks whether its row is there."""
    text = LINE.replace("ATTRS", "{}").replace("STORED", "t[vr]").replace("STEP", "1")
    text = text.replace(" * GAP", "")
    text = text.replace("                T.where(tile * ROWS + i < COUNT)\n", "")
    text = text.replace("tile * ROWS + i < COUNT and ", "").replace("(COUNT + LAST) // ROWS", many)
    text = text.replace("PLACE", "tile * ROWS + i + k").replace("PAD < n", "PAD < COUNT")
    text = text.replace("Buffer, n]", "Buffer, COUNT]").replace("COUNT", f"(ROWS * {many})")
    text = text.replace("PAD", str(before)).replace("TAPS", str(taps)).replace("ROWS", str(rows))
    return parse(text).prim_funcs()["main"]


@pytest.mark.parametrize(
    ("rows", "taps", "before"), [(4, 3, 1), (4, 3, 2), (3, 5, 2), (2, 5, 2), (4, 7, 0), (2, 2, 1)]
)
def test_lines_that_tiles_fill_have_borders_apart(rows: int, taps: int, before: int) -> None:
    func = filled(rows, taps, before, "n")
    parted = after(func, PartitionLoops())
    if taps - 1 <= rows:
        assert tiles(parted)[:2] == [rows] * 2
    low = after(func, *lowering())
    for n in range(1, 9):
        assert_same(func, low, {"n": n})


@pytest.mark.parametrize("tiles_there", [4, 64, 65, 300])
def test_known_lines_have_borders_apart_however_long(tiles_there: int) -> None:
    func = filled(4, 3, 1, str(tiles_there))
    parted = after(func, PartitionLoops())
    loops = [s for s in walk_stmt(parted.body) if isinstance(s, For) and s.kind == "serial"]
    assert [s.extent.value for s in loops if isinstance(s.extent, Imm)] == [tiles_there - 2]
    assert not [b for s in loops for b in walk_stmt(s) if isinstance(b, Block) and b.predicate]
    assert_same(func, after(func, *lowering()), {})
