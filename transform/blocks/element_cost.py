"""What an element's formula costs a schedule: functions count, anything else hardly does.

Which functions take many instructions is said in their rows (`unity.ir.intrinsics`).
"""

from __future__ import annotations

from collections.abc import Iterable

from unity.ir.intrinsics import COSTLY
from unity.ir.prim_expr import Intrinsic, PrimExpr
from unity.ir.visit import walk_prim

FUNCTION = 8
"""Simple operations that a function stands for, where work is shared among threads."""


def functions(exprs: Iterable[PrimExpr]) -> int:
    """How many functions of many instructions are computed."""
    parts = (x for e in exprs for x in walk_prim(e))
    return sum(isinstance(x, Intrinsic) and x.name in COSTLY for x in parts)


def operations(exprs: Iterable[PrimExpr]) -> int:
    """Simple operations of an element, roughly."""
    return 1 + FUNCTION * functions(exprs)
