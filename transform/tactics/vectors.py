"""A loop in whole vectors, with a masked one at its end."""

from __future__ import annotations

from unity.ir.prim_expr import Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, IfThen, Stmt
from unity.ir.visit import substitute_stmt

from ..blocks.extents import number
from ..blocks.tree import sequence


def vectors(s: Stmt, var: PrimVar, begin: PrimExpr, extent: PrimExpr, lanes: int) -> Stmt:
    """A statement for each value of a variable: whole vectors, then a masked one of the rest."""
    known = number(extent)
    parts: list[Stmt] = []
    whole = extent // lanes if known is None else imm(known // lanes)
    if known is None or known >= lanes:
        at, lane = PrimVar(f"{var.name}_at"), PrimVar("lane")
        index = add(add(begin, multiply(at, imm(lanes))), lane)
        vector = For(lane, imm(0), imm(lanes), substitute_stmt(s, {var: index}), "vectorized")
        parts.append(For(at, imm(0), whole, vector))
    if known is None or known % lanes:
        lane = PrimVar("lane")
        left = extent % lanes if known is None else imm(known % lanes)
        done = add(begin, multiply(whole, imm(lanes)))
        tail = substitute_stmt(s, {var: add(done, lane)})
        masked = IfThen(Compare("lt", lane, left), tail)
        loop: Stmt = For(lane, imm(0), imm(lanes), masked, "vectorized")
        parts.append(loop if known is not None else IfThen(Compare("gt", left, imm(0)), loop))
    return sequence(parts)
