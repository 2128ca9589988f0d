"""Sums and products of variables: their normal form is the same whatever is known of these.

It is found once for each expression and kept in it; what divides, chooses or loads is left to
`unity.arith.rewrite`, as is a variable that is known to be one number.
"""

from __future__ import annotations

from unity.ir.prim_expr import Binary, Imm, PrimExpr, PrimVar, SizeVar

from . import polynomial as poly
from .polynomial import Poly


def linear(e: PrimExpr) -> Poly | None:
    """The normal form of an int64 expression; None where it may depend on what is known."""
    try:
        return e.linear
    except AttributeError:
        found = _found(e)
        object.__setattr__(e, "linear", found)
        return found


def normal(e: PrimExpr, p: Poly) -> PrimExpr:
    """The expression written from its normal form; itself where it is written so."""
    try:
        return e.normal
    except AttributeError:
        found = poly.to_expr(p)
        found = e if found == e else found
        object.__setattr__(e, "normal", found)
        object.__setattr__(found, "normal", found)
        return found


def _found(e: PrimExpr) -> Poly | None:
    match e:
        case Imm(int() as value):
            return poly.constant(value)
        case PrimVar() | SizeVar():
            return poly.of_atom(e)
        case Binary("add" | "sub" | "mul" as op, a, b):
            x, y = linear(a), linear(b)
            if x is None or y is None:
                return None
            if op == "mul":
                return poly.multiply(x, y)
            return poly.add(x, y, 1 if op == "add" else -1)
        case _:
            return None
