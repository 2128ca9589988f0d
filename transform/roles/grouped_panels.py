"""Products whose right operand lies in panels with the depth in groups, as dot products want it.

Which axis is which is told by the strides: a panel is some columns, of each a group of neighbours
in depth, and the summed axis steps from one such row of groups to the next (VNNI layout).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import from_expr, split_linear
from unity.ir.flat_index import flat_index
from unity.ir.prim_expr import Binary, Cast, Imm, Load, PrimExpr, PrimVar
from unity.machine.dot_units import DotForm, DotUnit, dot_unit, group_of
from unity.machine.target import Target

from ..blocks.access import (
    Reshaped,
    as_written,
    collapse,
    depends,
    known_of,
    may_trap,
    mentions,
    place,
    step,
)
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, Reduction
from .panel_columns import over_panels, row_of, width_of


@dataclass(frozen=True, slots=True)
class GroupedLayout:
    """A reduction over panels of groups.

    Attributes:
        left: The operand that does not move along the columns.
        right: The other one.
        width: The columns of a panel.
        columns: All columns; only the last panel may have fewer than `width`.
        row: The axis that only the left operand moves along, if there is one.
        outer: The other spatial axes.
        depth: The summed axis over groups.
        place: The summed axis within a group.
        sums: The other summed axes.
    """

    left: PrimExpr
    right: Load
    width: int
    columns: int
    row: Axis | None
    outer: tuple[Axis, ...]
    depth: Axis
    place: Axis
    sums: tuple[Axis, ...]


def grouped_layout(nest: Nest, reduction: Reduction) -> GroupedLayout | None:
    """The roles of the axes of a (collapsed) stage; None if nothing lies in groups."""
    if not nest.axes or len(reduction.axes) < 2 or reduction.op != "add":
        return None
    *others, column = nest.axes
    *sums, depth, inner = reduction.axes
    columns = number(column.extent)
    factors = operands(reduction, column.var)
    if factors is None or not columns:
        return None
    left, right = factors
    group = group_of(right.buffer.dtype)
    if number(inner.extent) != group or group < 2 or left.dtype.bits != right.dtype.bits:
        return None
    width = width_of(right, column.var)
    if width is None:
        moved = step(place(right, known_of((column,))), depth.var)
        width = None if moved is None or moved % group else moved // group
    if not width or number(right.buffer.shape[-2]) != width:
        return None  # what lies past the last column must be there to be read
    read, inside = over_panels(right, column, width, (*others, *reduction.axes))
    steps = [step(read, v) for v in (depth.var, inside, inner.var)]
    if steps != [width * group, group, 1]:
        return None
    row = row_of(others, read)
    return GroupedLayout(
        left=left,
        right=right,
        width=width,
        columns=columns,
        row=row,
        outer=tuple(a for a in others if a is not row),
        depth=depth,
        place=inner,
        sums=tuple(sums),
    )


@dataclass(frozen=True, slots=True)
class GroupedProduct:
    """A product that a dot product unit adds up, over no other axis than its depth.

    Attributes:
        written: The stage as it was written.
        shaped: It with its axes joined.
        layout: The roles of the axes.
        unit: What adds up dot products.
    """

    written: Nest
    shaped: Reshaped
    layout: GroupedLayout
    unit: DotUnit

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is known."""
        return 1 if self.layout.row is None else number(self.layout.row.extent)

    @property
    def panels(self) -> int:
        """How many panels a matrix has."""
        return -(-self.layout.columns // self.layout.width)

    @property
    def depth(self) -> int:
        """Groups of depth."""
        return self.layout.depth.length

    def in_place(self, *, rows: bool) -> bool:
        """Whether groups of the left operand can be loaded from where it lies.

        Args:
            rows: Whether rows of them have to lie evenly, too.
        """
        load, layout = self.layout.left, self.layout
        if not isinstance(load, Load) or load.predicate is not None:
            return False
        moves: list[tuple[PrimVar, int | None]] = [
            (layout.depth.var, group_of(load.buffer.dtype)),
            (layout.place.var, 1),
        ]
        if rows and layout.row is not None:
            moves.append((layout.row.var, None))
        return evenly(load, moves)


def grouped_product(nest: Nest, target: Target, form: DotForm) -> GroupedProduct | None:
    """A product whose right operand lies in panels of groups that the target multiplies at once."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = collapse(as_written(nest))
    reduction = shaped.nest.reduction
    assert reduction is not None
    layout = grouped_layout(shaped.nest, reduction)
    if layout is None or layout.sums or not number(layout.depth.extent):
        return None
    unit = dot_unit(form, layout.left.dtype, layout.right.dtype, reduction.value.dtype)
    if unit is None or not unit.on(target):
        return None
    match reduction.value:
        case Binary("mul", Cast(_, first)) if not depends(first, shaped.nest.axes[-1].var):
            return GroupedProduct(nest, shaped, layout, unit)
        case _:
            return None  # the unit takes first what stays along the columns


def operands(reduction: Reduction, column: PrimVar) -> tuple[PrimExpr, Load] | None:
    """The two factors before they are widened: what stays along the columns, what moves."""
    match reduction.value:
        case Binary("mul", Cast(_, a), Cast(_, b)):
            pairs = ((a, b), (b, a))
        case _:
            return None
    for left, right in pairs:
        if isinstance(right, Load) and right.predicate is None and depends(right, column):
            return None if depends(left, column) else (left, right)
    return None


def evenly(load: Load, moves: Sequence[tuple[PrimVar, int | None]]) -> bool:
    """Whether an access moves evenly along variables, by these steps where they are given."""
    rest = from_expr(Analyzer().simplify(flat_index(load.buffer, load.indices)))
    for var, wanted in moves:
        rest, factor = split_linear(rest, var)
        if factor is None or mentions(rest, var) or any(mentions(factor, v) for v, _ in moves):
            return False
        if wanted is not None and factor != from_expr(Imm(wanted, var.dtype)):
            return False
    return True
