"""Rectangles of index ranges: their hull, what they share, and what loops make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from unity.ir.prim_expr import Binary, Compare, Imm, PrimExpr, PrimVar, imm
from unity.ir.stmt import Range
from unity.ir.visit import variables

from .analyzer import Analyzer
from .polynomial import Poly, from_expr, to_expr

Ends: TypeAlias = tuple[PrimExpr, PrimExpr]
"""The least and the greatest value, both taken in."""


def extremes(e: PrimExpr, loops: Mapping[PrimVar, Range], known: Analyzer) -> Ends | None:
    """Ends that hold an index wherever the loops run; None where none are found.

    Args:
        e: The index.
        loops: The variables to be rid of, and what each runs over (over no other of them).
        known: What is known of the variables that stay.

    >>> i, j = PrimVar("i"), PrimVar("j")
    >>> low, high = extremes(i * 4 + j, {j: Range(imm(0), imm(4))}, Analyzer())
    >>> Analyzer().equal(high - low, imm(3)), Analyzer().equal(low, i * 4)
    (True, True)
    """
    inside = _within(loops, known)
    return _ends(inside.simplify(e), loops, inside)


def _within(loops: Mapping[PrimVar, Range], known: Analyzer) -> Analyzer:
    """Knowing what loops run over."""
    for var, r in loops.items():
        known = known.with_extent(var, r.begin, r.extent)
    return known


def _ends(e: PrimExpr, loops: Mapping[PrimVar, Range], known: Analyzer) -> Ends | None:
    factors: dict[PrimExpr, Poly] = {}
    fixed: Poly = {}
    for monomial, coefficient in from_expr(e).items():
        moving = [a for a in monomial if _moves(a, loops)]
        if len(moving) > 1:
            return None
        if not moving:
            fixed[monomial] = coefficient
            continue
        rest = tuple(a for a in monomial if a is not moving[0])
        factors.setdefault(moving[0], {})[rest] = coefficient
    low = high = to_expr(fixed)
    for atom, poly in factors.items():
        ends = _atom_ends(atom, loops, known)
        if ends is None:
            return None
        parts = [poly] if _sign(poly, known) else [{m: c} for m, c in poly.items()]
        for part in parts:
            sign = _sign(part, known)
            if not sign:
                return None
            first, last = ends if sign > 0 else (ends[1], ends[0])
            low = Binary("add", low, Binary("mul", first, to_expr(part)))
            high = Binary("add", high, Binary("mul", last, to_expr(part)))
    return known.simplify(low), known.simplify(high)


def _sign(factor: Poly, known: Analyzer) -> int:
    """Whether a factor is never negative (1) or never positive (-1); 0 if neither is known."""
    least, most = known.bounds(to_expr(factor))
    if most is not None and most <= 0:
        return -1
    return 1 if least is not None and least >= 0 else 0


def _atom_ends(e: PrimExpr, loops: Mapping[PrimVar, Range], known: Analyzer) -> Ends | None:
    match e:
        case PrimVar():
            r = loops[e]
            last = Binary("add", r.begin, Binary("sub", r.extent, imm(1)))
            return r.begin, known.simplify(last)
        case Binary("floordiv", a, b) if not _moves(b, loops) and _positive(b, known):
            ends = _ends(a, loops, known)
            return ends and (Binary("floordiv", ends[0], b), Binary("floordiv", ends[1], b))
        case Binary("floormod", _, b) if not _moves(b, loops) and _positive(b, known):
            return imm(0), Binary("sub", b, imm(1))
        case Binary("min" | "max" as op, a, b):
            left, right = _ends(a, loops, known), _ends(b, loops, known)
            if left is None or right is None:
                return None
            return Binary(op, left[0], right[0]), Binary(op, left[1], right[1])
        case _:
            return None


def _positive(e: PrimExpr, known: Analyzer) -> bool:
    low = known.bounds(e)[0]
    return low is not None and low > 0


def _moves(e: PrimExpr, loops: Mapping[PrimVar, Range]) -> bool:
    return not loops.keys().isdisjoint(variables(e))


def relaxed(
    ranges: Sequence[Range],
    shape: Sequence[PrimExpr],
    loops: Mapping[PrimVar, Range],
    known: Analyzer,
) -> tuple[Range, ...]:
    """What ranges cover while loops run: a hull, the whole dimension where none is found."""
    inside = _within(loops, known)

    def hull_of(r: Range, size: PrimExpr) -> Range:
        return _relaxed(r, size, loops, known, inside)

    return tuple(hull_of(r, size) for r, size in zip(ranges, shape, strict=True))


def _relaxed(
    r: Range, size: PrimExpr, loops: Mapping[PrimVar, Range], known: Analyzer, inside: Analyzer
) -> Range:
    """See `relaxed`; `inside` is `known` with what the loops run over."""
    first = last = _ends(inside.simplify(r.begin), loops, inside)
    if r.extent != imm(1):
        after = Binary("add", r.begin, Binary("sub", r.extent, imm(1)))
        last = _ends(inside.simplify(after), loops, inside)
    if first is None or last is None:
        return Range(imm(0), size)
    return Range(first[0], known.simplify(Binary("add", Binary("sub", last[1], first[0]), imm(1))))


def end(r: Range) -> PrimExpr:
    """The first index behind a range."""
    return Binary("add", r.begin, r.extent)


def hull(a: Range, b: Range, known: Analyzer) -> Range:
    """The least range that holds both.

    >>> r = hull(Range(imm(2), imm(3)), Range(imm(4), imm(6)), Analyzer())
    >>> r.begin.value, r.extent.value
    (2, 8)
    """
    if a == b:
        return Range(a.begin, known.simplify(a.extent))
    begin = lesser(a.begin, b.begin, known)
    last = greater(end(a), end(b), known)
    return Range(begin, known.simplify(Binary("sub", last, begin)))


def intersection(a: Range, b: Range, known: Analyzer) -> Range:
    """What both hold; of extent 0 where they share nothing."""
    begin = greater(a.begin, b.begin, known)
    last = lesser(end(a), end(b), known)
    extent = known.simplify(Binary("sub", last, begin))
    return Range(begin, greater(extent, imm(0), known))


def covers(a: Sequence[Range], b: Sequence[Range], known: Analyzer) -> bool:
    """Whether the rectangle `a` provably holds all of `b`.

    >>> low, high = Range(imm(0), imm(8)), Range(imm(2), imm(6))
    >>> covers([low], [high], Analyzer()), covers([high], [low], Analyzer())
    (True, False)
    """
    return all(
        x == y
        or (
            known.prove(Compare("le", x.begin, y.begin))
            and known.prove(Compare("le", end_if_any(y), end(x)))
        )
        for x, y in zip(a, b, strict=True)
    )


def end_if_any(r: Range) -> PrimExpr:
    """The first index behind a range, if there is any index in it: of none, all is held."""
    match r.extent:
        case Binary("max", Imm(0), points) | Binary("max", points, Imm(0)):
            return Binary("add", r.begin, points)
        case _:
            return end(r)


def disjoint(a: Sequence[Range], b: Sequence[Range], known: Analyzer) -> bool:
    """Whether two rectangles provably share nothing."""
    return any(
        known.prove(Compare("le", end(x), y.begin)) or known.prove(Compare("le", end(y), x.begin))
        for x, y in zip(a, b, strict=True)
    )


def lesser(a: PrimExpr, b: PrimExpr, known: Analyzer) -> PrimExpr:
    """The minimum, one of the two where it is known which."""
    first = _in_order(a, b, known)
    return known.simplify(Binary("min", a, b) if first is None else a if first else b)


def greater(a: PrimExpr, b: PrimExpr, known: Analyzer) -> PrimExpr:
    """The maximum, one of the two where it is known which."""
    first = _in_order(a, b, known)
    return known.simplify(Binary("max", a, b) if first is None else b if first else a)


def pruned_minimum(a: PrimExpr, b: PrimExpr, known: Analyzer) -> PrimExpr:
    """The minimum; where one of the two is that of several, without those that are never it.

    >>> i = PrimVar("i")
    >>> limits = Binary("min", imm(2), Binary("add", i, imm(1)))
    >>> pruned_minimum(i, limits, Analyzer()) == Binary("min", imm(2), i)
    True
    """
    for x, several in ((a, b), (b, a)):
        match several:
            case Binary("min", p, q):
                for idle, other in ((p, q), (q, p)):
                    if known.prove(Compare("le", x, idle)):
                        return pruned_minimum(x, other, known)
            case _:
                continue
    return lesser(a, b, known)


def _in_order(a: PrimExpr, b: PrimExpr, known: Analyzer) -> bool | None:
    """Whether ``a <= b``, or else ``b <= a``; None where neither is known."""
    for x, y, before in ((a, b, True), (b, a, False)):
        if isinstance(y, Imm):  # bounds are sooner found than differences
            low, high = known.bounds(x)
            if high is not None and high <= y.value:
                return before
            if low is not None and low >= y.value:
                return not before
    if known.prove(Compare("le", a, b)):
        return True
    return False if known.prove(Compare("le", b, a)) else None


def cut_short(r: Range, known: Analyzer) -> tuple[Imm, PrimExpr] | None:
    """How many points a range has that an end cuts short, and that end; None if it is no such."""
    match known.simplify(r.extent):
        case Binary("max", Imm(0), points) | Binary("max", points, Imm(0)):
            last: PrimExpr = Binary("add", r.begin, points)
        case _:
            last = end(r)
    match known.simplify(last):
        case Binary("min", a, b):
            for limit, other in ((a, b), (b, a)):
                points = known.simplify(Binary("sub", other, r.begin))
                if isinstance(points, Imm):
                    return points, limit
            return None
        case limit:
            most = known.bounds(r.extent)[1]
            if most is None or not 0 < most <= _pitch(r.begin) or _pitch(limit):
                return None
            return imm(most), limit


def _pitch(e: PrimExpr) -> int:
    """The least that an index moves in a step of a variable; 0 if that is not known, or in none."""
    steps = [
        abs(c) if len(monomial) == 1 else 0
        for monomial, c in from_expr(e).items()
        if any(variables(atom) for atom in monomial)
    ]
    return min(steps, default=0)
