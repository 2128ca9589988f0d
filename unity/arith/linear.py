"""Sums and products of variables: their normal form is the same whatever is known of these.

It is found once for each expression and kept in it; what divides, chooses or loads is left to
`unity.arith.rewrite`, as is a variable that is known to be one number.
"""

from __future__ import annotations

from typing import Literal

from unity.ir.prim_expr import Binary, Imm, PrimExpr, PrimVar, SizeVar
from unity.quick_init import setter

from . import polynomial as poly
from .polynomial import Poly

_set_linear, _set_normal = setter(PrimVar, "linear"), setter(PrimVar, "normal")


def linear(e: PrimExpr) -> Poly | None:
    """The normal form of an int64 expression; None where it may depend on what is known."""
    found = e.linear
    if found is None:
        found = _found(e)
        _set_linear(e, found)
    return None if found is False else found


def normal(e: PrimExpr, p: Poly) -> PrimExpr:
    """The expression written from its normal form; itself where it is written so."""
    found = e.normal
    if found is None:
        found = poly.to_expr(p)
        found = e if found == e else found
        _set_normal(e, found)
        _set_normal(found, found)
    return found


def _found(e: PrimExpr) -> Poly | Literal[False]:
    match e:
        case Binary():  # its operation is asked below: patterns of fields take their time
            pass
        case PrimVar() | SizeVar():
            return poly.of_atom(e)
        case Imm(int() as value):
            return poly.constant(value)
        case _:
            return False
    op = e.op
    if op not in ("add", "sub", "mul"):
        return False
    x = linear(e.a)
    y = None if x is None else linear(e.b)
    if x is None or y is None:
        return False
    if op == "mul":
        return poly.multiply(x, y)
    return poly.add(x, y, 1 if op == "add" else -1)
