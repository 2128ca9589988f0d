"""Products whose vector operand lies in panels: which axis is which, told by the strides.

A panel is a run of columns, contiguous in whole registers, and the summed axis steps from one run
to the next: what packing makes, and what a matrix of as few columns is by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.ir.prim_expr import Load
from unity.machine.target import Target

from ..blocks.access import depends, known_of, mentions, place, step
from ..blocks.extents import number
from ..blocks.nest import Axis
from .chunked_columns import ChunkedColumns
from .panel_columns import over_panels, row_of, width_of
from .reduction import columns_of


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """A reduction over panels.

    Attributes:
        load: What is read of the panels.
        scales: How many others there are along the columns, the same for all steps through a panel.
        chunk: The axis of chunks of columns, each with a part of every panel; None if there is one.
        chunks: How many there are.
        width: The columns of a panel, of each chunk.
        columns: All columns of a chunk; only the last panel may have fewer than `width`.
        lanes: Elements of a register.
        row: The axis that only the other operand moves along, if there is one.
        outer: The other spatial axes.
        depth: The summed axis that steps through a panel.
        still: Summed axes along which nothing in the panels moves: parts of a word.
        sums: The other summed axes.
    """

    load: Load
    scales: int
    chunk: Axis | None
    chunks: int
    width: int
    columns: int
    lanes: int
    row: Axis | None
    outer: tuple[Axis, ...]
    depth: Axis
    still: tuple[Axis, ...]
    sums: tuple[Axis, ...]

    @property
    def stride(self) -> int:
        """Elements of a panel between one step and the next."""
        return self.width * self.chunks


def panel_layout(chunked: ChunkedColumns, target: Target) -> PanelLayout | None:
    """The roles of the axes; None if nothing lies in panels."""
    nest, chunk, chunks = chunked.shaped.nest, chunked.chunk, chunked.chunks
    reduction = nest.reduction
    assert reduction is not None
    if not nest.axes:
        return None
    *others, column = nest.axes
    columns = number(column.extent)
    *sums, depth = reduction.axes
    every = [x for x in dict.fromkeys(reduction.loads()) if depends(x, column.var)]
    loads = [x for x in every if depends(x, depth.var)]
    if len(loads) != 1 or not columns:
        return None
    (vector,) = loads
    lanes = target.vector_bits // max(vector.buffer.dtype.bits, reduction.value.dtype.bits)
    known = known_of((column,) if chunk is None else (chunk, column))
    along = depth if chunk is None else chunk
    width = width_of(vector, column.var) or step(place(vector, known), along.var)
    if lanes < 2 or not width or width % lanes:
        return None
    if chunks * width // lanes > max(columns_of(target), chunks):
        return None
    if number(vector.buffer.shape[-1]) != chunks * width:
        return None  # what lies past the last column must be there to be read
    axes = (*others, *reduction.axes)
    reads = {x: over_panels(x, column, width, axes) for x in every}
    moved, _ = reads[vector]
    if any(step(at, lane) != 1 for at, lane in reads.values()):
        return None
    if step(moved, depth.var) != chunks * width:
        return None
    if chunk is not None and step(moved, chunk.var) != width:
        return None
    still = tuple(a for a in sums if not any(mentions(at, a.var) for at, _ in reads.values()))
    row = row_of([a for a in others if a is not chunk], moved)
    return PanelLayout(
        load=vector,
        scales=len(every) - 1,
        chunk=chunk,
        chunks=chunks,
        width=width,
        columns=columns,
        lanes=lanes,
        row=row,
        outer=tuple(a for a in others if a is not row and a is not chunk),
        depth=depth,
        still=still,
        sums=tuple(a for a in sums if a not in still),
    )
