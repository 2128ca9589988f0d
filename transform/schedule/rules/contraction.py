"""Reductions whose output rows lie contiguous: matrix products, convolutions, column sums, pooling.

Lanes run along the output's innermost axis; a second axis, along which the vector operand does not
move, gives the rows of a register tile. Threads share what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from ..access import all_axes, collapsed, known_of, may_trap, mentions, place, step
from ..loops import Tier, column_tiers, lanes_for, number, parallel, product, row_tiers, sequence
from ..nest import Axis, Nest, Reduction
from ..tile import Tile, Values, accumulate, fill, loops, write_back

GRAIN = 60_000
"""Multiply-adds that are worth a thread's waking."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which axis is which."""

    column: Axis
    row: Axis | None
    outer: tuple[Axis, ...]
    lanes: int


def contraction(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the innermost spatial axis is contiguous in the output and in what is read."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = layout_of(nest, reduction, target)
    return None if layout is None else _tiles(nest, reduction, layout, target)


def layout_of(nest: Nest, reduction: Reduction, target: Target) -> Layout | None:
    """Roles for the axes; None where lanes along the columns would gather, and need not."""
    if not nest.axes:
        return None
    column = nest.axes[-1]
    extent = number(column.extent)
    known = known_of(all_axes(nest))
    if extent is not None and extent < 2:
        return None
    if any(step(place(s, known), column.var) != 1 for s in nest.stores()):
        return None
    reads = [place(x, known) for x in nest.loads()]
    steps = [step(index, column.var) for index in reads]
    lanes_on_sum = lanes_along(nest, reduction, known)
    if lanes_on_sum and (any(s not in (0, 1) for s in steps) or (extent or 99) < 4):
        return None
    bits = max(
        [reduction.value.dtype.bits]
        + [x.buffer.dtype.bits for x, s in zip(nest.loads(), steps, strict=True) if s]
    )
    lanes = lanes_for(bits, target.vector_bits, column.extent)
    row = _row_axis(nest, column, reads)
    outer = tuple(a for a in nest.axes if a is not column and a is not row)
    return Layout(column, row, outer, lanes)


def lanes_along(nest: Nest, reduction: Reduction, known: Analyzer) -> bool:
    """Whether every read moves by one, or not at all, along the innermost reduced axis."""
    last = reduction.axes[-1]
    extent = number(last.extent)
    steps = [step(place(x, known), last.var) for x in nest.loads()]
    return all(s in (0, 1) for s in steps) and 1 in steps and (extent is None or extent >= 4)


def _row_axis(nest: Nest, column: Axis, reads: Sequence[Poly]) -> Axis | None:
    """The axis along which nothing that moves along the columns moves: the longest such."""
    vectors = [index for index in reads if mentions(index, column.var)]
    fitting = [
        axis
        for axis in nest.axes
        if axis is not column
        and not any(mentions(index, axis.var) for index in vectors)
        and (number(axis.extent) or 99) > 1
    ]
    return max(fitting, key=lambda a: number(a.extent) or 1 << 30, default=None)


def _tiles(nest: Nest, reduction: Reduction, layout: Layout, target: Target) -> Stmt:
    columns = 4 if target.vector_registers >= 32 else 2
    if layout.row is None:
        columns = 4
    parts: list[Stmt] = []
    for tier in column_tiers(layout.column.extent, layout.lanes, columns):
        rows = (target.vector_registers - tier.size - 1) // tier.size
        rows = min(rows, 8)
        extent = imm(1) if layout.row is None else layout.row.extent
        for row_tier in row_tiers(extent, rows):
            parts.append(_tier(nest, reduction, layout, tier, row_tier))
    return sequence(parts)


def _tier(nest: Nest, reduction: Reduction, layout: Layout, columns: Tier, rows: Tier) -> Stmt:
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in layout.outer]
    domain += [("column", columns.count), ("row", rows.count)]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]
    steps = product([a.extent for a in reduction.axes])
    work = multiply(steps, imm(columns.size * layout.lanes * rows.size))

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        column, row = coordinate(columns.count), coordinate(rows.count)
        return _micro_kernel(nest, reduction, layout, (columns, column), (rows, row), outer)

    return parallel(domain, work, GRAIN, body)


def _micro_kernel(
    nest: Nest,
    reduction: Reduction,
    layout: Layout,
    columns: tuple[Tier, PrimExpr],
    rows: tuple[Tier, PrimExpr],
    outer: Values,
) -> Stmt:
    lane, lanes = PrimVar("lane"), layout.lanes
    first_column = _tile_begin(columns[0], columns[1], lanes)
    first_row = _tile_begin(rows[0], rows[1], 1)
    tile = Tile(
        row=None if layout.row is None else layout.row.var,
        rows=tuple(add(first_row, imm(r)) for r in range(rows[0].size)),
        column=layout.column.var,
        columns=tuple(add(add(first_column, imm(c * lanes)), lane) for c in range(columns[0].size)),
        lane=lane,
        lanes=lanes,
        limit=layout.column.extent if columns[0].masked else None,
    )
    size = len(tile.rows) * len(tile.columns) * lanes
    buffer = Buffer("acc", (imm(size),), reduction.value.dtype, scope="local")
    value = substitute_prim(reduction.value, outer)
    start = fill(tile, reduction.identity, buffer)
    step = loops(reduction.axes, accumulate(tile, reduction, value, buffer))
    finish = substitute_stmt(with_init(reduction, nest.finish), outer)
    return Allocate(buffer, Seq((start, step, write_back(tile, reduction, finish, buffer))))


def with_init(reduction: Reduction, finish: Stmt) -> Stmt:
    """The stores, the accumulated value joined to the init where it is not the neutral element."""
    if reduction.init == reduction.identity:
        return finish
    joined = Binary(reduction.op, reduction.init, reduction.result)
    return substitute_stmt(finish, {reduction.result: joined})


def _tile_begin(tier: Tier, at: PrimExpr, lanes: int) -> PrimExpr:
    return add(tier.begin, multiply(at, imm(tier.size * lanes)))
