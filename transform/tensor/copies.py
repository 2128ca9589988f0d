"""A statement once for each value of a variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unity.ir.prim_expr import PrimExpr, PrimVar
from unity.ir.stmt import Allocate, Stmt
from unity.ir.visit import (
    map_prim,
    map_stmt,
    prim_children,
    stmt_children,
    stmt_exprs,
    substitute_stmt,
    walk_stmt,
)


def copies(s: Stmt, var: PrimVar, values: Sequence[PrimExpr]) -> Iterator[Stmt]:
    """The statement with a variable replaced by one value after another.

    Copies share all that does not mention it, which is looked for once.
    """
    if any(isinstance(x, Allocate) for x in walk_stmt(s)):  # of shapes that may mention it
        yield from (substitute_stmt(s, {var: value}) for value in values)
        return
    mentions = _mentions(s, var)
    for value in values:

        def on_expr(e: PrimExpr, value: PrimExpr = value) -> PrimExpr:
            if id(e) not in mentions:
                return e
            return value if e == var else map_prim(e, on_expr)

        def on_stmt(x: Stmt) -> Stmt:
            return map_stmt(x, on_stmt, on_expr) if id(x) in mentions else x

        yield on_stmt(s)


def _mentions(s: Stmt, var: PrimVar) -> set[int]:
    """The ids of the expressions and statements in which a variable is read."""
    found: set[int] = set()
    asked: dict[int, bool] = {}

    def expr(e: PrimExpr) -> bool:
        known = asked.get(id(e))
        if known is None:
            inside = [expr(x) for x in prim_children(e)]
            known = asked[id(e)] = e == var or any(inside)
            if known:
                found.add(id(e))
        return known

    def stmt(x: Stmt) -> bool:
        inside = [stmt(c) for c in stmt_children(x)]
        own = [expr(e) for e in stmt_exprs(x)]
        if any(inside) or any(own):
            found.add(id(x))
            return True
        return False

    stmt(s)
    return found
