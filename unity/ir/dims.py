"""Dims: integer shape expressions, an ``int`` or a sympy expression over symbols.

sympy is untyped and has traps (its ``floor``, ``Mod``, ``Min``, ``simplify`` and ``subs`` cost up
to minutes), so it lives behind the typed functions of this file. Go through these. It is imported
(0.25 s) when the first symbol is made: numbers don't need it.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from keyword import iskeyword
from math import gcd
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias, cast

from unity.arguments import public
from unity.errors import UnityError
from unity.lazy import Deferred

if TYPE_CHECKING:
    import sympy

    from .symbols import sympy_nodes as nodes
else:
    sympy, nodes = Deferred("sympy"), Deferred("unity.ir.symbols.sympy_nodes")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a symbol: an inclusive range, a divisor, and what it usually is."""

    min: int = 0
    max: int | None = None
    multiple_of: int = 1
    typical: int | None = None


NO_FACTS = Facts()


if TYPE_CHECKING:

    class SymDim:
        """The typed face of ``sympy.Expr``: what may be done with a symbolic dim."""

        @classmethod
        def register(cls, subclass: type) -> type:
            """Count the instances of a class among these."""
            ...

        def __add__(self, other: int | SymDim) -> SymDim: ...
        def __radd__(self, other: int) -> SymDim: ...
        def __sub__(self, other: int | SymDim) -> SymDim: ...
        def __rsub__(self, other: int) -> SymDim: ...
        def __mul__(self, other: int | SymDim) -> SymDim: ...
        def __rmul__(self, other: int) -> SymDim: ...
        def __neg__(self) -> SymDim: ...
        def __floordiv__(self, other: int | SymDim) -> SymDim: ...
        def __rfloordiv__(self, other: int) -> SymDim: ...
        def __mod__(self, other: int | SymDim) -> SymDim: ...
        def __rmod__(self, other: int) -> SymDim: ...

    class Symbol(SymDim):
        """A named non-negative integer unknown and its facts; make one with `dim`."""

        name: str
        facts: Facts

else:

    class SymDim(metaclass=ABCMeta):  # noqa: B024 - it is registered with
        """Any expression of sympy's, which `sympy_nodes` registers here once it is imported."""

    class Symbol(SymDim):
        """A named non-negative integer unknown and its facts; make one with `dim`."""


Dim: TypeAlias = int | SymDim
Dynamic: TypeAlias = "Mapping[str, Mapping[int, Dim | str] | int]"
"""Input name -> axis -> its new dim; or symbol name -> its value."""


@public
@cache
def dim(
    name: str,
    *,
    min: int = 0,
    max: int | None = None,
    multiple_of: int = 1,
    typical: int | None = None,
) -> Symbol:
    """The symbol of this name: an unknown size.

    Args:
        name: A Python identifier.
        min: Least value it may take.
        max: Greatest value it may take, None for no limit.
        multiple_of: A number it is always divisible by.
        typical: What it usually is: what costs are estimated at. Any other value works as well.

    >>> dim("n") + 1
    n + 1

    Raises:
        UnityError: The name is no identifier, or the facts contradict each other.
    """
    if not name.isidentifier():
        raise UnityError(f"a dim's name must be an identifier, got {name!r}")
    if iskeyword(name):
        raise UnityError(
            f"a dim can't be called {name!r}: Python keeps that word", hint=f"dim({name + '_'!r})"
        )
    if min < 0 or multiple_of < 1 or (max is not None and max < min):
        raise UnityError(
            f"dim {name!r}: min={min}, max={max}, multiple_of={multiple_of} contradict",
            hint="give 0 <= min <= max and multiple_of >= 1",
        )
    facts = Facts(min, max, multiple_of, typical)
    if typical is not None and not may_be(facts, typical):
        raise UnityError(
            f"dim {name!r}: typical={typical} is no value that it may have",
            hint=f"min={min}, max={max}, multiple_of={multiple_of}",
        )
    return symbol_of_facts(name, facts)


@cache
def symbol_of_facts(name: str, facts: Facts) -> Symbol:
    """The symbol of a name and of facts that fit together."""
    return cast("Symbol", nodes.Symbol(name, facts))


def may_be(facts: Facts, value: int) -> bool:
    """Whether a symbol of some facts may have a value."""
    high = value if facts.max is None else facts.max
    return facts.min <= value <= high and value % facts.multiple_of == 0


def floordiv(a: Dim, b: Dim) -> Dim:
    """``a // b`` rounding down.

    >>> floordiv(dim("n") * 16 + 15, 16)
    n
    """
    if type(a) is int and type(b) is int and b:
        return a // b
    return as_dim(nodes.FloorDiv(sympy.sympify(a), sympy.sympify(b)))


def floormod(a: Dim, b: Dim) -> Dim:
    """``a % b`` with the sign of the divisor."""
    if type(a) is int and type(b) is int and b:
        return a % b
    return as_dim(nodes.FloorMod(sympy.sympify(a), sympy.sympify(b)))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """``a / b`` rounded up."""
    return floordiv(a + b - 1, b)


def dim_min(a: Dim, b: Dim) -> Dim:
    """The smaller of two dims."""
    if type(a) is int and type(b) is int:
        return min(a, b)
    return as_dim(nodes.DimMin(sympy.sympify(a), sympy.sympify(b)))


def dim_max(a: Dim, b: Dim) -> Dim:
    """The larger of two dims."""
    if type(a) is int and type(b) is int:
        return max(a, b)
    return as_dim(nodes.DimMax(sympy.sympify(a), sympy.sympify(b)))


def as_dim(value: object) -> Dim:
    """A dim of an integer, a numpy integer or a sympy expression, in our form.

    sympy's ``floor(a / b)`` and ``Mod``, ``Min``, ``Max`` are turned into ours.

    Raises:
        UnityError: The value is no integer expression.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if "sympy" in sys.modules and isinstance(value, sympy.Expr):
        if value.is_Integer:
            return int(value)
        if _is_ours(value):
            return cast("Dim", value)
        if value.is_integer is not False and not value.is_Float:
            return cast("Dim", _ours(value))
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return int(value)
    hint = f'a size that is known at run time is a symbol: {value} = dim("{value}")'
    raise UnityError(
        f"a dim must be an integer or an expression over dims, got {value!r}",
        hint=hint if isinstance(value, str) and value.isidentifier() else None,
    )


@lru_cache(maxsize=65536)
def _is_ours(value: sympy.Expr) -> bool:
    """Whether an expression is plainly a dim: sympy takes milliseconds to say so of a long sum."""
    match value:
        case nodes.Symbol() | sympy.Integer():
            return True
        case sympy.Add() | sympy.Mul() | nodes.FloorDiv() | nodes.FloorMod():
            return all(map(_is_ours, value.args))
        case nodes.DimMin() | nodes.DimMax():
            return all(map(_is_ours, value.args))
        case _:
            return False


def _ours(value: sympy.Expr) -> sympy.Expr:
    if not value.has(sympy.floor, sympy.Mod, sympy.Min, sympy.Max):
        return value
    args = [_ours(arg) for arg in value.args]
    match value:
        case sympy.floor():
            numerator, denominator = args[0].as_numer_denom()
            return nodes.FloorDiv(numerator, denominator)
        case sympy.Mod():
            return nodes.FloorMod(*args)
        case sympy.Min() | sympy.Max():
            pick = nodes.DimMin if isinstance(value, sympy.Min) else nodes.DimMax
            result = args[0]
            for arg in args[1:]:
                result = pick(result, arg)
            return result
        case _:
            return value.func(*args) if args else value


def symbols_of(*dims: Dim) -> frozenset[Symbol]:
    """The symbols that occur in some dims."""
    found: set[Symbol] = set()
    for d in dims:
        if not isinstance(d, int):
            found |= _free(d)
    return frozenset(found)


@lru_cache(maxsize=65536)
def _free(value: SymDim) -> frozenset[Symbol]:
    return frozenset(cast("set[Symbol]", cast("sympy.Expr", value).free_symbols))


def substitute(value: Dim, mapping: Mapping[Symbol, Dim]) -> Dim:
    """The dim with symbols replaced, all at once."""
    if isinstance(value, int) or not mapping:
        return value
    expr = cast("sympy.Expr", value)
    if mapping.keys().isdisjoint(_free(value)):
        return value
    return as_dim(expr.xreplace({k: sympy.sympify(v) for k, v in mapping.items()}))


def evaluate(value: Dim, mapping: Mapping[Symbol, int]) -> int:
    """The number a dim stands for when every symbol has a value.

    Raises:
        UnityError: A symbol has no value.
    """
    result = substitute(value, cast("Mapping[Symbol, Dim]", mapping))
    if isinstance(result, int):
        return result
    missing = ", ".join(sorted(s.name for s in symbols_of(result)))
    raise UnityError(f"the dim {value} needs values for {missing}")


@lru_cache(maxsize=65536)
def equal(a: Dim, b: Dim) -> bool:
    """Whether two dims are provably equal: structurally, or after expanding the difference."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b:
        return True
    return bool(sympy.expand(sympy.sympify(a) - sympy.sympify(b)) == 0)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of dims; 1 of none."""
    result: Dim = 1
    for d in dims:
        result = result * d
    return as_dim(result)


@lru_cache(maxsize=65536)
def bounds(value: Dim) -> tuple[int | None, int | None]:
    """An inclusive range that holds the dim, from its symbols' facts; None is no limit."""
    if type(value) is int:
        return value, value
    return _bounds(sympy.sympify(value))


def _bounds(e: sympy.Expr) -> tuple[int | None, int | None]:
    match e:
        case sympy.Integer():
            return int(e), int(e)
        case nodes.Symbol():
            return e.facts.min, e.facts.max
        case sympy.Add():
            lows, highs = zip(*(_bounds(a) for a in e.args), strict=True)
            return _sum(lows), _sum(highs)
        case sympy.Mul():
            result: tuple[int | None, int | None] = (1, 1)
            for a in e.args:
                result = _times(result, _bounds(a))
            return result
        case nodes.FloorDiv():
            (low, high), (dlow, dhigh) = _bounds(e.args[0]), _bounds(e.args[1])
            if low is None or low < 0 or dlow is None or dlow <= 0:
                return None, None
            return (0 if dhigh is None else low // dhigh), (None if high is None else high // dlow)
        case nodes.FloorMod():
            dlow, dhigh = _bounds(e.args[1])
            if dlow is None or dlow <= 0:
                return None, None
            return 0, (None if dhigh is None else dhigh - 1)
        case nodes.DimMin() | nodes.DimMax():
            (al, ah), (bl, bh) = _bounds(e.args[0]), _bounds(e.args[1])
            strict = isinstance(e, nodes.DimMin)
            pick = min if strict else max
            low = pick(al, bl) if al is not None and bl is not None else None
            high = pick(ah, bh) if ah is not None and bh is not None else None
            if strict and high is None:
                high = ah if ah is not None else bh
            if not strict and low is None:
                low = al if al is not None else bl
            return low, high
        case _:
            return None, None


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for v in values:
        if v is None:
            return None
        total += v
    return total


def _times(
    a: tuple[int | None, int | None], b: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    (al, ah), (bl, bh) = a, b
    if al is not None and al >= 0 and bl is not None and bl >= 0:
        return al * bl, (None if ah is None or bh is None else ah * bh)
    corners = [x * y for x in a for y in b if x is not None and y is not None]
    if len(corners) == 4:
        return min(corners), max(corners)
    if al is not None and al == ah and al < 0:
        return (None if bh is None else al * bh), (None if bl is None else al * bl)
    if bl is not None and bl == bh and bl < 0:
        return _times(b, a)
    return None, None


def always_ge(a: Dim, b: Dim) -> bool:
    """Whether ``a >= b`` is provable from the symbols' facts.

    >>> always_ge(dim("n"), dim_min(100, dim("n")))
    True
    >>> always_ge(dim("n"), floordiv(dim("n"), 2)), always_ge(floordiv(dim("n"), 2), 1)
    (True, False)
    >>> always_ge(dim("n"), dim_max(0, dim("n") - 1))
    True
    """
    if type(a) is int and type(b) is int:
        return a >= b
    if isinstance(b, nodes.DimMin):
        return any(always_ge(a, as_dim(part)) for part in b.args)
    if isinstance(b, nodes.DimMax):
        return all(always_ge(a, as_dim(part)) for part in b.args)
    difference = sympy.expand(sympy.sympify(a) - sympy.sympify(b))
    low, _ = bounds(as_dim(difference))
    if low is not None and low >= 0:
        return True
    smaller = _without_quotient(difference)
    return smaller is not None and always_ge(smaller, 0)


def _without_quotient(e: sympy.Expr) -> Dim | None:
    """A multiple of at most `e`: ``n - n // 2`` is at least half of ``2 * n - n``.

    None where nothing is taken away that is a quotient by a number.
    """
    for term in sympy.Add.make_args(e):
        count, rest = term.as_coeff_Mul()
        if count < 0 and isinstance(rest, nodes.FloorDiv) and rest.args[1].is_Integer:
            number, by = rest.args
            if by > 0:
                return as_dim(sympy.expand(by * (e - term) + count * number))
    return None


def divisor(value: Dim) -> int:
    """The largest number known to divide a dim (0 for the dim 0)."""
    if type(value) is int:
        return abs(value)
    known = 0
    for term in sympy.Add.make_args(sympy.expand(sympy.sympify(value))):
        known = gcd(known, nodes.known_divisor(term))
    return known


def factors_of(value: Dim) -> tuple[Dim, ...]:
    """What a dim is the product of, as it is written.

    >>> factors_of(dim("n") * 6)
    (6, n)
    """
    if isinstance(value, int):
        return (value,)
    return tuple(as_dim(f) for f in sympy.Mul.make_args(sympy.sympify(value)))


def dim_text(value: Dim) -> str:
    """The dim as Python source, e.g. ``(n + 15) // 16``."""
    return str(value) if isinstance(value, int) else _written(value)


@lru_cache(maxsize=65536)
def _written(value: SymDim) -> str:
    return _text(cast("sympy.Expr", value), 0)


def _text(e: sympy.Expr, precedence: int) -> str:
    match e:
        case sympy.Integer() | sympy.Symbol():
            text, level = str(e), (3 if e.is_Symbol or e >= 0 else 1)
        case sympy.Add():
            terms = sorted(e.args, key=lambda t: (t.is_Integer, t.sort_key()))
            text, level = _text(terms[0], 1), 1
            for term in terms[1:]:
                coefficient, rest = term.as_coeff_Mul()
                if coefficient < 0:
                    text += f" - {_text(-coefficient * rest, 2)}"
                else:
                    text += f" + {_text(term, 1)}"
        case sympy.Mul():
            coefficient, rest = e.as_coeff_Mul()
            factors = sorted(sympy.Mul.make_args(rest), key=lambda t: t.sort_key())
            parts = [_text(f, 3) for f in factors]
            text, level = " * ".join(parts), 2
            if coefficient == -1:
                text = f"-{parts[0]}" + "".join(f" * {p}" for p in parts[1:])
            elif coefficient != 1:
                text = f"{text} * {coefficient}" if coefficient > 0 else f"{coefficient} * {text}"
        case sympy.Pow():
            base = _text(e.base, 3)
            text, level = " * ".join([base] * int(e.exp)), 2
        case nodes.FloorDiv():
            text, level = f"{_text(e.args[0], 2)} // {_text(e.args[1], 3)}", 2
        case nodes.FloorMod():
            text, level = f"{_text(e.args[0], 2)} % {_text(e.args[1], 3)}", 2
        case nodes.DimMin() | nodes.DimMax():
            name = "min" if isinstance(e, nodes.DimMin) else "max"
            text, level = f"{name}({_text(e.args[0], 0)}, {_text(e.args[1], 0)})", 3
        case _:
            raise UnityError(f"no text for the dim {e!r}")
    return f"({text})" if level < precedence else text
