"""Reductions that read padding: the choice between an element and what stands around the image."""

from __future__ import annotations

from unity.ir.prim_expr import Binary, Cast, Imm, PrimExpr, Select
from unity.ir.visit import walk_prim

from .nest import Reduction


def padded_choice(reduction: Reduction) -> Select | None:
    """The only choice of a reduction, if steps that take what is no element change nothing.

    They give the neutral element, or multiply by zero; the other factors are taken to be finite.
    """
    choices = {e for e in walk_prim(reduction.value) if isinstance(e, Select)}
    if len(choices) != 1:
        return None
    (choice,) = choices
    return choice if _changes_nothing(reduction, choice) else None


def _changes_nothing(reduction: Reduction, choice: Select) -> bool:
    """Whether a step that takes padding leaves the result as it is."""

    def vanishes(e: PrimExpr) -> bool:
        match e:
            case Cast(_, value):
                return vanishes(value)
            case Binary("mul", a, b):
                return vanishes(a) or vanishes(b)
            case Select():
                return e == choice and isinstance(e.orelse, Imm) and e.orelse.value == 0
            case _:
                return False

    if reduction.value == choice:
        return choice.orelse == reduction.identity
    return reduction.op == "add" and vanishes(reduction.value)
