"""Which axis of a reduction plays which part: lanes, rows and columns of the tile, threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import Poly
from unity.machine.target import Target

from ..blocks.access import all_axes, known_of, mentions, place, step
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, Reduction
from .lanes import lanes_for


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


def layout_of(
    nest: Nest, reduction: Reduction, target: Target, strided: bool = False
) -> Layout | None:
    """Roles for the axes; None where lanes along the columns would gather, and need not.

    With `strided` they may: what they read is to be packed.
    """
    if not nest.axes:
        return None
    column = nest.axes[-1]
    extent = number(column.extent)
    known = known_of(all_axes(nest))
    if extent is not None and extent < 2:
        return None
    if any(step(place(s, known), column.var) != 1 for s in nest.stores()):
        return None
    loads = reduction.loads()
    reads = [place(x, known) for x in loads]  # what is read once at the end decides nothing
    steps = [step(index, column.var) for index in reads]
    lanes_on_sum = lanes_along(reduction, known)
    if lanes_on_sum and not strided and (any(s not in (0, 1) for s in steps) or (extent or 99) < 4):
        return None
    bits = max(
        [reduction.value.dtype.bits]
        + [x.buffer.dtype.bits for x, s in zip(loads, steps, strict=True) if s]
    )
    lanes = lanes_for(bits, target.vector_bits, column.extent)
    row = _row_axis(nest, column, reads)
    beside = None
    if extent is None:  # lines of an image may be as short
        short = len(reduction.axes) > 1
    else:
        short = -(-extent // lanes) * 2 <= columns_of(target)
    if row is not None and short:
        beside = _beside(nest, column, row, reads)
    outer = tuple(a for a in nest.axes if a not in (column, row, beside))
    return Layout(column, beside, row, outer, lanes)


def columns_of(target: Target) -> int:
    """How many vectors a row of the tile has."""
    return 4 if target.many_registers else 2


def rows_of(columns: int, target: Target) -> int:
    """How many rows a tile of so many columns may have.

    Registers hold the sums, a step's columns and one row. Of many registers LLVM also takes some
    for columns of the next step, which it loads ahead (nine rows of three kept up to 36 sums of
    eight steps on the stack). Without a fused multiply-add there are the products of two rows, too,
    which are on their way at a time.
    """
    products = 0 if target.fused else 2 * columns
    ahead = columns - 1 if target.many_registers else 0
    return (target.vector_registers - columns - 1 - ahead - products) // columns


def _beside(nest: Nest, column: Axis, row: Axis, reads: Sequence[Poly]) -> Axis | None:
    """An axis along which nothing that moves along the rows moves."""
    of_row = [index for index in reads if mentions(index, row.var)]
    for axis in reversed(nest.axes):
        still = not any(mentions(index, axis.var) for index in of_row)
        count = number(axis.extent)
        several = number(column.extent) is None if count is None else count > 1
        if still and axis not in (column, row) and several:
            return axis
    return None


def lanes_along(reduction: Reduction, known: Analyzer) -> bool:
    """Whether every read moves by one, or not at all, along the innermost reduced axis."""
    last = reduction.axes[-1]
    extent = number(last.extent)
    steps = [step(place(x, known), last.var) for x in reduction.loads()]
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
