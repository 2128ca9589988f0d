"""Extents of loops: the numbers they are, where they are known, and arithmetic with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Imm, PrimExpr, imm


def number(e: PrimExpr) -> int | None:
    """The integer an expression is, if it is one."""
    return e.value if isinstance(e, Imm) and isinstance(e.value, int) else None


def ceildiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a / b`` rounded up."""
    return simplify(Binary("floordiv", Binary("sub", Binary("add", a, b), imm(1)), b))


def product(factors: Sequence[PrimExpr]) -> PrimExpr:
    """The product, simplified."""
    total: PrimExpr = imm(1)
    for factor in factors:
        total = Binary("mul", total, factor)
    return simplify(total)


def count_of(extents: Iterable[PrimExpr], unknown: int = 1) -> int:
    """How many points there are; an extent that is unknown, or 0, is taken for another number."""
    return prod(number(e) or unknown for e in extents)


def divisors(n: int, most: int | None = None) -> list[int]:
    """What divides a positive number, ascending; none above `most`."""
    return [d for d in range(1, min(n, most or n) + 1) if n % d == 0]
