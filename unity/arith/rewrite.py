"""The simplifier: prim expressions into normal form.

Int64 arithmetic goes through polynomials (`unity.arith.polynomial`); conditions are decided by
bounds; everything else is rebuilt from simplified parts. Results are remembered per node object,
since substitution makes expressions share parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from unity.ir.dtype import BOOL, INT64
from unity.ir.leaves import leaves
from unity.ir.prim_expr import (
    Binary,
    Cast,
    Compare,
    CompareOp,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Select,
    SizeVar,
    imm,
)
from unity.ir.visit import map_prim, variables

from . import polynomial as poly
from .division import floordiv, floormod, is_nonnegative, wholes
from .known import Known
from .linear import linear, normal
from .polynomial import ONE, Monomial, Poly
from .remembered import About, Remembered
from .wrapping import BITS, wraps

TRUE, FALSE = imm(True, BOOL), imm(False, BOOL)
_INVERSE: dict[CompareOp, CompareOp] = {
    "eq": "ne",
    "ne": "eq",
    "lt": "ge",
    "le": "gt",
    "gt": "le",
    "ge": "lt",
}

_EXPRS, _POLYS = Remembered[PrimExpr](), Remembered[Poly]()
_ASKED_AGAIN = ("int64", "bool")
"""Indices in lanes and conditions; what is computed on data is hardly ever the same."""


class Rewriter:
    """One set of known facts and what has been simplified under it."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.about = About(known)
        self._exprs: dict[int, tuple[PrimExpr, PrimExpr]] = {}
        self._polys: dict[int, tuple[PrimExpr, Poly]] = {}
        self._numbers: frozenset[PrimVar | SizeVar] | None = None

    def _linear(self, e: PrimExpr) -> Poly | None:
        """The poly of an expression where nothing that is known changes it."""
        found = e.linear
        if found is None:
            found = linear(e)
        if found is None or found is False:
            return None
        numbers = self._numbers
        if numbers is None:
            ranges = self.known.ranges.items()
            one = (v for v, (low, high) in ranges if low is not None and low == high)
            self._numbers = numbers = frozenset(one)
        return found if not numbers or numbers.isdisjoint(variables(e)) else None

    def simplify(self, e: PrimExpr) -> PrimExpr:
        """The expression in normal form; the same object if it is in it already."""
        if isinstance(e, Imm):
            return e
        found = self._exprs.get(id(e))
        if found is None:
            kind = e.dtype
            p = self._linear(e) if kind is INT64 else None
            if p is not None:
                return normal(e, p)
            # the key's object is kept, so that its id stays its own
            if kind is INT64:
                result = poly.to_expr(self.poly(e))
            else:
                result = self._remembered(e) if kind.name in _ASKED_AGAIN else self._simplify(e)
            result = e if result == e else result
            self._exprs[id(e)] = found = (e, result)
            self._exprs[id(result)] = (result, result)
        return found[1]

    def _remembered(self, e: PrimExpr) -> PrimExpr:
        key = self.about.key(e)
        result = _EXPRS.get(key)
        if result is None:
            result = self._simplify(e)
            _EXPRS.put(key, result)
        return result

    def poly(self, e: PrimExpr) -> Poly:
        """The normal form of an int64 expression."""
        p = self._linear(e)
        if p is not None:
            return p
        found = self._polys.get(id(e))
        if found is None:
            key = self.about.key(e)
            p = _POLYS.get(key)
            if p is None:
                p = self._poly(e)
                _POLYS.put(key, p)
            self._polys[id(e)] = found = (e, p)
        return found[1]

    def _simplify(self, e: PrimExpr) -> PrimExpr:
        match e:
            case Compare():
                return self._compare(e)
            case Not():
                return self._not(self.simplify(e.a))
            case Select():
                return self._select(e)
            case Binary("and" | "or") if e.dtype == BOOL:
                return self._logical(e)
            case Intrinsic("likely", (a,)):
                inner = self.simplify(a)
                return inner if isinstance(inner, Imm) else map_prim(e, self.simplify)
            case Cast():
                return self._cast(e)
            case Binary():
                return self._data(e)
            case _:
                return map_prim(e, self.simplify)

    def _poly(self, e: PrimExpr) -> Poly:
        match e:
            case Imm(int() as value):
                return poly.constant(value)
            case PrimVar():
                low, high = self.known.ranges.get(e, (None, None))
                return poly.of_atom(e) if low is None or low != high else poly.constant(low)
            case Binary("add" | "sub"):
                return self._sum(e)
            case Binary("mul", a, b):
                return self._joined(poly.multiply(self.poly(a), self.poly(b)))
            case Binary("floordiv" | "floormod" as op, a, b) if self._are_indices(a, b):
                divide = floordiv if op == "floordiv" else floormod
                return self._joined(divide(self.poly(a), self.poly(b), self.known))
            case Binary("truncdiv" | "truncmod" as op, a, b) if self._are_indices(a, b):
                return self._trunc(e, op)
            case Binary("min" | "max" as op, a, b):
                return self._extreme(op, a, b)
            case Select():
                chosen = self._select(e)
                return poly.of_atom(chosen) if isinstance(chosen, Select) else self.poly(chosen)
            case Cast() if e.value.dtype == INT64:
                return self.poly(e.value)
            case Cast(_, Imm(int() as value)):
                return poly.constant(int(value))
            case _:
                return poly.of_atom(map_prim(e, self.simplify))

    def _sum(self, e: Binary) -> Poly:
        """A sum: all its terms at once, as long as there is no rest of a division to be joined."""
        inner: PrimExpr = e
        parts: list[tuple[int, Poly]] = []
        while isinstance(inner, Binary) and inner.op in ("add", "sub"):
            if parts and id(inner) in self._polys:
                break
            parts.append((1 if inner.op == "add" else -1, self.poly(inner.b)))
            inner = inner.a
        p = self.poly(inner)
        if any(_has_rest(q) for q in (p, *(q for _, q in parts))):
            sign, last = parts[0]
            return self._joined(poly.add(self.poly(e.a), last, sign))
        total = dict(p)
        for sign, q in reversed(parts):
            poly.add_to(total, q, sign)
        return total

    def _are_indices(self, *parts: PrimExpr) -> bool:
        """Whether nothing in some parts comes from memory, so that quotients can be taken apart."""
        return not any(_holds_data(e, self.known.data) for e in parts) and all(
            self.known.is_index(self.poly(e)) for e in parts
        )

    def _joined(self, p: Poly) -> Poly:
        """With ``k * c * (x // c) + k * (x % c)`` joined to ``k * x``.

        The quotient may be of another ``y`` that leaves the same rest; then they join to ``k * y``.
        """
        if len(p) < 2:
            return p
        for term, k in p.items():
            rests = [
                a
                for a in term
                if isinstance(a, Binary)
                and a.op == "floormod"
                and not _holds_data(a, self.known.data)
            ]
            for atom in rests:
                others = poly.divide_monomial(term, (atom,))
                assert others is not None
                d, x = poly.from_expr(atom.b), poly.from_expr(atom.a)
                share: Poly = {others: k}
                for whole in wholes(atom, self.known):
                    wanted = poly.multiply(whole, share)
                    if wanted and all(p.get(t) == c for t, c in wanted.items()):
                        p = poly.add(poly.add(p, wanted, -1), {term: k}, -1)
                        return self._joined(poly.add(p, poly.multiply(x, share)))
                y = self._same_rest(p, others, k, x, d)
                if y is not None:
                    quotient = poly.multiply(poly.multiply(floordiv(y, d, self.known), d), share)
                    p = poly.add(poly.add(p, quotient, -1), {term: k}, -1)
                    return self._joined(poly.add(p, poly.multiply(y, share)))
        return p

    def _same_rest(self, p: Poly, others: Monomial, k: int, x: Poly, d: Poly) -> Poly | None:
        """The ``y`` of a term ``others * k * d * (y // d)`` of `p` where ``y % d == x % d``."""
        c = poly.as_constant(d)
        if c is None:
            return None
        for term, factor in p.items():
            if factor != k * c:
                continue
            for atom in term:
                if not isinstance(atom, Binary) or atom.op != "floordiv":
                    continue
                if _holds_data(atom, self.known.data):
                    continue
                if poly.divide_monomial(term, (atom,)) != others or poly.from_expr(atom.b) != d:
                    continue
                y = poly.from_expr(atom.a)
                if not floormod(poly.add(x, y, -1), d, self.known):
                    return y
        return None

    def _trunc(self, e: Binary, op: str) -> Poly:
        a, b = self.poly(e.a), self.poly(e.b)
        low, divisor_low = self.known.poly_bounds(a)[0], self.known.poly_bounds(b)[0]
        if low is not None and low >= 0 and divisor_low is not None and divisor_low >= 0:
            divide = floordiv if op == "truncdiv" else floormod
            return self._joined(divide(a, b, self.known))
        return poly.of_atom(map_prim(e, self.simplify))

    def _extreme(self, op: str, a: PrimExpr, b: PrimExpr) -> Poly:
        p, q = self.poly(a), self.poly(b)
        difference = poly.add(p, q, -1)
        if not difference:
            return p
        if self.known.is_exact(p) and self.known.is_exact(q):
            if is_nonnegative(difference, self.known):
                return q if op == "min" else p
            if is_nonnegative(poly.scale(difference, -1), self.known):
                return p if op == "min" else q
        x, y = poly.to_expr(p), poly.to_expr(q)
        if poly.key(y) < poly.key(x):
            x, y = y, x
        return poly.of_atom(Binary("min" if op == "min" else "max", x, y))

    def _select(self, e: Select) -> PrimExpr:
        condition = self.simplify(e.condition)
        if isinstance(condition, Imm):
            return self.simplify(e.then if condition.value else e.orelse)
        then, orelse = self.simplify(e.then), self.simplify(e.orelse)
        if then == orelse:
            return then
        if isinstance(condition, Not):
            condition, then, orelse = condition.a, orelse, then
        return Select(condition, then, orelse)

    def _compare(self, e: Compare) -> PrimExpr:
        if e.a.dtype != INT64:
            return self._compare_data(e)
        a, b = self.poly(e.a), self.poly(e.b)
        op, p = e.op, poly.add(a, b, -1)
        if not all(self.known.is_index(x) for x in (a, b, p)):
            return self._compare_wrapping(e, a, b)
        if op in ("gt", "ge"):
            op, p = ("lt" if op == "gt" else "le"), poly.scale(p, -1)
        if op == "le":  # integers: a <= b is a < b + 1
            op, p = "lt", poly.add(p, {ONE: -1})
        if op == "lt":
            return self._below_zero(p)
        return self._equals_zero(op, p)

    def _compare_wrapping(self, e: Compare, a: Poly, b: Poly) -> PrimExpr:
        """A comparison of what may wrap: decided by what holds for every value, else left."""
        up = poly.add(b, a, -1)
        if not up:
            return TRUE if e.op in ("eq", "le", "ge") else FALSE
        if self.known.is_exact(a) and self.known.is_exact(b):
            down, more = poly.scale(up, -1), poly.constant(-1)
            below = is_nonnegative(poly.add(up, more), self.known)
            above = is_nonnegative(poly.add(down, more), self.known)
            if below or above:
                return TRUE if _holds(e.op, 0 if below else 1, 1 if below else 0) else FALSE
            if e.op in ("le", "gt") and is_nonnegative(up, self.known):
                return TRUE if e.op == "le" else FALSE
            if e.op in ("ge", "lt") and is_nonnegative(down, self.known):
                return TRUE if e.op == "ge" else FALSE
        return self._compare_data(e)

    def _compare_data(self, e: Compare) -> PrimExpr:
        a, b = self.simplify(e.a), self.simplify(e.b)
        if isinstance(a, Imm) and isinstance(b, Imm) and a.dtype.lanes == 1:
            return TRUE if _holds(e.op, a.value, b.value) else FALSE
        return e if a is e.a and b is e.b else Compare(e.op, a, b)

    def _below_zero(self, p: Poly) -> PrimExpr:
        """``p < 0`` decided, or written with the positive terms on the left."""
        if is_nonnegative(p, self.known):
            return FALSE
        if is_nonnegative(poly.add(poly.scale(p, -1), {ONE: -1}), self.known):
            return TRUE
        g = poly.content(p)
        offset = p.get(ONE, 0)
        if g > 1:  # g * x + offset < 0  is  x < ceil(-offset / g)
            limit = -(offset // g)
            p = {t: k // g for t, k in p.items() if t}
            offset = -limit
            p = poly.add(p, poly.constant(offset))
        return _between("lt", p)

    def _equals_zero(self, op: CompareOp, p: Poly) -> PrimExpr:
        low, high = self.known.poly_bounds(p)
        if not p:
            return TRUE if op == "eq" else FALSE
        g = poly.content(p)
        never = (low is not None and low > 0) or (high is not None and high < 0)
        if never or (g and p.get(ONE, 0) % g) or _apart(p, self.known):
            return FALSE if op == "eq" else TRUE
        whole = gcd(g, p.get(ONE, 0))
        p = {t: k // whole for t, k in p.items()}
        terms = sorted((t for t in p if t), key=lambda t: [poly.key(a) for a in t])
        if p[terms[0]] < 0:
            p = poly.scale(p, -1)
        return _between(op, p)

    def _not(self, a: PrimExpr) -> PrimExpr:
        match a:
            case Imm():
                return FALSE if a.value else TRUE
            case Not():
                return a.a
            case Compare() if not a.a.dtype.is_float or a.op in ("eq", "ne"):
                return self.simplify(Compare(_INVERSE[a.op], a.a, a.b))
            case _:
                return Not(a)

    def _logical(self, e: Binary) -> PrimExpr:
        a, b = self.simplify(e.a), self.simplify(e.b)
        neutral = e.op == "and"
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Imm):
                return y if bool(x.value) == neutral else x
        if a == b:
            return a
        return e if a is e.a and b is e.b else Binary(e.op, a, b)

    def _cast(self, e: Cast) -> PrimExpr:
        value = self.simplify(e.value)
        if value.dtype == e.dtype:
            return value
        match value:
            case Imm(int() | bool() as number) if e.dtype.is_float and e.dtype.bits >= 32:
                if abs(number) <= 1 << 24:
                    return imm(float(number), e.dtype)
            case Imm(int() | bool() as number) if e.dtype.kind == "int":
                if -(1 << (e.dtype.bits - 1)) <= number < 1 << (e.dtype.bits - 1):
                    return imm(number, e.dtype)
            case _:
                pass
        return e if value is e.value else Cast(e.dtype, value)

    def _data(self, e: Binary) -> PrimExpr:
        """Arithmetic on data: only what is exact for every value, NaN and minus zero included."""
        a, b = self.simplify(e.a), self.simplify(e.b)
        if e.op in ("mul", "div") and isinstance(b, Imm) and b.value == 1:
            return a
        if e.op == "mul" and isinstance(a, Imm) and a.value == 1:
            return b
        if e.op in ("add", "sub") and e.dtype.is_int and isinstance(b, Imm) and b.value == 0:
            return a
        return e if a is e.a and b is e.b else Binary(e.op, a, b)


def _has_rest(p: Poly) -> bool:
    """Whether a rest of a division is a factor of a term."""
    for term in p:
        for atom in term:
            if isinstance(atom, Binary) and atom.op == "floormod":
                return True
    return False


def _holds_data(e: PrimExpr, data: Mapping[PrimVar, int]) -> bool:
    """Whether anything in a value comes from memory."""
    held = leaves(e)
    if not (held.loads or held.calls) and (not data or data.keys().isdisjoint(held.variables)):
        return False
    match e:
        case Load() | Intrinsic():
            return True
        case PrimVar():
            return data.get(e, 0) > BITS
        case Binary():
            return _holds_data(e.a, data) or _holds_data(e.b, data)
        case Cast() if e.value.dtype.is_float:
            return wraps(e, data)
        case Cast():
            return e.value.dtype == INT64 and _holds_data(e.value, data)
        case Select():
            return _holds_data(e.then, data) or _holds_data(e.orelse, data)
        case _:
            return False


def _apart(p: Poly, known: Known) -> bool:
    if is_nonnegative(poly.add(p, {ONE: -1}), known):
        return True
    return is_nonnegative(poly.add(poly.scale(p, -1), {ONE: -1}), known)


def _between(op: CompareOp, p: Poly) -> Compare:
    """``p op 0`` with positive terms on the left and the others, negated, on the right."""
    left = {t: k for t, k in p.items() if k > 0}
    right = {t: -k for t, k in p.items() if k < 0}
    if ONE in left and len(left) > 1:  # constants stand on the right, unless all else does
        right = poly.add(right, {ONE: -left.pop(ONE)})
    return Compare(op, poly.to_expr(left), poly.to_expr(right))


def _holds(op: CompareOp, a: float, b: float) -> bool:
    return {
        "eq": a == b,
        "ne": a != b,
        "lt": a < b,
        "le": a <= b,
        "gt": a > b,
        "ge": a >= b,
    }[op]
