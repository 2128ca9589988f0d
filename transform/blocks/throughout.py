"""Where conditions hold in all iterations of loops: a condition on what is around them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from unity.arith import Analyzer
from unity.arith import polynomial as poly
from unity.arith.known import terms
from unity.arith.polynomial import Monomial, Poly
from unity.ir.prim_expr import Compare, PrimExpr, imm
from unity.ir.stmt import For
from unity.ir.visit import substitute_prim, variables

from .extents import number
from .tree import Values, conjunction

_Margins = Mapping[frozenset[tuple[Monomial, int]], int]


def throughout(
    conditions: Collection[PrimExpr], loops: Sequence[For], known: Analyzer
) -> PrimExpr | None:
    """The condition under which some conditions hold all through loops.

    None where there is nothing to ask, where it never holds, or where it can't be told.

    Args:
        conditions: Comparisons.
        loops: With a known number of iterations.
        known: What is known in them.
    """
    least: dict[frozenset[tuple[Monomial, int]], int] = {}
    for condition in conditions:
        if known.prove(condition):
            continue
        margin = margin_of(condition)
        found = None if margin is None else _least(margin, loops, known)
        if found is None:
            return None
        constant = found.get((), 0)
        rest = terms(found)
        least[rest] = min(constant, least.get(rest, constant))
    if not _may_hold(least, known):
        return None
    margins = ({**dict(rest), (): constant} for rest, constant in least.items())
    asked = [poly.to_expr({m: c for m, c in p.items() if c}) for p in margins]
    return conjunction([Compare("ge", e, imm(0)) for e in asked])


def margin_of(condition: PrimExpr) -> PrimExpr | None:
    """What a comparison says to be 0 or more."""
    match condition:
        case Compare("lt", a, b):
            return b - a - 1
        case Compare("le", a, b):
            return b - a
        case Compare("gt", a, b):
            return a - b - 1
        case Compare("ge", a, b):
            return a - b
        case _:
            return None


def _least(margin: PrimExpr, loops: Sequence[For], known: Analyzer) -> Poly | None:
    """A margin where it is least in all iterations; None if it is not linear there."""
    for loop in loops:
        if loop.var not in variables(margin):
            continue
        begin, extent = number(loop.begin), number(loop.extent)
        up: Values = {loop.var: loop.var + 1}
        climb = known.simplify(substitute_prim(margin, up) - margin)
        rise = 0 if extent == 1 else number(climb)
        if begin is None or not extent or rise is None:
            return None
        at: Values = {loop.var: imm(begin if rise >= 0 else begin + extent - 1)}
        margin = known.simplify(substitute_prim(margin, at))
    return poly.from_expr(known.simplify(margin))


def _may_hold(least: _Margins, known: Analyzer) -> bool:
    """Whether something is asked, and no value is asked to be more than it can be."""
    lower: dict[PrimExpr, int] = {}
    upper: dict[PrimExpr, int] = {}
    for rest, constant in least.items():
        match [*rest]:
            case [((atom,), by)]:
                low, high = known.bounds(atom)
                if by > 0:
                    lower[atom] = max(lower.get(atom, -(constant // by)), -(constant // by))
                else:
                    upper[atom] = min(upper.get(atom, constant // -by), constant // -by)
                if low is not None:
                    lower[atom] = max(lower.get(atom, low), low)
                if high is not None:
                    upper[atom] = min(upper.get(atom, high), high)
            case []:
                return False
            case _:
                pass
    return bool(least) and all(lower[a] <= upper[a] for a in lower.keys() & upper.keys())
