"""Which loads the rows and columns of a register tile share."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Load, PrimExpr, PrimVar, Select
from unity.ir.visit import prim_children

from ..blocks.access import depends


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
