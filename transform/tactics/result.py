"""What rules for reductions share: the init joined at the end."""

from __future__ import annotations

from unity.ir.prim_expr import Binary
from unity.ir.stmt import Stmt
from unity.ir.visit import substitute_stmt

from ..blocks.nest import Reduction


def with_init(reduction: Reduction, finish: Stmt) -> Stmt:
    """The stores, the accumulated value joined to the init where it is not the neutral element."""
    if reduction.init == reduction.identity:
        return finish
    joined = Binary(reduction.op, reduction.init, reduction.result)
    return substitute_stmt(finish, {reduction.result: joined})
