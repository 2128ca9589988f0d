"""A statement once for each value of a variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
    mentions = _Mentions(var)
    mentions.stmt(s)
    for value in values:
        yield _Copy(var, value, mentions.found).stmt(s)


@dataclass(frozen=True, slots=True)
class _Copy:
    """The statement with one value; `mentions` holds the ids of what changes."""

    var: PrimVar
    value: PrimExpr
    mentions: set[int]

    def stmt(self, s: Stmt) -> Stmt:
        return map_stmt(s, self.stmt, self._expr) if id(s) in self.mentions else s

    def _expr(self, e: PrimExpr) -> PrimExpr:
        if id(e) not in self.mentions:
            return e
        return self.value if e is self.var else map_prim(e, self._expr)


@dataclass(frozen=True, slots=True)
class _Mentions:
    """The ids of the expressions and statements in which a variable is read."""

    var: PrimVar
    found: set[int] = field(default_factory=set[int])
    asked: dict[int, bool] = field(default_factory=dict[int, bool])

    def stmt(self, s: Stmt) -> bool:
        inside = [self.stmt(c) for c in stmt_children(s)]
        own = [self._expr(e) for e in stmt_exprs(s)]
        return self._noted(s, any(inside) or any(own))

    def _expr(self, e: PrimExpr) -> bool:
        known = self.asked.get(id(e))
        if known is None:
            inside = [self._expr(x) for x in prim_children(e)]
            known = self.asked[id(e)] = self._noted(e, e is self.var or any(inside))
        return known

    def _noted(self, part: Stmt | PrimExpr, mentions: bool) -> bool:
        if mentions:
            self.found.add(id(part))
        return mentions
