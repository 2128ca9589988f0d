"""The register tile of a reduction: accumulators that live in registers, and loads that are shared.

A tile is ``rows x columns`` accumulators, each a vector of lanes. Loads that depend only on the
row, or only on the column, are done once for the tile and bound by `Let`: a matrix product of
6 x 4 vectors costs 6 + 4 loads for 24 multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.regions import add
from unity.ir.stmt import Buffer, For, ForKind, Let, Stmt, Store
from unity.ir.visit import map_prim, prim_children, rewrite_prim, substitute_prim, substitute_stmt

from ..blocks.access import depends
from ..blocks.nest import Axis, Reduction
from ..blocks.tree import sequence

Values = dict[PrimVar | SizeVar, PrimExpr]
ZERO = imm(0)


@dataclass(frozen=True, slots=True)
class Tile:
    """What is computed together.

    Attributes:
        row: The row axis, None where there is none (then there is one row).
        rows: The values of the row axis, one per row.
        column: The column axes, none, one or two.
        columns: Their values, one tuple per column.
        lane: The variable of the vectorized loops.
        lanes: Their length.
        limit: What the first column axis must stay below in the columns where it may not.
        masked: Those columns.
    """

    row: PrimVar | None
    rows: tuple[PrimExpr, ...]
    column: tuple[PrimVar, ...]
    columns: tuple[tuple[PrimExpr, ...], ...]
    lane: PrimVar
    lanes: int
    limit: PrimExpr = ZERO
    masked: frozenset[int] = frozenset()

    def values(self, row: int, column: int) -> Values:
        """The axes' values at an accumulator."""
        values: Values = dict(zip(self.column, self.columns[column], strict=True))
        if self.row is not None:
            values[self.row] = self.rows[row]
        return values

    def slot(self, row: int, column: int) -> PrimExpr:
        """Where the current lane of an accumulator is kept."""
        return add(imm((row * len(self.columns) + column) * self.lanes), self.lane)

    def vectorized(self, body: Stmt) -> Stmt:
        """The statement for every lane."""
        return For(self.lane, imm(0), imm(self.lanes), body, "vectorized")


def fill(tile: Tile, value: PrimExpr, buffer: Buffer) -> Stmt:
    """Every accumulator set to one value."""
    stores = [
        Store(buffer, (tile.slot(r, c),), value)
        for r in range(len(tile.rows))
        for c in range(len(tile.columns))
    ]
    return tile.vectorized(sequence(stores))


def accumulate(tile: Tile, reduction: Reduction, value: PrimExpr, buffer: Buffer) -> Stmt:
    """One step of the reduction on every accumulator.

    Args:
        tile: The accumulators.
        reduction: What is reduced.
        value: The value of the step, over the axes' variables and the lane.
        buffer: Where the accumulators are.
    """

    def on(row: bool, column: bool, name: str) -> dict[Load, PrimVar]:
        loads = loads_on(value, tile.row, tile.column, (row, column))
        return {load: PrimVar(name, load.dtype) for load in loads}

    some = range(len(tile.columns))
    shared = on(False, False, "shared")
    of_row = [on(True, False, "row") for _ in tile.rows]
    of_column = {c: on(False, True, "column") for c in some}

    def added(r: int, c: int) -> Stmt:
        expr = bound_loads(value, {**shared, **of_row[r], **of_column[c]})
        step = substitute_prim(_masked(expr, tile, c), tile.values(r, c))
        now = Binary(reduction.op, Load(buffer, (tile.slot(r, c),)), step)
        return Store(buffer, (tile.slot(r, c),), now)

    def with_row(r: int, body: Stmt) -> Stmt:
        for load, var in of_row[r].items():
            body = Let(var, substitute_prim(load, tile.values(r, 0)), body)
        return body

    def with_column(c: int, body: Stmt) -> Stmt:
        for load, var in of_column[c].items():
            body = Let(var, substitute_prim(_masked(load, tile, c), tile.values(0, c)), body)
        return body

    rows = range(len(tile.rows))
    if len(some) < len(rows):  # the fewer are held, the others come one by one
        result = sequence([with_row(r, sequence([added(r, c) for c in some])) for r in rows])
        for c in some:
            result = with_column(c, result)
    else:
        result = sequence([with_column(c, sequence([added(r, c) for r in rows])) for c in some])
        for r in rows:
            result = with_row(r, result)
    for load, var in shared.items():
        result = Let(var, load, result)
    return tile.vectorized(result)


def finished(reduction: Reduction, value: PrimExpr, finish: Stmt, values: Values) -> Stmt:
    """The stage's stores, once its reduction has a value."""
    result = PrimVar("result", reduction.result.dtype)
    return Let(result, value, substitute_stmt(finish, {**values, reduction.result: result}))


def _masked(e: PrimExpr, tile: Tile, column: int) -> PrimExpr:
    """With loads along the columns predicated where a column reaches past the end."""
    if column not in tile.masked:
        return e
    var = tile.column[0]
    inside = Compare("lt", var, tile.limit)

    def on_load(x: PrimExpr) -> PrimExpr | None:
        if not isinstance(x, Load) or not depends(x, var):
            return None
        both = inside if x.predicate is None else Binary("and", x.predicate, inside)
        return replace(x, predicate=both)

    return rewrite_prim(e, on_load)


def loads_on(
    value: PrimExpr, row: PrimVar | None, column: Sequence[PrimVar], on: tuple[bool, bool]
) -> list[Load]:
    """The outermost loads that depend (or not) on row and on column as `on` says.

    Only those that are done in any case.
    """
    found: dict[Load, None] = {}

    def note(e: PrimExpr) -> None:
        match e:
            case Load():
                on_row = row is not None and depends(e, row)
                on_column = any(depends(e, var) for var in column)
                if (on_row, on_column) == on:
                    found[e] = None
            case Select():  # a branch's loads are done only where it is taken
                note(e.condition)
            case _:
                for child in prim_children(e):
                    note(child)

    note(value)
    return list(found)


def bound_loads(e: PrimExpr, loads: dict[Load, PrimVar]) -> PrimExpr:
    """With loads replaced by the variables that hold them."""
    if isinstance(e, Load) and e in loads:
        return loads[e]
    return map_prim(e, lambda x: bound_loads(x, loads))


def loops(axes: Sequence[Axis], body: Stmt) -> Stmt:
    """Serial loops around a statement, on the axes' own variables."""
    for axis in reversed(axes):
        body = For(axis.var, imm(0), axis.extent, body)
    return body


def joined(reduction: Reduction, buffer: Buffer, first: PrimExpr, lanes: int) -> list[Stmt]:
    """The lanes of an accumulator joined in its first one, by halves."""
    stmts: list[Stmt] = []
    half = lanes // 2
    while half:
        lane = PrimVar("lane")
        here = add(first, lane)
        there = add(here, imm(half))
        both = Binary(reduction.op, Load(buffer, (here,)), Load(buffer, (there,)))
        kind: ForKind = "vectorized" if half > 1 else "serial"
        store = Store(buffer, (here,), both)
        stmts.append(For(lane, imm(0), imm(half), store, kind))
        half //= 2
    return stmts
