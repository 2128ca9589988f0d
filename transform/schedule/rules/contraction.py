"""Reductions whose output rows lie contiguous: matrix products, convolutions, column sums, pooling.

Lanes run along the output's innermost axis; a second axis, along which the vector operand does not
move, gives the rows of a register tile. Threads share what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from .. import packing
from ..access import collapsed, may_trap
from ..layout import Layout, columns_of, layout_of
from ..loops import Tier, column_tiers, number, parallel, product, row_tiers, sequence
from ..nest import Nest, Reduction
from ..packing import Packing, packing_of
from ..tile import Tile, Values, accumulate, fill, loops, write_back

GRAIN = 60_000
"""Multiply-adds that are worth a thread's waking."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One size of tile: a tier for each of the tile's axes."""

    column: Tier
    beside: Tier
    row: Tier

    @property
    def tiers(self) -> tuple[tuple[str, Tier], ...]:
        """With names, the one to run fastest last."""
        return ("column", self.column), ("beside", self.beside), ("row", self.row)


def contraction(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the innermost spatial axis is contiguous in the output and in what is read."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = layout_of(nest, reduction, target)
    return None if layout is None else _tiles(nest, reduction, layout, target)


def _tiles(nest: Nest, reduction: Reduction, layout: Layout, target: Target) -> Stmt:
    largest = 4 if layout.row is None else columns_of(target)
    one = imm(1)
    parts: list[Stmt] = []
    for column in column_tiers(layout.column.extent, layout.lanes, largest):
        extent = one if layout.beside is None else layout.beside.extent
        for beside in row_tiers(extent, max(1, largest // column.size)):
            size = column.size * beside.size
            rows = min(8, (target.vector_registers - size - 1) // size)
            extent = one if layout.row is None else layout.row.extent
            cuts = [Cut(column, beside, row) for row in row_tiers(extent, rows)]
            parts.append(_cuts(nest, reduction, layout, cuts, target))
    return sequence(parts)


def _cuts(
    nest: Nest, reduction: Reduction, layout: Layout, cuts: Sequence[Cut], target: Target
) -> Stmt:
    """The tiles of some columns: over a packed copy of what they read, where rows repay it."""
    plain = sequence([_tier(nest, reduction, layout, cut) for cut in cuts])
    found = packing_of(reduction, layout, cuts[0].column, target)
    if found is None or layout.row is None:
        return plain
    over_panel = _packed(nest, reduction, layout, cuts, found)
    if number(layout.row.extent) is not None:
        return over_panel
    return IfThen(Compare("ge", layout.row.extent, imm(packing.ROWS)), over_panel, plain)


def _packed(
    nest: Nest, reduction: Reduction, layout: Layout, cuts: Sequence[Cut], found: Packing
) -> Stmt:
    """Per tile of columns: the panel, then all rows over it."""
    tier = cuts[0].column
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in layout.outer]
    domain.append(("column", tier.count))
    assert layout.row is not None
    elements = product([reduction.axes[0].extent, layout.row.extent])

    def body(point: Sequence[PrimExpr]) -> Stmt:
        outer: Values = {a.var: p for a, p in zip(layout.outer, point, strict=False)}
        panel = found.panel(tier.size * layout.lanes)
        first = _at(tier, point[-1], 0, layout.lanes)
        moved = replace(reduction, value=found.from_panel(reduction.value, panel, first))
        stmts = [found.fill(panel, _tile(layout, cuts[0], point[-1], imm(0), imm(0)), outer)]
        for cut in cuts:
            row = PrimVar("row")
            tile = _tile(layout, cut, point[-1], imm(0), row)
            kernel = _micro_kernel(nest, moved, tile, outer, packed=True)
            stmts.append(For(row, imm(0), cut.row.count, kernel))
        return Allocate(panel, Seq(tuple(stmts)))

    return parallel(domain, multiply(elements, imm(tier.size * layout.lanes)), GRAIN, body)


def _tier(nest: Nest, reduction: Reduction, layout: Layout, cut: Cut) -> Stmt:
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in layout.outer]
    domain += [(name, tier.count) for name, tier in cut.tiers]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]
    steps = product([a.extent for a in reduction.axes])
    size = cut.column.size * cut.beside.size * cut.row.size * layout.lanes

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        column, beside, row = [coordinate(tier.count) for _, tier in cut.tiers]
        tile = _tile(layout, cut, column, beside, row)
        return _micro_kernel(nest, reduction, tile, outer)

    return parallel(domain, multiply(steps, imm(size)), GRAIN, body)


def _tile(layout: Layout, cut: Cut, column: PrimExpr, beside: PrimExpr, row: PrimExpr) -> Tile:
    lane, lanes = PrimVar("lane"), layout.lanes
    vectors = [add(_at(cut.column, column, v * lanes, lanes), lane) for v in range(cut.column.size)]
    lines = [_at(cut.beside, beside, i) for i in range(cut.beside.size)]
    last = len(vectors) - 1
    both = layout.beside is not None
    columns = [(v, line) if both else (v,) for line in lines for v in vectors]
    masked = [line * len(vectors) + last for line in range(len(lines)) if cut.column.masked]
    return Tile(
        row=None if layout.row is None else layout.row.var,
        rows=tuple(_at(cut.row, row, r) for r in range(cut.row.size)),
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


def _micro_kernel(
    nest: Nest, reduction: Reduction, tile: Tile, outer: Values, packed: bool = False
) -> Stmt:
    size = len(tile.rows) * len(tile.columns) * tile.lanes
    buffer = Buffer("acc", (imm(size),), reduction.value.dtype, scope="local")
    value = substitute_prim(reduction.value, outer)
    start = fill(tile, reduction.identity, buffer)
    reading = replace(tile, masked=frozenset()) if packed else tile  # a panel has no end
    step = loops(reduction.axes, accumulate(reading, reduction, value, buffer))
    finish = substitute_stmt(with_init(reduction, nest.finish), outer)
    return Allocate(buffer, Seq((start, step, write_back(tile, reduction, finish, buffer))))


def with_init(reduction: Reduction, finish: Stmt) -> Stmt:
    """The stores, the accumulated value joined to the init where it is not the neutral element."""
    if reduction.init == reduction.identity:
        return finish
    joined = Binary(reduction.op, reduction.init, reduction.result)
    return substitute_stmt(finish, {reduction.result: joined})
