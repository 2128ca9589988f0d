"""A loop that ends earlier: what `trim` and its like leave of one."""

from __future__ import annotations

from dataclasses import replace

from unity.arith import Analyzer
from unity.arith.region import greater, lesser
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.stmt import Block, For, Range, Stmt
from unity.ir.visit import map_stmt


def up_to(loop: For, end: PrimExpr, known: Analyzer) -> PrimExpr:
    """The extent of a loop that goes no farther than an end, which may lie before its begin."""
    left = known.simplify(Binary("sub", end, loop.begin))
    return lesser(loop.extent, greater(left, imm(0), known), known)


def shortened(loop: For, body: Stmt, extent: PrimExpr) -> For:
    """The loop of another extent; axes whose domain was the loop's go as far as it goes."""
    whole = Range(loop.begin, loop.extent)

    def go(s: Stmt) -> Stmt:
        if not isinstance(s, Block):
            return map_stmt(s, go, lambda e: e)
        axes = tuple(
            replace(a, domain=replace(whole, extent=extent))
            if a.value is loop.var and a.domain == whole
            else a
            for a in s.axes
        )
        return replace(s, axes=axes)

    return replace(loop, extent=extent, body=go(body))
