"""Random legal changes of loop nests: kinds, and splits with a predicate for the tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, For, ForKind, PrimFunc, Stmt
from unity.ir.visit import map_stmt, substitute_prim

KINDS: tuple[ForKind, ...] = ("serial", "vectorized", "unrolled", "parallel")
Draw = Callable[[int], int]
"""A number below the one given."""


def mangled(func: PrimFunc, draw: Draw) -> PrimFunc:
    """The prim func with every loop's kind drawn, some loops split before."""

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, go, lambda e: e)
        if not isinstance(s, For):
            return s
        if draw(3) == 0:
            s = split(s, draw(4) + 2)
        return _with_kind(s, KINDS[draw(4)]) if draw(4) else s

    return replace(func, body=go(func.body))


def _with_kind(s: For, kind: ForKind) -> For:
    inner = s.body
    if isinstance(inner, For) and inner.attrs.get("split"):
        return replace(s, body=replace(inner, kind=kind))
    return replace(s, kind=kind)


def split(loop: For, factor: int) -> For:
    """Two loops in the place of one; blocks below get a predicate for the tail."""
    outer, inner = PrimVar(f"{loop.var.name}o"), PrimVar(f"{loop.var.name}i")
    value = Binary("add", Binary("mul", outer, imm(factor)), inner)
    inside = Compare("lt", value, loop.extent)

    def on_expr(e: PrimExpr) -> PrimExpr:
        return substitute_prim(e, {loop.var: Binary("add", loop.begin, value)})

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, (lambda x: x) if isinstance(s, Block) else go, on_expr)
        if isinstance(s, Block):
            both = inside if s.predicate is None else Binary("and", s.predicate, inside)
            return replace(s, predicate=both)
        return s

    blocks = Binary("floordiv", Binary("add", loop.extent, imm(factor - 1)), imm(factor))
    body = For(inner, imm(0), imm(factor), go(loop.body), attrs=loop.attrs.with_(split=True))
    return For(outer, imm(0), blocks, body)
