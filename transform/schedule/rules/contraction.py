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
    """Which axis is which.

    Attributes:
        column: The axis with the lanes.
        beside: Another axis whose steps are columns of the tile as well, where the lanes' axis is
            too short to fill one (the height of a small image).
        row: The axis of the tile's rows.
        outer: The others.
        lanes: How many.
    """

    column: Axis
    beside: Axis | None
    row: Axis | None
    outer: tuple[Axis, ...]
    lanes: int

    @property
    def columns(self) -> tuple[Axis, ...]:
        """The column axes."""
        return (self.column,) if self.beside is None else (self.column, self.beside)


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
    beside = None
    if row is not None and extent is not None and -(-extent // lanes) * 2 <= _columns(target):
        beside = _beside(nest, column, row, reads)
    outer = tuple(a for a in nest.axes if a not in (column, row, beside))
    return Layout(column, beside, row, outer, lanes)


def _columns(target: Target) -> int:
    """How many vectors a row of the tile has."""
    return 4 if target.vector_registers >= 32 else 2


def _beside(nest: Nest, column: Axis, row: Axis, reads: Sequence[Poly]) -> Axis | None:
    """An axis along which nothing that moves along the rows moves."""
    of_row = [index for index in reads if mentions(index, row.var)]
    for axis in reversed(nest.axes):
        still = not any(mentions(index, axis.var) for index in of_row)
        if still and axis not in (column, row) and (number(axis.extent) or 0) > 1:
            return axis
    return None


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
    largest = 4 if layout.row is None else _columns(target)
    one = imm(1)
    parts: list[Stmt] = []
    for column in column_tiers(layout.column.extent, layout.lanes, largest):
        extent = one if layout.beside is None else layout.beside.extent
        for beside in row_tiers(extent, max(1, largest // column.size)):
            size = column.size * beside.size
            rows = min(8, (target.vector_registers - size - 1) // size)
            extent = one if layout.row is None else layout.row.extent
            for row in row_tiers(extent, rows):
                parts.append(_tier(nest, reduction, layout, Cut(column, beside, row)))
    return sequence(parts)


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


def _micro_kernel(nest: Nest, reduction: Reduction, tile: Tile, outer: Values) -> Stmt:
    size = len(tile.rows) * len(tile.columns) * tile.lanes
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
