"""Our sympy nodes: symbols with facts, and floor division, modulo, minimum and maximum of integers.

sympy's own ``floor``, ``Mod``, ``Min`` and ``Max`` cost up to milliseconds each; these apply a few
integer rules and nothing else. Use them through `unity.ir.dims`.
"""

from __future__ import annotations

from typing import Self, cast

import sympy

from unity.ir import dims
from unity.ir.dims import NO_FACTS, Facts


class Symbol(sympy.Symbol):
    """A named non-negative integer unknown and its facts; make one with `dim`.

    Equal symbols have equal names and facts. ``//`` and ``%`` build our own nodes.
    """

    __slots__ = ("facts",)
    facts: Facts

    def __new__(cls, name: str, facts: Facts = NO_FACTS) -> Self:
        """Make the symbol (not cached by sympy; `dim` caches)."""
        obj = sympy.Symbol.__xnew__(cls, name, integer=True, nonnegative=True)
        obj.facts = facts
        return cast("Self", obj)

    def _hashable_content(self) -> tuple[object, ...]:
        facts = self.facts
        typical = -1 if facts.typical is None else facts.typical
        return (self.name, facts.min, facts.max or -1, facts.multiple_of, typical)

    def __getnewargs_ex__(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """Copy and pickle support."""
        return (self.name, self.facts), {}

    def __floordiv__(self, other: int | sympy.Expr) -> sympy.Expr:
        return FloorDiv(self, sympy.sympify(other))

    def __rfloordiv__(self, other: int | sympy.Expr) -> sympy.Expr:
        return FloorDiv(sympy.sympify(other), self)

    def __mod__(self, other: int | sympy.Expr) -> sympy.Expr:
        return FloorMod(self, sympy.sympify(other))

    def __rmod__(self, other: int | sympy.Expr) -> sympy.Expr:
        return FloorMod(sympy.sympify(other), self)


class FloorDiv(sympy.Function):
    """``a // b`` rounding down, with integer rules only."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        """Constant folding, division by one and by a common factor."""
        if b == 1 or a == 0:
            return a
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) // int(b))
        if a == b:
            return sympy.Integer(1)
        if isinstance(a, FloorDiv) and b.is_Integer and a.args[1].is_Integer and b > 0:
            return FloorDiv(a.args[0], a.args[1] * b)
        if not b.is_Integer:
            less, by = _reduced(a, b)
            if by != b:
                return FloorDiv(less, by)
        quotient, rest = _split(a, b)
        if quotient == 0:
            return None
        return quotient if rest == 0 else quotient + FloorDiv(rest, b)

    def _eval_is_nonnegative(self) -> bool | None:
        a, b = self.args
        return True if a.is_nonnegative and b.is_nonnegative else None


class FloorMod(sympy.Function):
    """``a % b`` with the sign of ``b``, with integer rules only."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        """Constant folding and dropping of multiples of the divisor."""
        if b == 1 or a == 0 or a == b:
            return sympy.Integer(0)
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) % int(b))
        if b.is_Integer and all(known_divisor(t) % int(b) == 0 for t in sympy.Add.make_args(a)):
            return sympy.Integer(0)
        quotient, rest = _split(a, b)
        if quotient == 0:
            return None
        return FloorMod(rest, b)

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_nonnegative else None


class DimMin(sympy.Function):
    """The smaller of two dims."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        """Decided by a constant difference, else ordered canonically."""
        difference = a - b
        if difference.is_nonnegative:
            return b
        if difference.is_nonpositive:
            return a
        return None if _ordered(a, b) else DimMin(b, a)

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(a.is_nonnegative for a in self.args) else None


class DimMax(sympy.Function):
    """The larger of two dims."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        """Decided by a constant difference, else ordered canonically."""
        difference = a - b
        if difference.is_nonnegative:
            return a
        if difference.is_nonpositive:
            return b
        return None if _ordered(a, b) else DimMax(b, a)

    def _eval_is_nonnegative(self) -> bool | None:
        return True if any(a.is_nonnegative for a in self.args) else None


def _ordered(a: sympy.Expr, b: sympy.Expr) -> bool:
    return bool(a.sort_key() <= b.sort_key())


def _split(a: sympy.Expr, b: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """``a == quotient * b + rest``, moving into the quotient every term that `b` divides."""
    quotient: sympy.Expr = sympy.Integer(0)
    rest: sympy.Expr = sympy.Integer(0)
    divisor = int(b) if b.is_Integer else None
    for term in sympy.Add.make_args(a):
        coefficient, factors = term.as_coeff_Mul()
        if divisor is not None:
            if int(coefficient) % divisor == 0:
                quotient += sympy.Integer(int(coefficient) // divisor) * factors
            elif factors == 1:
                quotient += sympy.Integer(int(coefficient) // divisor)
                rest += sympy.Integer(int(coefficient) % divisor)
            else:
                rest += term
        elif b in sympy.Mul.make_args(factors):
            quotient += coefficient * sympy.Mul(*_without(list(sympy.Mul.make_args(factors)), b))
        else:
            rest += term
    return quotient, rest


def _reduced(a: sympy.Expr, b: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """Both without the unknowns that are factors of all their terms."""
    terms = [list(sympy.Mul.make_args(t)) for t in sympy.Add.make_args(a)]
    left = list(sympy.Mul.make_args(b))
    for factor in sympy.Mul.make_args(b):
        if not factor.is_Integer and all(factor in term for term in terms):
            left.remove(factor)
            for term in terms:
                term.remove(factor)
    if len(left) == len(sympy.Mul.make_args(b)):
        return a, b
    return sympy.Add(*(sympy.Mul(*term) for term in terms)), sympy.Mul(*left)


def _without(factors: list[sympy.Expr], one: sympy.Expr) -> list[sympy.Expr]:
    factors.remove(one)
    return factors


def known_divisor(term: sympy.Expr) -> int:
    """The largest number known to divide a product."""
    coefficient, factors = term.as_coeff_Mul()
    known = abs(int(coefficient))
    for factor in sympy.Mul.make_args(factors):
        if isinstance(factor, Symbol):
            known *= factor.facts.multiple_of
    return known


dims.SymDim.register(sympy.Expr)
dims.Symbol.register(Symbol)
