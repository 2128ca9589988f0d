"""Elementwise, broadcast and injective stages: threads over rows, lanes along each row."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.intrinsics import INTRINSICS
from unity.ir.prim_expr import Binary, Intrinsic, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.regions import multiply
from unity.ir.stmt import Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import stmt_exprs, substitute_stmt, walk_prim, walk_stmt

from ..access import collapsed, known_of, place, step
from ..loops import ceildiv, lanes_for, number, parallel, vectors
from ..nest import Nest

GRAIN = 20_000
"""Simple elements that are worth a thread's waking."""
ROW = 4096
"""Long rows are cut to pieces of so many elements when there are few of them."""
_COSTLY = frozenset(INTRINSICS) - {
    "abs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sign",
    "fma",
    "likely",
}


def elementwise(nest: Nest, target: Target) -> Stmt | None:
    """Applies where nothing is reduced.

    The axes are joined as far as every access walks evenly. The innermost one is given lanes; the
    others, and the pieces of a long row, are shared among the threads.
    """
    if nest.reduction is not None:
        return None
    nest = collapsed(nest)
    if not nest.axes:
        return nest.finish
    *outer, inner = nest.axes
    lanes = lanes_for(_bits(nest), target.vector_bits, inner.extent)
    extent = number(inner.extent)
    if extent == 0:
        return Seq(())
    lengthwise = extent == 1
    few = all(number(a.extent) is not None for a in outer)
    rows = 1
    for axis in outer:
        rows *= number(axis.extent) or 1
    cut = few and rows < 4 * target.threads and (extent is None or extent > 2 * ROW)
    piece: PrimExpr = imm(ROW) if cut else inner.extent
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in outer]
    if cut:
        domain.append(("piece", ceildiv(inner.extent, imm(ROW))))

    def body(point: Sequence[PrimExpr]) -> Stmt:
        values: dict[PrimVar | SizeVar, PrimExpr] = {
            axis.var: at for axis, at in zip(outer, point, strict=False)
        }
        finish = substitute_stmt(nest.finish, values)
        if lengthwise:
            return substitute_stmt(finish, {inner.var: imm(0)})
        if not cut:
            return vectors(finish, inner.var, imm(0), inner.extent, lanes)
        begin = multiply(point[-1], imm(ROW))
        size = Binary("min", imm(ROW), Binary("sub", inner.extent, begin))
        return vectors(finish, inner.var, begin, size, lanes)

    work = multiply(piece, imm(_cost(nest)))
    return parallel(domain, work, GRAIN, body)


def _bits(nest: Nest) -> int:
    """The widest element that moves along the innermost axis."""
    known, var = known_of(nest.axes), nest.axes[-1].var
    widths = [s.buffer.dtype.bits for s in nest.stores()]
    widths += [x.buffer.dtype.bits for x in nest.loads() if step(place(x, known), var) != 0]
    return max(widths)


def _cost(nest: Nest) -> int:
    """Work per element, in simple operations."""
    return 1 + 8 * costly([e for s in walk_stmt(nest.finish) for e in stmt_exprs(s)])


def costly(exprs: Sequence[PrimExpr]) -> int:
    """How many functions are computed that take many instructions."""
    parts = [x for e in exprs for x in walk_prim(e)]
    return sum(isinstance(x, Intrinsic) and x.name in _COSTLY for x in parts)
