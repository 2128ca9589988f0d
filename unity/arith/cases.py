"""Proofs by cases: minima and maxima taken apart, divisions replaced by what they lie between.

For questions whose answer decides about legality. Simplifying asks far more of them, and makes do
with `division.is_nonnegative`.
"""

from __future__ import annotations

from unity.ir.dtype import INT64
from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar

from . import polynomial as poly
from .division import is_nonnegative
from .known import Known
from .polynomial import Poly

_DEPTH = 5
"""Atoms replaced one after another, at most."""
_CHOICES = ("min", "max")


def holds(condition: Compare, known: Known) -> bool:
    """Whether a simplified comparison of int64 provably holds."""
    if condition.a.dtype != INT64:
        return False
    up = poly.add(known.exact(condition.b), known.exact(condition.a), -1)
    down, below = poly.scale(up, -1), poly.constant(-1)
    match condition.op:
        case "le":
            return nonnegative(up, known)
        case "lt":
            return nonnegative(poly.add(up, below), known)
        case "ge":
            return nonnegative(down, known)
        case "gt":
            return nonnegative(poly.add(down, below), known)
        case "eq":
            return nonnegative(up, known) and nonnegative(down, known)
        case "ne":
            return any(nonnegative(poly.add(p, below), known) for p in (up, down))


def nonnegative(p: Poly, known: Known, depth: int = _DEPTH) -> bool:
    """Whether a poly provably is never negative.

    >>> from unity.ir.prim_expr import PrimVar, SizeVar, imm
    >>> i, n = PrimVar("i"), SizeVar("n")
    >>> smallest = Binary("min", i, n) * -1 + Binary("max", i, n)
    >>> nonnegative(poly.from_expr(smallest), Known())
    True
    """
    if is_nonnegative(p, known):
        return True
    if depth == 0:
        return False
    asked = frozenset(p.items()), depth
    found = known.found.cases.get(asked)
    if found is None:
        found = known.found.cases[asked] = _by_cases(p, known, depth)
    return found


def _by_cases(p: Poly, known: Known, depth: int) -> bool:
    for monomial, c in p.items():
        rest = {m: x for m, x in p.items() if m != monomial}
        if len(monomial) != 1:
            found = _without_factor(monomial, c, rest, known, depth - 1)
        elif isinstance(monomial[0], Binary):
            found = _without(monomial[0], c, rest, known, depth - 1)
        else:
            continue
        if found is not None:
            return found
    return any(nonnegative(q, known, depth - 1) for q in _at_limits(p, known))


def _at_limits(p: Poly, known: Known) -> list[Poly]:
    """Lower bounds of a poly: with a variable at the end of its range that makes it least."""
    found: list[Poly] = []
    for monomial, c in p.items():
        if len(monomial) != 1 or not isinstance(monomial[0], PrimVar):
            continue
        low, high = known.limits.get(monomial[0], (None, None))
        at = low if c > 0 else high
        if at is not None:
            rest = {m: x for m, x in p.items() if m != monomial}
            found.append(poly.add(rest, at, c))
    return found


def _without_factor(
    monomial: poly.Monomial, c: int, rest: Poly, known: Known, depth: int
) -> bool | None:
    """The same of a product of a minimum or maximum and of what is never negative."""
    choices = (k for k, x in enumerate(monomial) if isinstance(x, Binary) and x.op in _CHOICES)
    at = next(choices, None)
    if at is None:
        return None
    atom, others = monomial[at], (*monomial[:at], *monomial[at + 1 :])
    if not isinstance(atom, Binary) or not all(is_nonnegative({(x,): 1}, known) for x in others):
        return None

    def bounded(e: PrimExpr) -> bool:
        product = poly.multiply(known.exact(e), {others: c})
        return nonnegative(poly.add(rest, product), known, depth)

    alone = (atom.op == "max") == (c > 0)  # each of the two is a lower bound by itself
    found = (any if alone else all)(bounded(e) for e in (atom.a, atom.b))
    return found or None  # the ends of variables in the product may still tell


def _without(atom: Binary, c: int, rest: Poly, known: Known, depth: int) -> bool | None:
    """Whether ``rest + c * atom`` is never negative, by the atom's own; None if it has none."""

    def plus(e: PrimExpr) -> Poly:
        return poly.add(rest, known.exact(e), c)

    match atom:
        case Binary("min" | "max" as op, a, b):
            cases = [a, b]
            if (op == "max") == (c > 0):  # each of them alone is a lower bound
                return any(nonnegative(plus(e), known, depth) for e in cases)
            return all(nonnegative(plus(e), known, depth) for e in cases)
        case Binary("floormod", _, Imm(int() as d)) if d > 0:
            least = 0 if c > 0 else d - 1
            return nonnegative(poly.add(rest, poly.constant(c * least)), known, depth)
        case Binary("floordiv", a, Imm(int() as d)) if d > 0:
            # a - (d - 1) <= d * (a // d) <= a; what is an integer is at least 0 above -1
            least = d - 1 if c > 0 else 0
            scaled = poly.add(poly.scale(rest, d), known.exact(a), c)
            return nonnegative(poly.add(scaled, poly.constant(d - 1 - c * least)), known, depth)
        case _:
            return None
