"""Products whose vector operand lies in panels: which axis is which, told by the strides.

A panel is a run of columns, contiguous in whole registers, and the summed axis steps from one run
to the next: what packing makes, and what a matrix of as few columns is by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar
from unity.ir.regions import add, multiply
from unity.ir.stmt import Stmt
from unity.ir.target import Target
from unity.ir.visit import rewrite_prim, rewrite_stmt, substitute_prim, substitute_stmt, walk_prim

from .access import depends, known_of, mentions, place, step
from .layout import columns_of
from .loops import number
from .nest import Axis, Nest, Reduction


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """A reduction over panels.

    Attributes:
        value: What a step adds up, over the variables below and those of the axes.
        load: The element of the panels in it.
        init: What the reduction starts from.
        finish: The stores.
        panel: The variable that counts panels.
        inside: The variable that counts the columns of a panel.
        width: The columns of a panel.
        columns: All columns; only the last panel may have fewer than `width`.
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
    panel: PrimVar
    inside: PrimVar
    width: int
    columns: int
    lanes: int
    row: Axis | None
    outer: tuple[Axis, ...]
    depth: Axis
    sums: tuple[Axis, ...]


def panel_layout(nest: Nest, reduction: Reduction, target: Target) -> PanelLayout | None:
    """The roles of the axes of a (collapsed) stage; None if nothing lies in panels."""
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
    width = width_of(vector, column.var) or step(place(vector, known_of((column,))), depth.var)
    if lanes < 2 or not width or width % lanes or width // lanes > columns_of(target):
        return None
    if number(vector.buffer.shape[-1]) != width:
        return None  # what lies past the last column must be there to be read
    panel, inside = PrimVar("panel"), PrimVar("j")
    known = known_of((*others, *reduction.axes)).with_range(inside, 0, width - 1)
    known = known.with_range(panel, 0, (columns - 1) // width)
    split = add(multiply(panel, Imm(width, column.var.dtype)), inside)

    def within(e: PrimExpr) -> PrimExpr | None:
        divides = isinstance(e, Binary) and e.op in ("floordiv", "floormod")
        return known.simplify(e) if divides and e.dtype == column.var.dtype else None

    value = rewrite_prim(substitute_prim(reduction.value, {column.var: split}), within)
    reads = {x: place(x, known) for x in walk_prim(value) if isinstance(x, Load)}
    load = next(x for x in reads if depends(x, inside))
    moved = reads[load]
    if step(moved, inside) != 1 or step(moved, depth.var) != width:
        return None
    row = _row(others, moved)
    return PanelLayout(
        value=value,
        load=load,
        init=substitute_prim(reduction.init, {column.var: split}),
        finish=rewrite_stmt(substitute_stmt(nest.finish, {column.var: split}), None, within),
        panel=panel,
        inside=inside,
        width=width,
        columns=columns,
        lanes=lanes,
        row=row,
        outer=tuple(a for a in others if a is not row),
        depth=depth,
        sums=tuple(sums),
    )


def _row(axes: Sequence[Axis], panels: Poly) -> Axis | None:
    """The longest axis along which the panels stay."""
    long = [a for a in axes if number(a.extent) != 1 and not mentions(panels, a.var)]
    return max(long, key=lambda a: number(a.extent) or 1 << 30, default=None)


def width_of(load: Load, column: PrimVar) -> int | None:
    """The number that an index divides the column by."""
    for index in load.indices:
        for e in walk_prim(index):
            match e:
                case Binary("floordiv", a, Imm(int(width))) if a is column:
                    return width
                case _:
                    pass
    return None
