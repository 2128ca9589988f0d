"""The questions asked of index arithmetic, under what is known of the variables in scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from unity.ir.dtype import INT64
from unity.ir.empty_reduction import conjuncts
from unity.ir.leaves import leaves
from unity.ir.prim_expr import Binary, Compare, Imm, Not, PrimExpr, PrimVar, SizeVar

from . import cases, division
from . import polynomial as poly
from .interval import ANYTHING, Interval
from .known import Known, Terms, terms
from .remembered import Remembered
from .rewrite import Rewriter
from .wrapping import BITS

Ranges: TypeAlias = (
    Mapping[PrimVar, Interval] | Mapping[SizeVar, Interval] | Mapping["PrimVar | SizeVar", Interval]
)

_PROVED = Remembered[bool]()


class Analyzer:
    """Simplifies, bounds and proves under known ranges of variables.

    Never changed: `with_range` and `with_extent` give an analyzer that knows more.
    """

    def __init__(self, known: Known | None = None) -> None:
        self._known = Known() if known is None else known
        self._rewriter = Rewriter(self._known)
        self._inside: dict[tuple[int, ...], tuple[PrimVar, PrimExpr, PrimExpr, Analyzer]] = {}
        self._where: dict[PrimExpr, Analyzer] = {}

    def with_range(self, var: PrimVar | SizeVar, low: int | None, high: int | None) -> Analyzer:
        """Knowing ``low <= var <= high``."""
        known = self._known
        return Analyzer(known.with_ranges({**known.ranges, var: (low, high)}))

    def with_extent(self, var: PrimVar, begin: PrimExpr, extent: PrimExpr) -> Analyzer:
        """Knowing ``begin <= var < begin + extent``, as inside a loop, which runs: extent >= 1.

        Asked again, it is the same analyzer, with what it has simplified.
        """
        key = id(var), id(begin), id(extent)
        found = self._inside.get(key)
        if found is None:
            made = self._within(var, begin, extent)
            if made is self:
                return self  # with what it has simplified
            self._inside[key] = found = (var, begin, extent, made)
        return found[-1]

    def _within(self, var: PrimVar, begin: PrimExpr, extent: PrimExpr) -> Analyzer:
        known, first = self._runs(extent), self._rewriter.poly(begin)
        last = poly.add(poly.add(first, self._rewriter.poly(extent)), poly.constant(-1))
        ends = known.poly_bounds(first)[0], known.poly_bounds(last)[1]
        symbolic = poly.as_constant(first) is None or poly.as_constant(last) is None
        limit = (first, last) if symbolic else known.limits.get(var)
        if known is self._known and (known.ranges.get(var), known.limits.get(var)) == (ends, limit):
            return self
        ranges = {**known.ranges, var: ends}
        limits = {**known.limits, var: (first, last)} if symbolic else known.limits
        return Analyzer(known.with_ranges(ranges, limits))

    def where_runs(self, extent: PrimExpr) -> Analyzer:
        """Knowing that a loop runs: ``extent >= 1``, and what that says of sizes."""
        known = self._runs(extent)
        return self if known is self._known else Analyzer(known)

    def _runs(self, extent: PrimExpr) -> Known:
        """Knowing that a loop runs: of ``n``, ``n + m``, ``(n + c) // d``, or a product of such.

        Or of one of several parts of it, ``x // d - y // d``: where it runs, ``x`` is above ``y``.
        So is ``x`` above 0 in one of ``min(x, y)``, or of what is left of ``x`` behind a place.
        """
        known, least = self._known, 1
        match extent:
            case Binary("mul", some, Imm(int() as times)) | Binary(
                "mul", Imm(int() as times), some
            ):
                return self._runs(some) if times > 0 else known
            case Binary("mul", a, b) if self._is_size(a) and self._is_size(b):
                return self.where_runs(a)._runs(b)
            case Binary("floordiv", Binary("add", size, Imm(int() as more)), Imm(int() as by)):
                if isinstance(size, Binary):
                    return self._runs(size) if by > more else known
                extent, least = size, by - more
            case Binary(
                "sub", Binary("floordiv", x, Imm(int() as by)), Binary("floordiv", y, Imm() as d)
            ) if by == d.value > 0:
                more_than = poly.add(self._rewriter.poly(x), self._rewriter.poly(y), -1)
                return self._runs(poly.to_expr(more_than))
            case Binary("max", Imm(int() as least_of), some) if least_of <= 0:
                return self._runs(some)
            case Binary("min", a, b):
                return self.where_runs(a)._runs(b)
            case Binary("add" | "sub" | "mul" as op):
                inside = self._runs_of_rest(self._rewriter.poly(extent))
                return inside if op == "mul" else Analyzer(inside).with_positive(extent)._known
            case _:
                pass
        if not isinstance(extent, PrimVar | SizeVar):
            return known
        low, high = known.bounds(extent)
        if low is not None and low >= least:
            return known
        return known.with_ranges({**known.ranges, extent: (least, high)})

    def _runs_of_rest(self, left: poly.Poly) -> Known:
        """The same of a product, one of whose factors may be a sum, less what is not negative."""
        shared = poly.common_factors(left)
        if shared and len(left) > 1 and all(map(self._is_size, shared)):
            inside = Analyzer(self._runs_all(shared))
            others: poly.Poly = {}
            for monomial, c in left.items():
                rest = poly.divide_monomial(monomial, shared)
                assert rest is not None
                others[rest] = c
            left_over = Analyzer(inside._runs_of_rest(others))._with_least(others, 1)
            return left_over.with_positive(poly.to_expr(others))._known
        whole = {m: c for m, c in left.items() if c > 0}
        if len(whole) != 1:
            return self._known
        ((factors, _),) = whole.items()
        below = poly.add(whole, left, -1)
        if division.is_nonnegative(below, self._known) and all(map(self._is_size, factors)):
            return self._runs_all(factors)
        return self._known

    def _runs_all(self, factors: Sequence[PrimExpr]) -> Known:
        """The same of each of some."""
        inside = self
        for factor in factors:
            inside = inside.where_runs(factor)
        return inside._known

    def _is_size(self, e: PrimExpr) -> bool:
        least = self._known.bounds(e)[0]
        return least is not None and least >= 0

    def with_positive(self, e: PrimExpr) -> Analyzer:
        """Knowing ``e >= 1``, of a sum of which no single term need be positive.

        >>> from unity.ir.prim_expr import imm
        >>> n, m = SizeVar("n"), SizeVar("m")
        >>> Analyzer().with_positive(n - m * 2 - 3).bounds(n * 4 - m * 8)
        (16, None)
        """
        p = self._rewriter.poly(e)
        if (self._known.poly_bounds(p)[0] or 0) >= 1:
            return self
        common, more = max(poly.content(p), 1), 1 - p.get((), 0)
        smaller = {monomial: c // common for monomial, c in p.items() if monomial}
        # what is positive stays so when it is divided by a number
        found = {terms(p): more, terms(smaller): -(-more // common)}
        found |= dict.fromkeys(self._factors(p), 1)
        return Analyzer(replace(self._known, least=self._known.least.with_values(found)))

    def _factors(self, p: poly.Poly) -> set[Terms]:
        """What is positive since a product is, of which no factor is ever negative."""
        if len(p) != 1 or not self._known.is_index(p):
            return set()
        ((monomial, c),) = p.items()
        lows = [self._known.bounds(x)[0] for x in monomial]
        if c < 0 or any(low is None or low < 0 for low in lows):
            return set()
        return {frozenset({((x,), 1)}) for x in monomial}

    def with_condition(self, condition: PrimExpr) -> Analyzer:
        """Knowing that a condition holds, as in a branch: what it says of sizes and numbers.

        Asked again, it is the same analyzer, with what it has simplified.

        >>> from unity.ir.prim_expr import imm
        >>> n = SizeVar("n")
        >>> Analyzer().with_condition(Compare("ge", n, imm(32))).bounds(n)
        (32, None)
        """
        found = self._where.get(condition)
        if found is None:
            self._where[condition] = found = self._under(condition)
        return found

    def _under(self, condition: PrimExpr) -> Analyzer:
        known = self
        for part in conjuncts(self.simplify(condition)):
            if not isinstance(part, Compare) or part.a.dtype != INT64:
                continue
            a, b = self._rewriter.poly(part.a), self._rewriter.poly(part.b)
            if part.op in ("lt", "le", "eq"):
                known = known._with_least(poly.add(b, a, -1), 1 if part.op == "lt" else 0)
            if part.op in ("gt", "ge", "eq"):
                known = known._with_least(poly.add(a, b, -1), 1 if part.op == "gt" else 0)
        return known

    def _with_least(self, p: poly.Poly, least: int) -> Analyzer:
        """Knowing ``p >= least``, of a variable, its negative or a quotient, and a number."""
        varying = [(monomial, c) for monomial, c in p.items() if monomial]
        match varying:
            case [((SizeVar() | PrimVar() as size,), 1 | -1 as sign)]:
                low, high = self._known.bounds(size)
                limit = (least - p.get((), 0)) * sign
                if sign > 0:
                    low = limit if low is None else max(low, limit)
                else:
                    high = limit if high is None else min(high, limit)
                if low is None or high is None or low <= high:
                    return self.with_range(size, low, high)
            case [((Binary("floordiv", x, Imm(int() as by)),), 1)] if by > 0:
                return self._with_least(self._rewriter.poly(x), (least - p.get((), 0)) * by)
            case _:
                pass
        return self

    def with_value(self, var: PrimVar, value: PrimExpr) -> Analyzer:
        """Knowing the value that a variable is bound to, as inside a `Let`."""
        if var.dtype != INT64:
            return self
        known, p = self._known, self._rewriter.poly(value)
        ranges = {**known.ranges, var: self.bounds(value)}
        bits = known.data_bits(p)
        data = {**known.data, var: bits} if bits else known.data
        if bits > BITS:
            return Analyzer(known.with_ranges(ranges, data=data))
        atom = poly.as_atom(p)
        low, high = (None, None) if atom is None else division.limits(atom, known)
        if low is None and high is None:
            return Analyzer(known.with_ranges(ranges, data=data))
        limits = {**known.limits, var: (low, high)}
        return Analyzer(known.with_ranges(ranges, limits, data))

    def simplify(self, e: PrimExpr) -> PrimExpr:
        """The expression in normal form; the same object when it is in it already."""
        return self._rewriter.simplify(e)

    def bounds(self, e: PrimExpr) -> Interval:
        """Inclusive constant bounds of an int64 expression, None where there is no limit.

        >>> n, i = SizeVar("n"), PrimVar("i", INT64)
        >>> Analyzer().with_extent(i, n * 0, n * 5).bounds(Binary("floordiv", i, n))
        (0, 4)
        """
        p = self._rewriter.poly(e)
        return division.bounds(p, self._known) if self._known.is_exact(p) else ANYTHING

    def equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether two int64 expressions provably have one value."""
        if a is b:
            return True
        difference = self._difference(a, b)
        return not difference or not self._with_quotients(difference)

    def _difference(self, a: PrimExpr, b: PrimExpr) -> poly.Poly:
        return poly.add(self._rewriter.poly(a), self._rewriter.poly(b), -1)

    def _with_quotients(self, p: poly.Poly) -> poly.Poly:
        """A sum, remainders in it written by the quotients that are there: ``n - n // 8 * 8``."""
        atoms = {x for monomial in p for x in monomial if isinstance(x, Binary)}
        parts = {(x.a, x.b) for x in atoms if x.op == "floordiv"}
        rests = [x for x in atoms if x.op == "floormod" and (x.a, x.b) in parts]
        for x in rests:
            quotient = Binary("mul", Binary("floordiv", x.a, x.b), x.b)
            whole = self._rewriter.poly(Binary("sub", x.a, quotient))
            found: poly.Poly = {}
            for monomial, c in p.items():
                term: poly.Poly = {tuple(y for y in monomial if y != x): c}
                for _ in range(sum(y == x for y in monomial)):
                    term = poly.multiply(term, whole)
                found = poly.add(found, term)
            p = found
        return p

    def prove(self, condition: PrimExpr) -> bool:
        """Whether a condition provably holds wherever the variables lie in their ranges."""
        match self.simplify(condition):
            case Imm(value):
                return bool(value)
            case Binary("and", a, b):
                return self.prove(a) and self.prove(b)
            case Binary("or", a, b):
                return self.prove(a) or self.prove(b)
            case Not(Binary("or", a, b)):
                return self.prove(Not(a)) and self.prove(Not(b))
            case Compare() as comparison:
                key = self._rewriter.about.key(comparison)
                found = _PROVED.get(key)
                if found is None:
                    found = self._holds(comparison)
                    _PROVED.put(key, found)
                return found
            case _:
                return False

    def _holds(self, comparison: Compare) -> bool:
        """Whether a comparison in normal form that bounds don't decide holds nevertheless."""
        if cases.holds(comparison, self._known):
            return True
        if comparison.op != "lt" or not _has_both(comparison):
            return False
        difference = self._difference(comparison.b, comparison.a)
        room = poly.as_constant(self._with_quotients(difference))
        return room is not None and room > 0


def _has_both(e: PrimExpr) -> bool:
    """Whether both the quotient and the remainder of something are in an expression."""
    divisions = leaves(e).divisions
    rests = [x for x in divisions if x.op == "floormod"]
    wholes = [x for x in divisions if x.op == "floordiv"] if rests else []
    return any(x.a == y.a and x.b == y.b for x in rests for y in wholes)


def simplify(e: PrimExpr, ranges: Ranges | None = None) -> PrimExpr:
    """The expression in normal form, given the ranges of variables."""
    return _under(ranges).simplify(e)


def bounds(e: PrimExpr, ranges: Ranges | None = None) -> Interval:
    """Inclusive constant bounds of an int64 expression, None where there is no limit."""
    return _under(ranges).bounds(e)


def prove(condition: PrimExpr, ranges: Ranges | None = None) -> bool:
    """Whether a condition provably always holds."""
    return _under(ranges).prove(condition)


def _under(ranges: Ranges | None) -> Analyzer:
    return Analyzer(Known(dict(ranges.items()) if ranges else {}))
