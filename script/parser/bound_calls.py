"""Calls of foreign functions brought to where they may stand: each is the value of a statement.

Comes in: a statement as written, where a call may stand within a formula. Comes out: the formula
over variables, bound to the calls before it. As a part of an expression a call would be merged with
its like, repeated where the expression is, or left out where its value is not needed.
"""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.foreign import foreign_symbol
from unity.ir.prim_expr import PrimExpr, PrimVar, Select
from unity.ir.stmt import Allocate, Block, Evaluate, Let, PrimWhile, Stmt, Store
from unity.ir.visiting.visit_prim import map_prim, walk_prim
from unity.ir.visiting.visit_stmt import map_stmt, map_stmts


def with_bound_calls(s: Stmt) -> Stmt:
    """The statement with a variable for each foreign call within a formula, in their order.

    Raises:
        UnityError: A call stands where it is made only sometimes: in a branch of a choice.
    """
    if isinstance(s, Block | PrimWhile | Allocate):  # the verifier refuses calls that these hold
        return map_stmts(s, with_bound_calls)
    whole = s.value if isinstance(s, Store | Let | Evaluate) else None
    calls: list[tuple[PrimVar, PrimExpr]] = []

    def bound(e: PrimExpr) -> PrimExpr:
        if isinstance(e, Select):
            for branch in (e.then, e.orelse):
                _refuse_call(branch, s)
        made = map_prim(e, bound)
        if e is whole or foreign_symbol(made) is None:
            return made
        var = PrimVar("called", made.dtype)
        calls.append((var, made))
        return var

    result = map_stmt(s, with_bound_calls, bound)
    for var, call in reversed(calls):
        result = Let(var, call, result, getattr(s, "span", None))
    return result


def _refuse_call(e: PrimExpr, s: Stmt) -> None:
    for x in walk_prim(e):
        symbol = foreign_symbol(x)
        if symbol is not None:
            raise UnityError(
                f"{symbol!r} is called in a branch of a choice",
                getattr(s, "span", None),
                "call it in an `if` statement, or before the choice: v = T.call_extern(...)",
            )
