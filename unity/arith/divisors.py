"""Divisors that are surely neither 0 nor -1, as operators choose them: no test is needed again."""

from __future__ import annotations

from unity.ir.prim_expr import Binary, Broadcast, Compare, Imm, PrimExpr, Select

TRAPS = (0, -1)
"""Machines stop where they divide by the first, and the least integer by the second."""


def never_traps(e: PrimExpr) -> bool:
    """Whether no integer can be divided by an expression's value so that a machine stops.

    >>> from unity.ir.prim_expr import SizeVar, imm
    >>> n = SizeVar("n")
    >>> guarded = Select(Compare("eq", n, imm(0)), imm(1), n)
    >>> never_traps(Select(Compare("eq", n, imm(-1)), imm(1), guarded)), never_traps(guarded)
    (True, False)
    """
    return all(_is_not(e, value, ()) for value in TRAPS)


def _is_not(e: PrimExpr, value: int, never: tuple[PrimExpr, ...]) -> bool:
    """Whether an expression has another value than one, where some comparisons don't hold."""
    match e:
        case Imm(other):
            return other != value
        case Broadcast(inner):
            return _is_not(inner, value, never)
        case Select(condition, a, b):
            fails = (*never, *_parts(condition))
            return _is_not(a, value, never) and _is_not(b, value, fails)
        case _:
            return any(_says(c, e, value) for c in never)


def _parts(condition: PrimExpr) -> tuple[PrimExpr, ...]:
    """What a condition joins by ``or``."""
    match condition:
        case Binary("or", a, b):
            return (*_parts(a), *_parts(b))
        case Broadcast(inner):
            return _parts(inner)
        case _:
            return (condition,)


def _says(condition: PrimExpr, e: PrimExpr, value: int) -> bool:
    """Whether a condition is that an expression has a value."""
    match condition:
        case Compare("eq", a, Imm(other) | Broadcast(Imm(other))):
            return a == e and other == value
        case _:
            return False
