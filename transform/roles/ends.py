"""Where along an axis formulas change: the first and the last elements of a row, as padding reads.

What reflects, repeats or fills at its borders chooses by comparing an index with numbers. Between
the first and the last of these the choices are the same for all elements of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from unity.arith import Analyzer
from unity.arith.polynomial import add, as_constant, constant, from_expr, split_linear, to_expr
from unity.ir.dtype import INT64
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, Select
from unity.ir.visit import stmt_exprs, walk_prim, walk_stmt

from ..blocks.access import known_of, mentions
from ..blocks.extents import number
from ..blocks.nest import Nest


def ends_of(nest: Nest) -> tuple[int, int]:
    """How many of the first elements along the last axis, and of the last, are made otherwise."""
    if not nest.axes:
        return 0, 0
    axis, known = nest.axes[-1], known_of(nest.axes)
    first = last = 0
    extent = number(axis.extent)
    for alike in _choices(nest):
        turns = [t[0] for t in (turning(e, axis.var, known) for e in alike) if t is not None]
        begins = [n for n in map(number, turns) if n is not None]
        lefts = [number(known.simplify(Binary("sub", axis.extent, t))) for t in turns]
        rests = [n for n in lefts if n is not None]
        if begins and (not rests or min(begins) <= min(rests)):
            first = max(first, min(begins))
        elif rests:
            last = max(last, min(rests))
    few = extent is not None and first + last > extent // 2
    return (0, 0) if few else (first, last)


def _choices(nest: Nest) -> Iterator[tuple[Compare, ...]]:
    """What choices of a stage compare; comparisons that do as well one for the other together."""
    for s in walk_stmt(nest.finish):
        for e in (e for top in stmt_exprs(s) for e in walk_prim(top)):
            match e:
                case Select():
                    parts = walk_prim(e.condition)
                    yield from ((x,) for x in parts if isinstance(x, Compare))
                case Binary("min" | "max") if e.dtype == INT64:
                    for a, b in combinations(_limits(e), 2):
                        yield Compare("ge", a, b), Compare("ge", b, a)
                case _:
                    pass


def _limits(e: PrimExpr) -> list[PrimExpr]:
    """What an index is the least or the greatest of, and so on of these."""
    match e:
        case Binary("min" | "max", a, b):
            return [*_limits(a), *_limits(b)]
        case _:
            return [e]


def turning(e: Compare, var: PrimVar, known: Analyzer) -> tuple[PrimExpr, bool] | None:
    """The value of a variable from which on a comparison holds, or from which on it doesn't.

    Args:
        e: The comparison.
        var: The variable.
        known: What is known of it.

    Returns:
        The value, and whether it holds from there on; None where it tests for one value, or where
        the variable doesn't move it by one.
    """
    if e.a.dtype != INT64 or e.op in ("eq", "ne"):
        return None
    strict, more = int(e.op in ("gt", "lt")), e.op in ("ge", "gt")
    distance = Binary("sub", e.a, e.b) if more else Binary("sub", e.b, e.a)  # >= strict
    rest, factor = split_linear(from_expr(known.simplify(distance)), var)
    pace = None if factor is None else as_constant(factor)
    if pace not in (1, -1) or mentions(rest, var):
        return None
    turn = add(constant(strict), rest, -1) if pace == 1 else add(rest, constant(1 - strict))
    return known.simplify(to_expr(turn)), pace == 1
