"""Columns in panels: a column is a panel and a place inside it, and what divides it is known.

Packed operands are read at ``column // width`` and ``column % width``. Over the two parts these are
variables again, as `panels.py` (whole rows of a panel) and `grouped_panels.py` (groups of
depth) want them.
"""

from __future__ import annotations

from collections.abc import Sequence

from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, Imm, Load, PrimVar
from unity.ir.regions import add, multiply
from unity.ir.visit import substitute_prim, walk_prim

from ..blocks.access import known_of, mentions, place
from ..blocks.extents import number
from ..blocks.nest import Axis


def over_panels(
    load: Load, column: Axis, width: int, others: Sequence[Axis]
) -> tuple[Poly, PrimVar]:
    """Where a load reads over the two parts of a column, and the variable of the inner one.

    Args:
        load: What is read.
        column: The axis of columns, of known extent.
        width: The columns of a panel.
        others: The other axes.
    """
    columns = number(column.extent)
    assert columns
    panel, inside = PrimVar("panel"), PrimVar("j")
    known = known_of(others).with_range(inside, 0, width - 1)
    known = known.with_range(panel, 0, (columns - 1) // width)
    at = add(multiply(panel, Imm(width, column.var.dtype)), inside)
    parted = substitute_prim(load, {column.var: at})
    assert isinstance(parted, Load)
    return place(parted, known), inside


def row_of(axes: Sequence[Axis], panels: Poly) -> Axis | None:
    """The longest axis along which the panels stay.

    Of several that are not known the innermost: batches come first, and are small.
    """
    long = [a for a in axes if number(a.extent) != 1 and not mentions(panels, a.var)]
    unknown = [a for a in long if number(a.extent) is None]
    if unknown:
        return unknown[-1]
    return max(long, key=lambda a: number(a.extent) or 0, default=None)


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
