"""Reductions whose output rows lie contiguous: matrix products, convolutions, column sums, pooling.

Lanes run along the output's innermost axis; a second axis, along which the vector operand does not
move, gives the rows of a register tile. A strip is some columns with all rows; threads share the
strips, and pieces of them where they are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, For, IfThen, Let, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from ..access import collapsed, may_trap
from ..layout import Layout, columns_of, layout_of, rows_of
from ..loops import (
    Tier,
    ceildiv,
    column_tiers,
    number,
    parallel,
    product,
    row_tiers,
    sequence,
    tile_tiers,
)
from ..micro_kernel import Before, micro_kernel, steps_in_row
from ..nest import Axis, Nest, Reduction
from ..packing import REPACK, Packing, packing_of
from ..tile import Tile, Values
from .dot_products import dot_products
from .result import GRAIN, with_init

PIECES = 4
"""Pieces of work a thread should have, so that the last ones end together."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Tiles of some columns, with tiles of one size after another along the rows."""

    column: Tier
    beside: Tier
    rows: tuple[Tier, ...]

    @property
    def count(self) -> PrimExpr:
        """How many strips of this width there are."""
        return multiply(self.column.count, self.beside.count)

    @property
    def width(self) -> int:
        """Vectors in a row of the tile."""
        return self.column.size * self.beside.size


def contraction(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the innermost spatial axis is contiguous in the output and in what is read."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = layout_of(nest, reduction, target, strided=True)
    if layout is None:
        return None
    strips = _strips(layout, target)
    found = packing_of(reduction, layout)
    few: Stmt | None = None
    if layout_of(nest, reduction, target) is not None:
        few = _laid_out(_Plan(nest, reduction, layout, strips, target))
    elif found is not None and layout.row is not None and number(layout.row.extent) is None:
        few = dot_products(nest, target)
    if found is None or layout.row is None:
        return few
    over_panels = _laid_out(_Plan(nest, reduction, layout, strips, target, found))
    if number(layout.row.extent) is not None or few is None:
        return over_panels
    return IfThen(Compare("ge", layout.row.extent, imm(found.rows)), over_panels, few)


def _strips(layout: Layout, target: Target) -> list[Strip]:
    """All widths of strips, the most common first."""
    largest = 2 * columns_of(target) if layout.row is None else columns_of(target)
    one = imm(1)
    strips: list[Strip] = []
    for column in column_tiers(layout.column.extent, layout.lanes, largest):
        extent = one if layout.beside is None else layout.beside.extent
        for beside in row_tiers(extent, max(1, largest // column.size)):
            width = column.size * beside.size
            most = max(1, min(8, rows_of(width, target)))
            extent = one if layout.row is None else layout.row.extent
            strips.append(Strip(column, beside, tuple(tile_tiers(extent, most, width))))
    return strips


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is laid out, and over what.

    Attributes:
        packed: How each strip's columns are copied to a panel first, None where they are not.
    """

    nest: Nest
    reduction: Reduction
    layout: Layout
    strips: Sequence[Strip]
    target: Target
    packed: Packing | None = None


def _laid_out(plan: _Plan) -> Stmt:
    """The parallel loop over all strips."""
    layout, reduction = plan.layout, plan.reduction
    count = product_sum([strip.count for strip in plan.strips])
    piece = _tiles_in_piece(plan, count)
    pieces = imm(1) if piece is None else _pieces(plan, piece)
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in layout.outer]
    domain += [("strip", count), ("piece", pieces)]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        place = coordinate(count)
        here = coordinate(pieces)
        return _strip_at(plan, outer, place, None if piece is None else (here, piece, pieces))

    widest = plan.strips[0]
    rows = imm(1) if layout.row is None else layout.row.extent
    if piece is not None:
        rows = Binary("min", rows, imm(piece * widest.rows[0].size))
    steps = product([a.extent for a in reduction.axes])
    work = multiply(multiply(steps, rows), imm(widest.width * layout.lanes))
    return parallel(domain, work, GRAIN, body)


def _tiles_in_piece(plan: _Plan, strips: PrimExpr) -> int | None:
    """How many whole tiles of rows make a piece of a strip; None for all of them."""
    target, layout, strip = plan.target, plan.layout, plan.strips[0]
    tasks = 1
    for extent in (strips, *(a.extent for a in layout.outer)):
        tasks *= number(extent) or 1
    wanted = PIECES * target.threads
    if layout.row is None or target.threads == 1 or tasks >= wanted:
        return None
    tile = strip.rows[0]
    least = 1 if plan.packed is None else -(-REPACK // tile.size)
    whole = number(tile.count)
    if whole is None:
        steps = number(product([a.extent for a in plan.reduction.axes])) or 64
        return max(least, -(-GRAIN // (steps * tile.size * strip.width * layout.lanes)))
    each = max(least, -(-whole * tasks // wanted))
    return each if each < whole else None


def _pieces(plan: _Plan, piece: int) -> PrimExpr:
    """How many pieces the strips have: one at least, which has the rows that fill no tile."""
    most = [ceildiv(strip.rows[0].count, imm(piece)) for strip in plan.strips]
    longest = most[0]
    for other in most[1:]:
        longest = longest if other == longest else Binary("max", longest, other)
    known = number(longest)
    return Binary("max", longest, imm(1)) if known is None else imm(max(known, 1))


Piece = tuple[PrimExpr, int, PrimExpr]
"""Which piece of a strip, how many tiles each has, and how many pieces there are."""


def _strip_at(plan: _Plan, outer: Values, place: PrimExpr, piece: Piece | None) -> Stmt:
    """The strip at a place in the order of all of them."""
    begins: list[PrimExpr] = [imm(0)]
    for strip in plan.strips:
        begins.append(add(begins[-1], strip.count))
    result: Stmt | None = None
    for begin, end, strip in reversed(list(zip(begins, begins[1:], plan.strips, strict=False))):
        index = PrimVar("tile")
        value = place if begin == imm(0) else Binary("sub", place, begin)
        this = Let(index, value, _strip(plan, strip, outer, index, piece))
        result = this if result is None else IfThen(Compare("lt", place, end), this, result)
    assert result is not None
    return result


def _strip(plan: _Plan, strip: Strip, outer: Values, index: PrimExpr, piece: Piece | None) -> Stmt:
    layout, reduction = plan.layout, plan.reduction
    column: PrimExpr = index
    beside: PrimExpr = imm(0)
    if number(strip.beside.count) != 1:
        column = Binary("floordiv", index, strip.beside.count)
        beside = Binary("floormod", index, strip.beside.count)
    outer = dict(outer)
    value = reduction.value
    finish = substitute_stmt(with_init(reduction, plan.nest.finish), outer)
    panel = None
    if plan.packed is not None:
        width = strip.column.size * layout.lanes
        panel = plan.packed.panel(width)
        first = _at(strip.column, column, 0, layout.lanes)
        value = plan.packed.from_panel(value, panel, width, first)
    reduction = replace(reduction, value=substitute_prim(value, outer))
    count = steps_in_row(plan.reduction, _tile_axes(layout))

    def kernel(row: Tier, at: PrimExpr, before: Before | None = None) -> Stmt:
        tile = _tile(layout, strip, row, column, beside, at)
        reading = tile if panel is None else replace(tile, masked=frozenset())  # it has no end
        return micro_kernel(reduction, finish, tile, reading, count, before)

    parts: list[Stmt] = []
    whole, *rest = strip.rows
    row = PrimVar("row")
    begin: PrimExpr = imm(0)
    tiles = whole.count
    if piece is not None:
        here, most, _ = piece
        begin = multiply(here, imm(most))
        tiles = Binary("min", Binary("sub", whole.count, begin), imm(most))
    if panel is not None and plan.packed is not None:
        packed = plan.packed
        copied = _tile(layout, strip, Tier(imm(0), imm(1), 1), column, imm(0), imm(0))
        if packed.transposed or not _has_tiles(whole, piece):
            parts.append(packed.fill(panel, copied, outer))
        else:  # the first tile leaves what it reads in the panel
            step = partial(packed.copied, panel, copied, outer)
            parts.append(kernel(whole, begin, step))
            begin, tiles = add(begin, imm(1)), Binary("sub", tiles, imm(1))
    parts.append(For(row, begin, simplify(tiles), kernel(whole, row)))
    ends: list[Stmt] = []
    for tier in rest:
        row = PrimVar("row")
        ends.append(For(row, imm(0), tier.count, kernel(tier, row)))
    if ends and piece is not None:
        here, _, pieces = piece
        last = Compare("eq", here, Binary("sub", pieces, imm(1)))
        ends = [IfThen(last, sequence(ends))]
    body = sequence(parts + ends)
    return body if panel is None else Allocate(panel, body)


def _has_tiles(whole: Tier, piece: Piece | None) -> bool:
    """Whether there is a tile of rows for certain, in each piece of a strip."""
    tiles = number(whole.count)
    if tiles is None or piece is None:
        return tiles is not None and tiles > 0
    _, each, pieces = piece
    count = number(pieces)
    return count is not None and (count - 1) * each < tiles


def _tile_axes(layout: Layout) -> tuple[Axis, ...]:
    return tuple(a for a in (layout.row, layout.beside) if a is not None)


def product_sum(counts: Sequence[PrimExpr]) -> PrimExpr:
    """Their sum."""
    total: PrimExpr = imm(0)
    for count in counts:
        total = add(total, count)
    return total


def _tile(
    layout: Layout, strip: Strip, of_row: Tier, column: PrimExpr, beside: PrimExpr, row: PrimExpr
) -> Tile:
    lane, lanes = PrimVar("lane"), layout.lanes
    vectors = [
        add(_at(strip.column, column, v * lanes, lanes), lane) for v in range(strip.column.size)
    ]
    lines = [_at(strip.beside, beside, i) for i in range(strip.beside.size)]
    last = len(vectors) - 1
    both = layout.beside is not None
    columns = [(v, line) if both else (v,) for line in lines for v in vectors]
    masked = [line * len(vectors) + last for line in range(len(lines)) if strip.column.masked]
    return Tile(
        row=None if layout.row is None else layout.row.var,
        rows=tuple(_at(of_row, row, r) for r in range(of_row.size)),
        column=tuple(axis.var for axis in layout.columns),
        columns=tuple(columns),
        lane=lane,
        lanes=lanes,
        limit=layout.column.extent,
        masked=frozenset(masked),
    )


def _at(tier: Tier, tile: PrimExpr, offset: int, lanes: int = 1) -> PrimExpr:
    """The value of an axis at an offset in a tile of a tier."""
    return add(add(tier.begin, multiply(tile, imm(tier.size * lanes))), imm(offset))
