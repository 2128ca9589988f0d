"""Floor division and modulus of normal forms, and the proof of signs that they need.

Every rule holds for all integers where the divisor is positive; a size that is divided by counts
as positive, since nothing is ever divided by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd

from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, Select, SizeVar

from . import polynomial as poly
from .interval import Interval
from .known import Known, Limits
from .polynomial import ONE, Poly

_ROUNDS = 8


def floordiv(p: Poly, d: Poly, known: Known) -> Poly:
    """The normal form of ``p // d``."""
    c = poly.as_constant(d)
    if c is not None:
        return _floordiv_constant(p, c, known)
    if not _is_positive_divisor(d, known):
        return _atom("floordiv", p, d)
    quotient, rest = _split(p, d)
    value = _known_quotient(rest, d, known)
    if value is not None:
        return poly.add(quotient, poly.constant(value))
    reduced = _reduced(rest, d, known)
    if reduced is not None:
        g, large, _ = reduced
        return poly.add(quotient, floordiv(large, _shrink(d, g), known))
    nested = _inner_division(rest, known)
    if nested is not None:
        x, a = nested
        return poly.add(quotient, floordiv(x, poly.multiply(a, d), known))
    return poly.add(quotient, _atom("floordiv", rest, d))


def _inner_division(p: Poly, known: Known) -> tuple[Poly, Poly] | None:
    """``x`` and ``a`` of a sum that is ``x // a``: of ``y // a + k``, the only quotient in it."""
    found = [m[0] for m, k in p.items() if len(m) == 1 and k == 1 and _is_quotient(m[0])]
    if len(found) != 1:
        return None
    (atom,) = found
    assert isinstance(atom, Binary)
    a, rest = poly.from_expr(atom.b), poly.add(p, poly.of_atom(atom), -1)
    if not a or not _is_positive_divisor(a, known):
        return None
    return poly.add(poly.from_expr(atom.a), poly.multiply(rest, a)), a


def _is_quotient(e: PrimExpr) -> bool:
    return isinstance(e, Binary) and e.op == "floordiv"


def floormod(p: Poly, d: Poly, known: Known) -> Poly:
    """The normal form of ``p % d``."""
    c = poly.as_constant(d)
    if c is not None:
        return _floormod_constant(p, c, known)
    if not _is_positive_divisor(d, known):
        return _atom("floormod", p, d)
    _, rest = _split(p, d)
    value = _known_quotient(rest, d, known)
    if value is not None:
        return poly.add(rest, d, -value)
    reduced = _reduced(rest, d, known)
    if reduced is not None:
        g, large, small = reduced
        return poly.add(poly.scale(floormod(large, _shrink(d, g), known), g), small)
    return _atom("floormod", rest, d)


def _reduced(p: Poly, d: Poly, known: Known) -> tuple[int, Poly, Poly] | None:
    """``g``, ``large`` and ``small`` of ``p == g * large + small`` where `g` divides `d`.

    `small` is from 0 to below `g`, so that ``p // d == large // (d / g)``.
    """
    for g in _divisors(p, gcd(*d.values())):
        large, small = _separate(p, g)
        if small_fits(small, g, known):
            return g, _shrink(large, g), small
    return None


def wholes(rest: Binary, known: Known) -> tuple[Poly, ...]:
    """What the dividend of a remainder exceeds it by: its divisor times each of its quotients."""
    found = known.found.wholes.get(rest)
    if found is None:
        p, d = poly.from_expr(rest.a), poly.from_expr(rest.b)
        found = tuple(poly.multiply(quotient, d) for quotient in _quotients(p, d, known))
        known.found.wholes[rest] = found
    return found


def _quotients(p: Poly, d: Poly, known: Known) -> Iterator[Poly]:
    """The normal form of ``p // d``, and that of ``x // (a * d)`` where `p` is ``x // a``."""
    yield floordiv(p, d, known)
    nested = None if poly.as_constant(d) is not None else _nested_quotient(p, known)
    if nested is not None and _is_positive_divisor(d, known):
        x, a, offset = nested
        yield floordiv(poly.add(x, a, offset), poly.multiply(a, d), known)


def _is_positive_divisor(d: Poly, known: Known) -> bool:
    return is_nonnegative(d, known)


def _atom(op: str, p: Poly, d: Poly) -> Poly:
    a, b = poly.to_expr(p), poly.to_expr(d)
    return poly.of_atom(Binary("floordiv" if op == "floordiv" else "floormod", a, b))


def _split(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """``p == quotient * d + rest`` by taking multiples of a symbolic divisor out of `p`."""
    if len(d) > 1:
        return _split_sum(p, d)
    ((monomial, factor),) = d.items()
    quotient: Poly = {}
    rest: Poly = {}
    for term, coefficient in p.items():
        others = poly.divide_monomial(term, monomial)
        if others is None or coefficient % factor:
            rest[term] = coefficient
        else:
            quotient[others] = coefficient // factor
    return quotient, rest


def _split_sum(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """The same for a divisor that is a sum, led by its first term of highest degree."""
    lead = max(d, key=len)
    quotient: Poly = {}
    for _ in range(_ROUNDS):
        for term, coefficient in p.items():
            others = poly.divide_monomial(term, lead)
            if others is not None and coefficient % d[lead] == 0:
                step: Poly = {others: coefficient // d[lead]}
                break
        else:
            return quotient, p
        quotient = poly.add(quotient, step)
        p = poly.add(p, poly.multiply(step, d), -1)
    return quotient, p


def _known_quotient(rest: Poly, d: Poly, known: Known) -> int | None:
    """0 or -1 where ``rest // d`` provably is that."""
    if not rest:
        return 0
    if is_nonnegative(rest, known):
        below = poly.add(poly.add(d, rest, -1), {ONE: -1})
        return 0 if is_nonnegative(below, known) else None
    negative = poly.add(poly.scale(rest, -1), {ONE: -1})
    if is_nonnegative(negative, known):
        # a divisor is at least 1, which the bounds of a size do not say
        at_least = poly.as_constant(rest) == -1 or is_nonnegative(poly.add(d, rest), known)
        return -1 if at_least else None
    return None


def _floordiv_constant(p: Poly, c: int, known: Known) -> Poly:
    if c <= 0:
        value = poly.as_constant(p)
        if value is not None and c:
            return poly.constant(value // c)
        return _atom("floordiv", p, poly.constant(c))
    if c == 1:
        return p
    quotient, rest = _take_multiples(p, c, known)
    return poly.add(quotient, _divide_rest(rest, c, known))


def _take_multiples(p: Poly, c: int, known: Known) -> tuple[Poly, Poly]:
    """``p == quotient * c + rest`` with every provable multiple of `c` in the quotient."""
    quotient: Poly = {}
    rest: Poly = {}
    for term, coefficient in p.items():
        if not term:
            whole, left = divmod(coefficient, c)
        elif coefficient % c == 0:
            whole, left = coefficient // c, 0
        else:
            whole, left = 0, coefficient
        if whole:
            quotient[term] = whole
        if left:
            rest[term] = left
    return quotient, rest


def _divide_rest(rest: Poly, c: int, known: Known) -> Poly:
    low, high = known.poly_bounds(rest)
    if low is not None and high is not None and low // c == high // c:
        return poly.constant(low // c)
    for g in _divisors(rest, c):
        large, small = _separate(rest, g)
        if small_fits(small, g, known):
            return _floordiv_constant(_shrink(large, g), c // g, known)
    inner = _nested_quotient(rest, known)
    if inner is not None:
        x, a, offset = inner
        return floordiv(poly.add(x, a, offset), poly.scale(a, c), known)
    modded = _nested_modulus(rest, c)
    if modded is not None:  # (x % (c * m)) // c == (x // c) % m
        x, m = modded
        return _floormod_constant(_floordiv_constant(x, c, known), m, known)
    return _atom("floordiv", rest, poly.constant(c))


def _divisors(rest: Poly, c: int) -> list[int]:
    """Common divisors of `c` and some coefficient, the largest first."""
    found = {gcd(c, k) for term, k in rest.items() if term}
    return sorted((g for g in found if g > 1), reverse=True)


def _separate(p: Poly, g: int) -> tuple[Poly, Poly]:
    """``p == large + small``, `large` being the multiples of `g`; the constant is split."""
    large: Poly = {}
    small: Poly = {}
    for term, coefficient in p.items():
        if not term:
            whole, left = coefficient - coefficient % g, coefficient % g
            if whole:
                large[term] = whole
            if left:
                small[term] = left
        elif coefficient % g == 0:
            large[term] = coefficient
        else:
            small[term] = coefficient
    return large, small


def _shrink(p: Poly, g: int) -> Poly:
    return {term: coefficient // g for term, coefficient in p.items()}


def small_fits(p: Poly, g: int, known: Known) -> bool:
    """Whether ``0 <= p < g``."""
    low, high = known.poly_bounds(p)
    return low is not None and high is not None and low >= 0 and high < g


def _nested_quotient(rest: Poly, known: Known) -> tuple[Poly, Poly, int] | None:
    """``x // a + offset`` taken apart, for ``(x // a + k) // c == (x + k * a) // (a * c)``."""
    offset = rest.get(ONE, 0)
    atom = poly.as_atom({t: k for t, k in rest.items() if t})
    if isinstance(atom, Binary) and atom.op == "floordiv":
        a = poly.from_expr(atom.b)
        if a and _is_positive_divisor(a, known):
            return poly.from_expr(atom.a), a, offset
    return None


def _nested_modulus(rest: Poly, c: int) -> tuple[Poly, int] | None:
    atom = poly.as_atom(rest)
    if isinstance(atom, Binary) and atom.op == "floormod":
        m = poly.as_constant(poly.from_expr(atom.b))
        if m is not None and m > 0 and m % c == 0:
            return poly.from_expr(atom.a), m // c
    return None


def _floormod_constant(p: Poly, c: int, known: Known) -> Poly:
    if c <= 0:
        value = poly.as_constant(p)
        if value is not None and c:
            return poly.constant(value % c)
        return _atom("floormod", p, poly.constant(c))
    if c == 1:
        return {}
    _, rest = _take_multiples(_unwrap_moduli(p, c), c, known)
    rest = {t: k for t, k in rest.items() if (k * known.divisor(t)) % c}
    low, high = known.poly_bounds(rest)
    if low is not None and high is not None and low // c == high // c:
        return poly.add(rest, poly.constant(-(low // c) * c))
    for g in _divisors(rest, c):
        large, small = _separate(rest, g)
        if small_fits(small, g, known):
            inner = _floormod_constant(_shrink(large, g), c // g, known)
            return poly.add(poly.scale(inner, g), small)
    return _atom("floormod", rest, poly.constant(c))


def _unwrap_moduli(p: Poly, c: int) -> Poly:
    """Terms ``k * (x % m)`` become ``k * x`` where `c` divides ``k * m``."""
    for term, coefficient in p.items():
        if len(term) == 1 and isinstance(term[0], Binary) and term[0].op == "floormod":
            m = poly.as_constant(poly.from_expr(term[0].b))
            if m is not None and m > 0 and (coefficient * m) % c == 0:
                rest = {t: k for t, k in p.items() if t != term}
                inner = poly.add(rest, poly.from_expr(term[0].a), coefficient)
                return _unwrap_moduli(inner, c)
    return p


def is_nonnegative(p: Poly, known: Known) -> bool:
    """Whether a normal form is provably never negative."""
    terms = frozenset(p.items())
    found = known.found.signs.get(terms)
    if found is None:
        found = known.found.signs[terms] = _is_nonnegative(p, known)
    return found


def _is_nonnegative(p: Poly, known: Known) -> bool:
    for _ in range(_ROUNDS):
        low = known.poly_bounds(p)[0]
        if low is not None and low >= 0:
            return True
        smaller = _lowered(p, known)
        if smaller is None:
            return False
        p = smaller
    return False


def _lowered(p: Poly, known: Known) -> Poly | None:
    """A poly never above `p`: one atom replaced by its limit over other variables, or a number."""
    found = _without_one(p, known, limits)
    if found is None and any(len(monomial) > 1 for monomial in p):
        return _without_one(p, known, _numbers)
    return found


def _numbers(atom: PrimExpr, known: Known) -> Limits:
    """The numbers that a variable lies between: of use where its factor is no number."""
    if not isinstance(atom, PrimVar | SizeVar):
        return None, None
    low, high = known.bounds(atom)
    least, most = (None if n is None else poly.constant(n) for n in (low, high))
    return least, most


def _without_one(
    p: Poly, known: Known, limits_of: Callable[[PrimExpr, Known], Limits]
) -> Poly | None:
    for atom in dict.fromkeys(a for monomial in p for a in monomial):
        if not isinstance(atom, PrimVar | SizeVar | Binary | Select):
            continue
        if isinstance(atom, PrimVar | SizeVar) and limits_of(atom, known) == (None, None):
            continue
        rest, factor = poly.split_linear(p, atom)
        if factor is None:
            continue
        low, high = known.poly_bounds(factor)
        if low is not None and low >= 0:
            limit = limits_of(atom, known)[0]
        elif high is not None and high <= 0:
            limit = limits_of(atom, known)[1]
        else:
            continue
        if limit is not None:
            return poly.add(rest, poly.multiply(factor, limit))
    return None


def bounds(p: Poly, known: Known) -> Interval:
    """Inclusive constant bounds of a normal form, also of what it lies between over variables."""
    low, high = known.poly_bounds(p)
    if high is None:
        high = _least_above(p, known)
    if low is None:
        below = _least_above(poly.scale(p, -1), known)
        low = None if below is None else -below
    return low, high


def _least_above(p: Poly, known: Known) -> int | None:
    """A number that a poly never exceeds, found by what its atoms never exceed."""
    for _ in range(_ROUNDS):
        raised = _raised(p, known)
        if raised is None:
            return None
        high = known.poly_bounds(raised)[1]
        if high is not None:
            return high
        p = raised
    return None


def limits(atom: PrimExpr, known: Known) -> Limits:
    """Polys that an atom never falls below or exceeds; None where it gives none of use."""
    found = known.found.limits.get(atom)
    if found is None:
        found = known.found.limits[atom] = _limits(atom, known)
    return found


def _limits(atom: PrimExpr, known: Known) -> Limits:
    match atom:
        case PrimVar():
            return known.limits.get(atom, (None, None))
        case Binary("floormod", _, b):
            d = known.exact(b)
            if _is_positive_divisor(d, known):
                return None, poly.add(d, {ONE: -1})
        case Binary("floordiv", a, b):
            d = known.exact(b)
            if _is_positive_divisor(d, known):
                high = _raised(known.exact(a), known)
                return None, None if high is None else floordiv(high, d, known)
        case Binary("min", a, b):
            return None, _simpler(known.exact(a), known.exact(b))
        case Binary("max", a, b):
            return _simpler(known.exact(a), known.exact(b)), None
        case _:
            pass
    return None, None


def _raised(p: Poly, known: Known) -> Poly | None:
    down = _lowered(poly.scale(p, -1), known)
    return None if down is None else poly.scale(down, -1)


def _simpler(p: Poly, q: Poly) -> Poly:
    """Of two limits the one over fewer atoms, constants being for `Known.bounds`."""
    if poly.as_constant(p) is not None:
        return q
    return p if poly.as_constant(q) is not None or len(p) <= len(q) else q
