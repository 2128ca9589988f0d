"""What is known of the variables in scope, and the constant bounds that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from unity.ir.dtype import DType
from unity.ir.prim_expr import Binary, Cast, Imm, Intrinsic, PrimExpr, PrimVar, Select, SizeVar

from . import interval as iv
from . import polynomial as poly
from .interval import ANYTHING, Interval
from .polynomial import Monomial, Poly
from .wrapping import BITS, LIMIT, SMALL, data_bits, product_bits

Limits: TypeAlias = "tuple[Poly | None, Poly | None]"
_SMALL_BITS = 32  # wider data is taken as unbounded: its limits would only overflow what uses them

Terms: TypeAlias = frozenset[tuple[Monomial, int]]
"""The terms of a sum, all or those that are no constant, as a key."""


def terms(p: Poly) -> Terms:
    """A normal form's terms that are no constant."""
    return frozenset((monomial, c) for monomial, c in p.items() if monomial)


@dataclass(frozen=True, slots=True)
class Least:
    """What sums are at least.

    Attributes:
        values: By their terms.
        monomials: Those in any of them: a sum that holds another is none of them.
    """

    values: Mapping[Terms, int] = field(default_factory=dict[Terms, int])
    monomials: frozenset[Monomial] = frozenset()

    def with_values(self, values: Mapping[Terms, int]) -> Least:
        """With other sums."""
        monomials = {monomial for those in values for monomial, _ in those}
        return Least({**self.values, **values}, self.monomials | monomials)


_NOTHING_TOLD = Least()


@dataclass(frozen=True, slots=True)
class Found:
    """Answers that hold as long as the same is known.

    Attributes:
        bounds: Constant bounds.
        bits: How many bits an atom's data takes.
        limits: Polys that an atom never falls below or exceeds.
        wholes: What the dividends of a remainder exceed it by, as its quotients are written.
        signs: Whether a poly is never negative.
        cases: The same by cases, to a depth.
    """

    bounds: dict[Binary, Interval] = field(default_factory=dict[Binary, Interval])
    bits: dict[PrimExpr, int] = field(default_factory=dict[PrimExpr, int])
    limits: dict[PrimExpr, Limits] = field(default_factory=dict[PrimExpr, Limits])
    wholes: dict[Binary, tuple[Poly, ...]] = field(default_factory=dict[Binary, tuple[Poly, ...]])
    signs: dict[Terms, bool] = field(default_factory=dict[Terms, bool])
    cases: dict[tuple[Terms, int], bool] = field(default_factory=dict[tuple[Terms, int], bool])


@dataclass(frozen=True, slots=True)
class Known:
    """Ranges of variables: constant ones, and limits ``low <= var <= high`` over others.

    Never changed; what follows from it is kept in `found`, since it is asked again and again.

    Attributes:
        ranges: Constant bounds of variables.
        limits: Bounds over other variables.
        least: What sums are at least, whatever their terms are; constants are left out of them.
        data: Variables bound to values from memory, and how many bits these take.
        found: What was asked so far.
    """

    ranges: dict[PrimVar | SizeVar, Interval] = field(
        default_factory=dict[PrimVar | SizeVar, Interval]
    )
    limits: dict[PrimVar, Limits] = field(default_factory=dict[PrimVar, Limits])
    least: Least = _NOTHING_TOLD
    data: Mapping[PrimVar, int] = field(default_factory=dict[PrimVar, int])
    found: Found = field(default_factory=Found, init=False, compare=False, repr=False)

    def with_ranges(
        self,
        ranges: dict[PrimVar | SizeVar, Interval],
        limits: dict[PrimVar, Limits] | None = None,
        data: Mapping[PrimVar, int] | None = None,
    ) -> Known:
        """With other ranges, and other limits and data where these are given."""
        limits = self.limits if limits is None else limits
        return Known(ranges, limits, self.least, self.data if data is None else data)

    def bounds(self, e: PrimExpr) -> Interval:
        """Inclusive constant bounds of an integer or bool expression."""
        match e:
            case Imm(value):
                return (int(value), int(value)) if not e.dtype.is_float else ANYTHING
            case PrimVar():
                return self.ranges.get(e) or _of_dtype(e.dtype)
            case SizeVar():
                return self.ranges.get(e) or (e.facts.min, e.facts.max)
            case Binary():
                found = self.found.bounds.get(e)
                if found is None:
                    found = self.found.bounds[e] = self._of_binary(e)
                return found
            case Select():
                return iv.union(self.bounds(e.then), self.bounds(e.orelse))
            case Cast() if e.dtype.is_int:
                inner = self.bounds(e.value)
                fits, target = inner, _of_dtype(e.dtype)
                source = e.value.dtype
                if e.dtype.bits == 64 and e.dtype.kind == "int" and not source.is_float:
                    return ANYTHING if source.kind == "uint" and source.bits == 64 else fits
                return target
            case Intrinsic("likely", (a,)):
                return self.bounds(a)
            case _:
                return _of_dtype(e.dtype)

    def _of_binary(self, e: Binary) -> Interval:
        if e.dtype.is_float or e.dtype.bits < 64:
            return _of_dtype(e.dtype)
        a, b = self.bounds(e.a), self.bounds(e.b)
        match e.op:
            case "add" | "sub" | "mul" if self.wraps(e):
                return ANYTHING
            case "add":
                return self._with_least(e, iv.add(a, b))
            case "sub":
                return self._with_least(e, iv.add(a, iv.scale(b, -1)))
            case "mul":
                return iv.multiply(a, b)
            case "floordiv":
                return iv.floordiv(a, b)
            case "floormod":
                return iv.floormod(a, b)
            case "min":
                return iv.minimum(a, b)
            case "max":
                return iv.maximum(a, b)
            case "truncdiv" if a[0] is not None and a[0] >= 0:
                return iv.floordiv(a, b)
            case "truncmod" if a[0] is not None and a[0] >= 0:
                return iv.floormod(a, b)
            case _:
                return ANYTHING

    def _with_least(self, e: PrimExpr, found: Interval) -> Interval:
        """The bounds of a sum, with what is known of the sum itself."""
        least = self._least_of(poly.from_expr(e)) if self.least.values else None
        low, high = found
        if least is None:
            return found
        return least if low is None else max(low, least), high

    def wraps(self, atom: PrimExpr) -> bool:
        """Whether sums with a value may wrap: it is data, no index."""
        return self._atom_bits(atom) > BITS

    def _atom_bits(self, atom: PrimExpr) -> int:
        if isinstance(atom, SizeVar | PrimVar):
            return self.data.get(atom, 0) if isinstance(atom, PrimVar) else 0
        found = self.found.bits.get(atom)
        if found is None:
            found = self.found.bits[atom] = data_bits(atom, self.data)
        return found

    def data_bits(self, p: Poly) -> int:
        """How many bits the data in a normal form takes, none in index arithmetic."""
        most, terms_of_data = 0, 0
        for monomial, c in p.items():
            if abs(c) >= SMALL:
                return BITS + 1
            bits = product_bits(sum(self._atom_bits(a) for a in monomial), c)
            most, terms_of_data = max(most, bits), terms_of_data + (bits > 0)
        return most + max(terms_of_data - 1, 0).bit_length()

    def is_index(self, p: Poly) -> bool:
        """Whether a normal form is index arithmetic: its value is that among all integers."""
        return self.data_bits(p) <= BITS

    def is_exact(self, p: Poly) -> bool:
        """Whether a normal form has the expression's value, not only modulo 2**64."""
        value = poly.as_constant(p)
        if value is not None:
            return -LIMIT <= value < LIMIT
        return poly.as_atom(p) is not None or self.is_index(p)

    def exact(self, e: PrimExpr) -> Poly:
        """The normal form of a part of one, of the same value: sums that may wrap stay whole."""
        p = poly.from_expr(e)
        return p if self.is_exact(p) else poly.of_atom(e)

    def poly_bounds(self, p: Poly) -> Interval:
        """Inclusive constant bounds of a normal form."""
        low: int | None = 0
        high: int | None = 0
        for monomial, c in p.items():
            if not monomial:
                term: Interval = (1, 1)
            else:
                term = self.bounds(monomial[0])
                for atom in monomial[1:]:
                    term = iv.multiply(term, self.bounds(atom))
            least, most = term if c >= 0 else (term[1], term[0])
            low = None if low is None or least is None else low + least * c
            high = None if high is None or most is None else high + most * c
            if low is None and high is None:
                break
        known = self._least_of(p) if self.least.values else None
        if known is None:
            return low, high
        return known if low is None else max(known, low), high

    def _least_of(self, p: Poly) -> int | None:
        """What a sum is at least, of which that is known; or a multiple of such a sum."""
        first = next((m for m in p if m), None)
        if first is not None and first not in self.least.monomials:
            return None
        common = max(poly.content(p), 1)
        for factor in {1, common}:
            found = self.least.values.get(frozenset((m, c // factor) for m, c in p.items() if m))
            if found is not None:
                return found * factor + p.get((), 0)
        return None

    def divisor(self, monomial: poly.Monomial) -> int:
        """A number known to divide a product, from the facts of sizes."""
        known = 1
        for atom in monomial:
            if isinstance(atom, SizeVar):
                known *= atom.facts.multiple_of
        return known


def _of_dtype(dtype: DType) -> Interval:
    if dtype.kind == "bool":
        return 0, 1
    if not dtype.is_int or dtype.bits > _SMALL_BITS:
        return (0, None) if dtype.kind == "uint" else ANYTHING
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
