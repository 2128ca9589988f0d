"""Arithmetic over sizes that a step is given: what may be asked wherever a kernel runs."""

from __future__ import annotations

from unity.arith import Analyzer
from unity.ir.prim_expr import Binary, Compare, Imm, Not, PrimExpr, PrimVar, SizeVar
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import PrimFunc
from unity.ir.visit import walk_prim
from unity.script.printer import text

from ...blocks.tree import illegal


def refuse_unknown(where: str, func: PrimFunc, e: PrimExpr) -> None:
    """Refuse what is more than arithmetic over the sizes and scalars that callers give.

    Args:
        where: The argument that it is.
        func: The prim func.
        e: A number or a condition.
    """
    sizes: tuple[SizeVar | PrimVar, ...] = (*size_params(func), *scalar_params(func))
    known = Analyzer()
    for x in walk_prim(e):
        match x:
            case SizeVar() | PrimVar() if x not in sizes:
                has = ", ".join(s.name for s in sizes) or "none"
                raise illegal(where, f"there is no size {x.name!r}", f"the sizes are: {has}")
            case Binary("floordiv" | "floormod" | "truncdiv" | "truncmod", _, by) if (
                known.bounds(by)[0] or 0
            ) < 1:
                raise illegal(where, f"it divides by {text(by)}, which may be 0")
            case SizeVar() | PrimVar() | Imm() | Binary() | Compare() | Not():
                pass
            case _:
                raise illegal(where, f"it is more than arithmetic over sizes: {text(x)}")
