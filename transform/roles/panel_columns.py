"""Columns in panels: a column is a panel and a place inside it, and what divides it is known.

Packed operands are read at ``column // width`` and ``column % width``. Over the two parts these are
variables again, as `panels.py` (whole rows of a panel) and `grouped_panels.py` (groups of
depth) want them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import Analyzer
from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar
from unity.ir.regions import add, multiply
from unity.ir.stmt import Stmt
from unity.ir.visit import rewrite_prim, rewrite_stmt, substitute_prim, substitute_stmt, walk_prim

from ..blocks.access import known_of, mentions
from ..blocks.extents import number
from ..blocks.nest import Axis


@dataclass(frozen=True, slots=True)
class PanelColumns:
    """An axis of columns written over two variables.

    Attributes:
        column: The axis.
        width: The columns of a panel.
        known: What is known of the two and of the other axes.
        panel: Counts panels.
        inside: Counts the columns of a panel.
    """

    column: Axis
    width: int
    known: Analyzer
    panel: PrimVar
    inside: PrimVar

    @property
    def split(self) -> PrimExpr:
        """The column over the two variables."""
        return add(multiply(self.panel, Imm(self.width, self.column.var.dtype)), self.inside)

    def expr(self, e: PrimExpr) -> PrimExpr:
        """An expression of the column over the two; what divided the column no longer does."""
        return rewrite_prim(substitute_prim(e, {self.column.var: self.split}), self._undivided)

    def stmt(self, s: Stmt) -> Stmt:
        """The same for a statement."""
        split = substitute_stmt(s, {self.column.var: self.split})
        return rewrite_stmt(split, None, self._undivided)

    def _undivided(self, e: PrimExpr) -> PrimExpr | None:
        divides = isinstance(e, Binary) and e.op in ("floordiv", "floormod")
        return self.known.simplify(e) if divides and e.dtype == self.column.var.dtype else None


def panel_columns(column: Axis, width: int, others: Sequence[Axis]) -> PanelColumns:
    """An axis of known extent in panels of a width, beside other axes."""
    columns = number(column.extent)
    assert columns
    panel, inside = PrimVar("panel"), PrimVar("j")
    known = known_of(others).with_range(inside, 0, width - 1)
    known = known.with_range(panel, 0, (columns - 1) // width)
    return PanelColumns(column, width, known, panel, inside)


def row_of(axes: Sequence[Axis], panels: Poly) -> Axis | None:
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
