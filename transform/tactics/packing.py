"""Packing: a tile's columns copied to contiguous memory before many rows pass over them.

A matrix read down its columns touches a new line, often a new page, at each step, and powers of two
make these lines collide in the caches. A panel is read in order instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from unity.arith.polynomial import as_constant
from unity.ir.arrays.aligned import LINE
from unity.ir.prim_expr import Load, Select
from unity.ir.visit import walk_prim

from ..blocks.access import depends, known_of, place, stride
from ..blocks.extents import number, product
from ..blocks.nest import Axis, Reduction
from ..roles.reduction import Layout

ROWS = 32
"""Rows that repay the copy."""
DEPTH = 64
"""Steps of the reduction below which the columns stay in the first cache anyway."""
TRANSPOSED_ROWS = 16
"""The same where the columns lie across: the alternative sums along the lanes."""
REPACK = 96
"""Rows of a chunk: each has its own copy."""
STRIDE = 128
"""Elements between two steps from which on the columns are worth a copy."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The load to copy, and the axes it walks; `transposed` where the depth is contiguous."""

    load: Load
    axes: tuple[Axis, ...]
    transposed: bool = False

    @property
    def depth(self) -> int | None:
        """Steps of the reduction; None of unknown number."""
        return number(product([a.extent for a in self.axes]))

    @property
    def rows(self) -> int:
        """Rows that repay the copy."""
        return TRANSPOSED_ROWS if self.transposed else ROWS


def packing_of(reduction: Reduction, layout: Layout) -> Packing | None:
    """How to pack the columns of a tile; None where it would not pay."""
    rows, extent = layout.row, number(layout.column.extent)
    if rows is None or layout.beside is not None:
        return None
    far, var = reduction.axes[0], layout.column.var
    parts = list(walk_prim(reduction.value))
    loads = {x for x in parts if isinstance(x, Load) and depends(x, var)}
    if len(loads) != 1 or any(isinstance(x, Select) for x in parts):
        return None
    (load,) = loads
    if load.predicate is not None or depends(load, rows.var):
        return None
    index = place(load, known_of((*layout.outer, layout.column, rows, *reduction.axes)))
    across, along = stride(index, var), stride(index, far.var)
    if across is None or along is None:
        return None
    packing = Packing(load, reduction.axes)
    steps, height = packing.depth, number(rows.extent)
    if as_constant(across) != 1:
        if len(reduction.axes) != 1:
            return None
        transposed = as_constant(along) == 1
        deep = steps is None or steps >= layout.lanes
        wide = extent is None or extent >= layout.lanes
        high = height is None or height >= TRANSPOSED_ROWS
        return replace(packing, transposed=transposed) if deep and wide and high else None
    moved, steps = as_constant(along), number(far.extent)  # the others' lie in the same lines
    if (steps or DEPTH) < DEPTH or (height or ROWS) < ROWS:
        return None
    moved = STRIDE if moved is None else abs(moved)
    if moved < STRIDE and moved * load.dtype.bytes % LINE == 0:
        return None
    return packing
