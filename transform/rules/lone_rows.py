"""Axes of one point that may have none: ``x[:, -1:]`` of a sequence of unknown length.

Rules count in rows. One row is laid out as such, and better than rows of unknown number, where it
is known to be there; so a kernel of such rows has two versions (`specialize_when`), the other one
for the call in which there is nothing to do.
"""

from __future__ import annotations

from unity.arith import bounds
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, SizeVar, imm
from unity.ir.stmt import Block, Stmt
from unity.ir.visit import walk_stmt

from ..blocks.tree import conjunction


def when_rows_are_there(s: Stmt) -> PrimExpr | None:
    """When axes of one point at most have one; None where there is no such axis.

    Args:
        s: The kernel's body, of blocks as they were written.
    """
    extents = [a.domain.extent for x in walk_stmt(s) if isinstance(x, Block) for a in x.axes]
    sizes = dict.fromkeys(size for e in extents if (size := _at_most_one(e)) is not None)
    return conjunction([Compare("ge", size, imm(1)) for size in sizes])


def _at_most_one(extent: PrimExpr) -> SizeVar | None:
    """The size that says whether an axis has its one point."""
    match extent:
        case Binary("min", Imm(1), SizeVar() as size) | Binary("min", SizeVar() as size, Imm(1)):
            return None if bounds(size)[0] else size
        case _:
            return None
