"""Products whose columns lie far apart: a strip of them is copied to a panel, the next one fetched.

The first tile of rows copies what it reads, the others read the panel in order. Columns that come
from behind the second cache are asked for by tiles of the strip before: no one else would, as each
line of memory is read once. 64 x 256 by 256 x 3136 floats, a convolution of single pixels, take
670 us with tiles of four vectors and nothing fetched, and 620 so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from unity.ir.prim_expr import Binary, Compare, Intrinsic, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Evaluate, For, IfThen, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from ..access import collapsed, known_of, may_trap, place, step
from ..layout import Layout, columns_of, layout_of, rows_of
from ..loops import Tier, column_tiers, number, parallel, sequence, tile_tiers
from ..micro_kernel import Before, micro_kernel, steps_in_row
from ..nest import Axis, Nest, Reduction
from ..packing import REPACK, Packing, packing_of
from ..tile import Tile, Values
from .result import GRAIN, PIECES, with_init

MOST_ROWS = 8
"""Rows of a tile, at most."""
STEP = 0.5, 1.0
"""Cycles of a step beside the multiplications: from the first cache, from the second."""
FAR = 0.35
"""Cycles that each vector from the second cache costs besides."""
FINISH = 30
"""Cycles until a tile's last sums are there."""
PAGE = 4096
"""Bytes of a page."""
LINE = 64
"""Bytes that one fetch brings."""


@dataclass(frozen=True, slots=True)
class Strips:
    """Strips of one width, and the tiles of rows that pass over each.

    Attributes:
        columns: The strips; their size counts vectors.
        rows: The tiles, those of the first size before the rest.
    """

    columns: Tier
    rows: tuple[Tier, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is laid out.

    Attributes:
        nest: The (collapsed) stage.
        reduction: What it sums up.
        layout: The roles of its axes.
        packing: What is copied.
        steps: How many steps the sum has.
        ahead: Whether the next strip is to be fetched.
    """

    nest: Nest
    reduction: Reduction
    layout: Layout
    packing: Packing
    steps: int
    ahead: bool


def packed_columns(nest: Nest, target: Target) -> Stmt | None:
    """Applies where columns worth a copy lie side by side, and their sizes are known."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = layout_of(nest, reduction, target, strided=True)
    packing = None if layout is None else packing_of(reduction, layout)
    if layout is None or packing is None or layout.row is None:
        return None
    steps, columns = number(packing.depth.extent), number(layout.column.extent)
    rows = number(layout.row.extent)
    if not steps or not columns or not rows:
        return None
    known = known_of((*layout.outer, layout.column, layout.row, packing.depth))
    if step(place(packing.load, known), layout.column.var) != 1:
        return None
    size = steps * columns * packing.load.dtype.bytes
    plan = Plan(nest, reduction, layout, packing, steps, size > target.l2_bytes)
    most = _most_rows(plan, layout.row, target)
    return _laid_out(plan, _strips(plan, columns, rows, most, target), rows, target)


def _strips(plan: Plan, columns: int, rows: int, most: int, target: Target) -> list[Strips]:
    """All columns, in strips that cost least."""
    layout = plan.layout

    def of_width(vectors: int) -> list[Strips]:
        found: list[Strips] = []
        for tier in column_tiers(imm(columns), layout.lanes, vectors):
            largest = max(1, min(most, rows_of(tier.size, target)))
            found.append(Strips(tier, tuple(tile_tiers(imm(rows), largest, tier.size))))
        return found

    def cost(vectors: int) -> float:
        total, tasks = 0.0, 0
        for strips in of_width(vectors):
            count = number(strips.columns.count) or 0
            tasks += count
            for tier in strips.rows:
                tiles = count * (number(tier.count) or 0)
                total += tiles * _cost(plan, tier, strips.columns, target)
        _, pieces = _pieces(layout, of_width(vectors)[0].rows[0], tasks, target)
        tasks *= pieces * math.prod(number(a.extent) or 1 for a in layout.outer)
        rounds = -(-tasks // target.threads)
        return total * rounds * target.threads / tasks

    return of_width(min(range(columns_of(target), 0, -1), key=cost))


def _most_rows(plan: Plan, row: Axis, target: Target) -> int:
    """Rows of a tile such that what is read for each of them stays in the first cache together.

    Rows that lie a multiple of a page apart share its sets, a way of which is a page large.
    """
    known = known_of((*plan.layout.outer, plan.layout.column, row, plan.packing.depth))
    ways, most = max(2, target.l1_bytes // PAGE), MOST_ROWS
    for load in plan.reduction.loads():
        apart = step(place(load, known), row.var)
        if apart and load is not plan.packing.load:
            sets = PAGE // math.gcd(PAGE, abs(apart) * load.dtype.bytes)
            most = min(most, sets * ways // 2)
    return most


def _cost(plan: Plan, rows: Tier, columns: Tier, target: Target) -> float:
    """Cycles of a tile: two multiplications or loads each, four of latency."""
    sums = rows.size * columns.size
    panel = plan.steps * columns.size * plan.layout.lanes * plan.packing.load.dtype.bytes
    near, far = STEP
    beside = near if panel <= target.l1_bytes // 2 else far + FAR * columns.size
    each = max(sums / 2, (rows.size + columns.size) / 2, 4) + beside
    return plan.steps * each + sums + FINISH


def _laid_out(plan: Plan, strips: Sequence[Strips], rows: int, target: Target) -> Stmt:
    """The parallel loop over all strips, and pieces of them where they are few."""
    layout = plan.layout
    counts = [number(s.columns.count) or 0 for s in strips]
    count = sum(counts)
    tiles, most = _pieces(layout, strips[0].rows[0], count, target)
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in layout.outer]
    domain += [(n, imm(e)) for n, e in (("strip", count), ("piece", most)) if e > 1]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)
        outer: Values = {a.var: next(at) for a in layout.outer}
        strip = next(at) if count > 1 else imm(0)
        piece = next(at) if most > 1 else None
        begin = count
        result: Stmt | None = None
        for some, each in reversed(list(zip(strips, counts, strict=True))):
            begin -= each
            this = _strip(plan, some, outer, add(strip, imm(-begin)), (piece, tiles, most))
            inside = Compare("lt", strip, imm(begin + each))
            result = this if result is None else IfThen(inside, this, result)
        assert result is not None
        return result

    together = min(rows, tiles * strips[0].rows[0].size)
    work = plan.steps * together * strips[0].columns.size * layout.lanes
    return parallel(domain, imm(work), GRAIN, body)


def _pieces(layout: Layout, rows: Tier, strips: int, target: Target) -> tuple[int, int]:
    """How many whole tiles of rows each piece of a strip has, and how many pieces there are."""
    whole = max(1, number(rows.count) or 0)
    tasks = strips * math.prod(number(a.extent) or 1 for a in layout.outer)
    wanted = PIECES * target.threads
    if target.threads == 1 or tasks >= wanted:
        return whole, 1
    each = max(-(-REPACK // rows.size), -(-whole * tasks // wanted))
    return min(each, whole), -(-whole // each)


def _strip(
    plan: Plan,
    strips: Strips,
    outer: Values,
    index: PrimExpr,
    piece: tuple[PrimExpr | None, int, int],
) -> Stmt:
    """A strip's tiles, or those of a piece: the first copies, the next few fetch."""
    layout, columns = plan.layout, strips.columns
    whole, *rest = strips.rows
    here, most, pieces = piece
    width = columns.size * layout.lanes
    first = add(columns.begin, multiply(index, imm(width)))
    panel = plan.packing.panel(width)
    value = substitute_prim(
        plan.packing.from_panel(plan.reduction.value, panel, width, first), outer
    )
    reduction = replace(plan.reduction, value=value)
    finish = substitute_stmt(with_init(plan.reduction, plan.nest.finish), outer)
    assert layout.row is not None
    count = steps_in_row(plan.reduction, (layout.row,))

    def kernel(tier: Tier, row: PrimExpr, before: Before | None = None) -> Stmt:
        tile = _tile(layout, columns, tier, first, row)
        reading = replace(tile, masked=frozenset())  # a panel has no end
        return micro_kernel(reduction, finish, tile, reading, count, before)

    one = Tier(imm(0), imm(1), 1)
    copied = partial(plan.packing.copied, panel, _tile(layout, columns, one, first, imm(0)), outer)
    begin = imm(0) if here is None else multiply(here, imm(most))
    tiles = number(whole.count) or 0
    end = imm(tiles) if here is None else Binary("min", add(begin, imm(most)), imm(tiles))
    parts = [kernel(whole, begin, copied)]
    following = add(begin, imm(1))
    if plan.ahead and (number(columns.count) or 0) > 1 and most > 1:
        fetches, fetching = _ahead(plan, columns, index, outer, min(most, tiles) - 1)
        row = PrimVar("row")
        there = add(following, row)
        behind = Binary("min", imm(fetching), Binary("sub", end, following))
        tile = kernel(whole, there, partial(fetches, row))
        parts.append(For(row, imm(0), imm(fetching) if here is None else behind, tile))
        following = add(following, imm(fetching))
    row = PrimVar("row")
    left = Binary("max", Binary("sub", end, following), imm(0))
    parts.append(For(row, following, left, kernel(whole, row)))
    ends = [kernel(tier, imm(0)) for tier in rest]
    if ends and here is not None:
        ends = [IfThen(Compare("eq", here, imm(pieces - 1)), sequence(ends))]
    return Allocate(panel, sequence(parts + ends))


def _ahead(
    plan: Plan, columns: Tier, index: PrimExpr, outer: Values, tiles: int
) -> tuple[Callable[[PrimExpr, PrimExpr], Stmt], int]:
    """What a tile fetches before a step, by its number, and how many tiles there are to do so.

    Each asks for the last element of some lines. The first line of a strip that begins inside one
    came with the strip before.
    """
    load, depth = plan.packing.load, plan.packing.depth.var
    line = max(1, LINE // load.dtype.bytes)
    width = columns.size * plan.layout.lanes
    lines = -(-width // line)
    each = -(-lines // tiles)
    following = Binary("min", add(index, imm(1)), Binary("sub", columns.count, imm(1)))
    first = add(columns.begin, multiply(following, imm(width)))

    def fetch(tile: PrimExpr, at: PrimExpr) -> Stmt:
        fetches: list[Stmt] = []
        for i in range(each):
            end = multiply(add(multiply(tile, imm(each)), imm(i + 1)), imm(line))
            last = Binary("min", end, imm(width)) if each > 1 or width % line else end
            place = add(first, Binary("sub", last, imm(1)))
            values: Values = {**outer, plan.packing.column: place, depth: at}
            fetched = substitute_prim(load, values)
            fetches.append(Evaluate(Intrinsic("prefetch", (fetched,), load.dtype)))
        return sequence(fetches)

    return fetch, -(-lines // each)


def _tile(layout: Layout, columns: Tier, of_row: Tier, first: PrimExpr, row: PrimExpr) -> Tile:
    lane, lanes = PrimVar("lane"), layout.lanes
    begin = add(of_row.begin, multiply(row, imm(of_row.size)))
    assert layout.row is not None
    return Tile(
        row=layout.row.var,
        rows=tuple(add(begin, imm(r)) for r in range(of_row.size)),
        column=(layout.column.var,),
        columns=tuple((add(add(first, imm(v * lanes)), lane),) for v in range(columns.size)),
        lane=lane,
        lanes=lanes,
        limit=layout.column.extent,
        masked=frozenset({columns.size - 1} if columns.masked else ()),
    )
