"""Products whose vector operand lies in panels: which axis is which, told by the strides.

A panel is a run of columns, contiguous in whole registers, and the summed axis steps from one run
to the next: what packing makes, and what a matrix of as few columns is by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import Load, PrimExpr, PrimVar
from unity.ir.stmt import Stmt
from unity.ir.visit import prim_loads
from unity.machine.target import Target

from ..blocks.access import depends, known_of, place, step
from ..blocks.extents import number
from ..blocks.nest import Axis, Reduction
from .chunked_columns import ChunkedColumns
from .panel_columns import panel_columns, row_of, width_of
from .reduction import columns_of


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """A reduction over panels.

    Attributes:
        value: What a step adds up, over the variables below and those of the axes.
        load: The element of the panels in it.
        init: What the reduction starts from.
        finish: The stores, over `results`.
        results: What the sums are called there, chunk by chunk (`chunked_columns.py`).
        chunk: The axis of chunks of columns, each with a part of every panel; None if there is one.
        panel: The variable that counts panels.
        inside: The variable that counts the columns of a panel, of each chunk.
        width: The columns of a panel, of each chunk.
        columns: All columns of a chunk; only the last panel may have fewer than `width`.
        lanes: Elements of a register.
        row: The axis that only the other operand moves along, if there is one.
        outer: The other spatial axes.
        depth: The summed axis that steps through a panel.
        sums: The other summed axes.
    """

    value: PrimExpr
    load: Load
    init: PrimExpr
    finish: Stmt
    results: tuple[PrimVar, ...]
    chunk: Axis | None
    panel: PrimVar
    inside: PrimVar
    width: int
    columns: int
    lanes: int
    row: Axis | None
    outer: tuple[Axis, ...]
    depth: Axis
    sums: tuple[Axis, ...]

    @property
    def chunks(self) -> int:
        """How many chunks of columns there are."""
        return len(self.results)

    @property
    def stride(self) -> int:
        """Elements of a panel between one step and the next."""
        return self.width * self.chunks


def panel_layout(
    chunked: ChunkedColumns, reduction: Reduction, target: Target
) -> PanelLayout | None:
    """The roles of the axes of a (collapsed) stage; None if nothing lies in panels."""
    nest, chunk = chunked.nest, chunked.chunk
    if not nest.axes:
        return None
    *others, column = nest.axes
    columns = number(column.extent)
    loads = [x for x in dict.fromkeys(reduction.loads()) if depends(x, column.var)]
    if len(loads) != 1 or not columns:
        return None
    (vector,) = loads
    *sums, depth = reduction.axes
    lanes = target.vector_bits // max(vector.buffer.dtype.bits, reduction.value.dtype.bits)
    chunks = len(chunked.results)
    known = known_of((column,) if chunk is None else (chunk, column))
    along = depth if chunk is None else chunk
    width = width_of(vector, column.var) or step(place(vector, known), along.var)
    if lanes < 2 or not width or width % lanes:
        return None
    if chunks * width // lanes > max(columns_of(target), chunks):
        return None
    if number(vector.buffer.shape[-1]) != chunks * width:
        return None  # what lies past the last column must be there to be read
    split = panel_columns(column, width, (*others, *reduction.axes))
    value = split.expr(reduction.value)
    reads = {x: place(x, split.known) for x in prim_loads(value)}
    load = next(x for x in reads if depends(x, split.inside))
    moved = reads[load]
    if step(moved, split.inside) != 1 or step(moved, depth.var) != chunks * width:
        return None
    if chunk is not None and step(moved, chunk.var) != width:
        return None
    row = row_of([a for a in others if a is not chunk], moved)
    return PanelLayout(
        value=value,
        load=load,
        init=split.expr(reduction.init),
        finish=split.stmt(nest.finish),
        results=chunked.results,
        chunk=chunk,
        panel=split.panel,
        inside=split.inside,
        width=width,
        columns=columns,
        lanes=lanes,
        row=row,
        outer=tuple(a for a in others if a is not row and a is not chunk),
        depth=depth,
        sums=tuple(sums),
    )
