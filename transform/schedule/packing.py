"""Packing: a tile's columns copied to contiguous memory before many rows pass over them.

A matrix read down its columns touches a new line, often a new page, at each step, and powers of two
make these lines collide in the caches. A panel is read in order instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.dtype import DType
from unity.ir.prim_expr import Compare, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Buffer, For, Stmt, Store
from unity.ir.visit import rewrite_prim, substitute_prim, walk_prim

from .access import depends, known_of, place, step, stride
from .layout import Layout
from .loops import number, sequence
from .nest import Axis, Reduction
from .tile import Tile, Values

ROWS = 32
"""Rows that repay the copy."""
DEPTH = 64
"""Steps of the reduction below which the columns stay in the first cache anyway."""
REPACK = 96
"""Rows of a strip's piece: each has its own copy."""
STRIDE = 512
"""Elements between two steps from which on the columns are worth a copy."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The load to copy, and the axes it walks."""

    load: Load
    depth: Axis
    column: PrimVar

    def panel(self, width: int) -> Buffer:
        """Memory for the columns of one tile."""
        size = multiply(self.depth.extent, imm(width))
        return Buffer("panel", (size,), _element(self.load))

    def fill(self, panel: Buffer, tile: Tile, outer: Values) -> Stmt:
        """The copy; lanes past the end become zero."""
        width = len(tile.columns) * tile.lanes
        stores: list[Stmt] = []
        for c in range(len(tile.columns)):
            load = substitute_prim(self.load, {**outer, **tile.values(0, c)})
            if c in tile.masked:
                assert isinstance(load, Load)
                inside = Compare("lt", tile.columns[c][0], tile.limit)
                load = Load(load.buffer, load.indices, inside)
            at = add(add(multiply(self.depth.var, imm(width)), imm(c * tile.lanes)), tile.lane)
            stores.append(Store(panel, (at,), load))
        return For(self.depth.var, imm(0), self.depth.extent, tile.vectorized(sequence(stores)))

    def from_panel(self, value: PrimExpr, panel: Buffer, width: int, first: PrimExpr) -> PrimExpr:
        """The value of a step read from the panel of `width` columns that begins at `first`."""
        at = add(multiply(self.depth.var, imm(width)), self.column - first)

        def on_load(x: PrimExpr) -> PrimExpr | None:
            return Load(panel, (at,)) if x == self.load else None

        return rewrite_prim(value, on_load)


def _element(load: Load) -> DType:
    return load.buffer.dtype


def packing_of(reduction: Reduction, layout: Layout) -> Packing | None:
    """How to pack the columns of a tile; None where it would not pay."""
    rows = layout.row
    if rows is None or layout.beside is not None or len(reduction.axes) != 1:
        return None
    depth, var = reduction.axes[0], layout.column.var
    if (number(depth.extent) or DEPTH) < DEPTH or (number(rows.extent) or ROWS) < ROWS:
        return None
    parts = list(walk_prim(reduction.value))
    loads = {x for x in parts if isinstance(x, Load) and depends(x, var)}
    if len(loads) != 1 or any(isinstance(x, Select) for x in parts):
        return None
    (load,) = loads
    known = known_of((*layout.outer, layout.column, rows, depth))
    index = place(load, known)
    moved = step(index, depth.var)
    if load.predicate is not None or depends(load, rows.var):
        return None
    if moved is not None and moved < STRIDE:
        return None
    if stride(index, depth.var) is None or step(index, var) != 1:
        return None
    return Packing(load, depth, var)
