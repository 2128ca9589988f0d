"""The normal form of index expressions: integer polynomials over atoms.

A `Poly` maps monomials to coefficients; a monomial is a sorted tuple of atoms, which are prim
expressions that are no sum, difference or product (variables, divisions, loads ...). Two sums that
differ in order or grouping have one normal form. Polys are never changed once made.
"""

from __future__ import annotations

from itertools import count
from math import gcd
from typing import TypeAlias

from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)

from .wrapping import LIMIT

Monomial: TypeAlias = tuple[PrimExpr, ...]
Poly: TypeAlias = dict[Monomial, int]
ONE: Monomial = ()


def constant(value: int) -> Poly:
    """The poly of an integer; zero has no terms."""
    return {ONE: value} if value else {}


def of_atom(atom: PrimExpr) -> Poly:
    """The poly of one atom."""
    return {(atom,): 1}


def as_constant(p: Poly) -> int | None:
    """The integer that a poly is, if it is one."""
    if not p:
        return 0
    return p.get(ONE) if len(p) == 1 else None


def as_atom(p: Poly) -> PrimExpr | None:
    """The atom that a poly is, if it is one."""
    if len(p) != 1:
        return None
    ((monomial, coefficient),) = p.items()
    return monomial[0] if coefficient == 1 and len(monomial) == 1 else None


def add(p: Poly, q: Poly, factor: int = 1) -> Poly:
    """``p + factor * q``."""
    if not q or not factor:
        return p
    result = dict(p)
    add_to(result, q, factor)
    return result


def add_to(p: Poly, q: Poly, factor: int) -> None:
    """Make ``p + factor * q`` of a poly that nobody has yet."""
    for monomial, coefficient in q.items():
        total = p.get(monomial, 0) + factor * coefficient
        if total:
            p[monomial] = total
        else:
            p.pop(monomial, None)


def scale(p: Poly, factor: int) -> Poly:
    """``factor * p``."""
    if factor == 1:
        return p
    return {m: c * factor for m, c in p.items()} if factor else {}


def multiply(p: Poly, q: Poly) -> Poly:
    """``p * q``."""
    for a, b in ((p, q), (q, p)):
        value = as_constant(a)
        if value is not None:
            return scale(b, value)
    result: Poly = {}
    for m, c in p.items():
        result = add(result, {_join(m, n): d for n, d in q.items()}, c)
    return result


def _join(m: Monomial, n: Monomial) -> Monomial:
    if not m or not n:
        return m or n
    return tuple(sorted(m + n, key=key))


def content(p: Poly) -> int:
    """The greatest common divisor of the coefficients, the constant term's left out."""
    found = 0
    for monomial, coefficient in p.items():
        if monomial:
            found = gcd(found, coefficient)
    return found


def common_factors(p: Poly) -> Monomial:
    """The atoms that are factors of every term."""
    first, *others = p or [ONE]
    shared: list[PrimExpr] = []
    for atom in first:
        taken = (*shared, atom)
        if all(divide_monomial(m, taken) is not None for m in others):
            shared.append(atom)
    return tuple(shared)


def divide_monomial(monomial: Monomial, by: Monomial) -> Monomial | None:
    """The monomial with the factors of another taken out; None if it lacks one."""
    if not by:
        return monomial
    rest = list(monomial)
    for atom in by:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def to_expr(p: Poly) -> PrimExpr:
    """The expression: high degrees first, then large coefficients, the constant last.

    Index expressions come out as one writes them: ``i * 64 + j * 8 + k``. What no int64 holds, as
    sums of data can have it, is written as what it wraps to.
    """
    if any(not -LIMIT <= c < LIMIT for c in p.values()):
        wrapped = {m: (c + LIMIT) % (2 * LIMIT) - LIMIT for m, c in p.items()}
        p = {m: c for m, c in wrapped.items() if c}
    offset = p.get(ONE, 0)
    if len(p) == bool(offset):
        return imm(offset)
    varying = frozenset(p.items() - {(ONE, offset)}) if offset else frozenset(p.items())
    found = _WRITTEN.get(varying)
    if found is None:
        if len(_WRITTEN) >= _MOST:
            _WRITTEN.clear()
        found = _WRITTEN[varying] = _written(dict(term for term in p.items() if term[0]))
    return _plus(found, ONE, offset) if offset else found


_MOST = 1 << 13
_WRITTEN: dict[frozenset[tuple[Monomial, int]], PrimExpr] = {}
"""Sums without their constants: what copies of a statement have in common is one object, of which
everything is found once."""


def _written(p: Poly) -> PrimExpr:
    """A sum of terms that are no constants."""
    (monomial, coefficient), *others = _ordered(p)
    result = _term(monomial, coefficient)
    for monomial, coefficient in others:
        result = _plus(result, monomial, coefficient)
    return result


def _plus(e: PrimExpr, monomial: Monomial, coefficient: int) -> PrimExpr:
    """A sum and another term."""
    if coefficient < 0:
        return Binary("sub", e, _term(monomial, -coefficient))
    return Binary("add", e, _term(monomial, coefficient))


def _ordered(p: Poly) -> list[tuple[Monomial, int]]:
    """The terms in the order in which they are written; names decide where nothing else does."""
    terms = list(p.items())
    if len(terms) == 1:
        return terms
    orders = [_order(*term) for term in terms]
    if len(set(orders)) < len(orders):
        orders = [
            (*order, ",".join([key(a) for a in monomial]))
            for order, (monomial, _) in zip(orders, terms, strict=True)
        ]
    return [terms[i] for i in sorted(range(len(terms)), key=orders.__getitem__)]


def _order(monomial: Monomial, coefficient: int) -> tuple[int | str, ...]:
    return not monomial, coefficient < 0, -len(monomial), -abs(coefficient)


def _term(monomial: Monomial, coefficient: int) -> PrimExpr:
    if not monomial:
        return imm(coefficient)
    result = monomial[0]
    for atom in monomial[1:]:
        result = Binary("mul", result, atom)
    return result if coefficient == 1 else Binary("mul", result, imm(coefficient))


_SERIALS = count()
"""Of variables, in the order in which they are asked for."""


def key(e: PrimExpr) -> str:
    """A text that orders expressions; of variables of one name, the one asked for first is first.

    So a kernel is the same whenever it is made, which its object's place in the cache needs.
    """
    try:
        return e.order
    except AttributeError:
        found = _key(e)
        object.__setattr__(e, "order", found)
        return found


def _key(e: PrimExpr) -> str:
    match e:
        case PrimVar():
            return f"{e.name}.{next(_SERIALS):012}"
        case SizeVar():
            return e.name
        case Imm():
            return str(e.value)
        case Binary() | Compare():
            return f"~{e.op}({key(e.a)},{key(e.b)})"
        case Not():
            return f"~not({key(e.a)})"
        case Select():
            return f"~select({key(e.condition)},{key(e.then)},{key(e.orelse)})"
        case Cast() | Broadcast():
            return f"~{e.dtype}({key(e.value)})"
        case Load():
            return f"~{e.buffer.name}[{','.join([key(i) for i in e.indices])}]"
        case Intrinsic():
            return f"~{e.name}({','.join([key(a) for a in e.args])})"
        case Ramp():
            return f"~ramp({key(e.base)},{key(e.stride)})"


def from_expr(e: PrimExpr) -> Poly:
    """The poly of an expression whose atoms are taken as they stand."""
    if isinstance(e, Binary):
        if e.op not in ("add", "sub", "mul"):
            return of_atom(e)
        found = e.linear or _READ.get(e)
        if not found:
            if len(_READ) >= _MOST:
                _READ.clear()
            found = _READ[e] = _read(e)
        return found
    return constant(e.value) if isinstance(e, Imm) and isinstance(e.value, int) else of_atom(e)


_READ: dict[Binary, Poly] = {}
"""The polys of sums and products that are not linear: proofs ask for the same ones again."""


def _read(e: Binary) -> Poly:
    a, b = from_expr(e.a), from_expr(e.b)
    if e.op == "mul":
        return multiply(a, b)
    return add(a, b, 1 if e.op == "add" else -1)


def split_linear(p: Poly, atom: PrimExpr) -> tuple[Poly, Poly | None]:
    """``p == rest + factor * atom``; the factor is None where `p` is not linear in the atom."""
    rest: Poly = {}
    factor: Poly = {}
    for monomial, coefficient in p.items():
        if atom not in monomial:
            rest[monomial] = coefficient
            continue
        others = divide_monomial(monomial, (atom,))
        assert others is not None
        if atom in others:
            return p, None
        factor[others] = coefficient
    return rest, factor
