"""What the symbols stand for during one call, bound from array shapes and checked against them.

Both levels bind here: a graph function's dims are turned into prim expressions first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from unity.errors import Span, UnityError
from unity.ir.dims import Dim
from unity.ir.prim_expr import DIVISIONS, Binary, Imm, PrimExpr, SizeVar
from unity.ir.signature import sizes_of
from unity.ir.symbols.convert import to_prim_expr

prim_of = lru_cache(maxsize=65536)(to_prim_expr)
"""`to_prim_expr`, remembered."""


def extent_value(expr: PrimExpr, values: Mapping[SizeVar, int]) -> int | None:
    """The number a shape expression stands for; None while a symbol in it has no value."""
    match expr:
        case Imm(int() as number):
            return int(number)
        case SizeVar():
            return values.get(expr)
        case Binary(op, a, b):
            left, right = extent_value(a, values), extent_value(b, values)
            if left is None or right is None:
                return None
            return _arithmetic(op, left, right)
        case _:
            raise UnityError(f"a shape holds symbols and integers only, got {expr!r}")


def _arithmetic(op: str, a: int, b: int) -> int:
    if op in DIVISIONS and b == 0:
        raise UnityError("a shape divides by zero")
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv" | "truncdiv":  # extents are not negative
            return a // b
        case "floormod" | "truncmod":
            return a % b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case _:
            raise UnityError(f"a shape can't hold {op!r}")


class Sizes:
    """Symbols with their values and where each value came from."""

    def __init__(
        self,
        values: Mapping[SizeVar, int] | None = None,
        origins: Mapping[SizeVar, str] | None = None,
    ) -> None:
        self.values: dict[SizeVar, int] = dict(values or {})
        self._origins: dict[SizeVar, str] = dict(origins or {})

    def child(self) -> Sizes:
        """A scope inside this one: what it binds is not seen outside."""
        return Sizes(self.values, self._origins)

    def assign(self, symbol: SizeVar, value: int, where: str, span: Span | None = None) -> None:
        """Give a symbol its value.

        Raises:
            UnityError: It has another value already, or the value breaks the symbol's facts.
        """
        known = self.values.get(symbol)
        if known is not None:
            if known != value:
                origin = self._origins.get(symbol, "the caller")
                raise UnityError(
                    f"{where} is {symbol.name}, which is {known} (from {origin}), got {value}", span
                )
            return
        facts = symbol.facts
        high = facts.max
        if value < facts.min or (high is not None and value > high) or value % facts.multiple_of:
            raise UnityError(
                f"{where} is {symbol.name}, got {value}, which breaks the symbol's facts: "
                f"min={facts.min}, max={facts.max}, multiple_of={facts.multiple_of}",
                span,
            )
        self.values[symbol] = value
        self._origins[symbol] = where

    def match(self, expr: PrimExpr, got: int, where: str, span: Span | None = None) -> bool:
        """Check or bind one extent; False when a symbol in it is still unknown.

        Raises:
            UnityError: The extent is another number; the message names `where` and both values.
        """
        if isinstance(expr, SizeVar):
            self.assign(expr, got, where, span)
            return True
        expected = extent_value(expr, self.values)
        if expected is None:
            return self._solve(expr, got, where, span)
        if expected != got:
            known = ", ".join(f"{s.name}={self.values[s]}" for s in dict.fromkeys(sizes_of(expr)))
            given = f" (with {known})" if known else ""
            raise UnityError(f"{where} should be {expected}{given}, got {got}", span)
        return True

    def told(self, dims: Sequence[Dim]) -> str:
        """Of what sizes are made, with their values: ``"; got n = 4 and m = 3"``."""
        found = dict.fromkeys(s for d in dims for s in sizes_of(prim_of(d)))
        told = " and ".join(
            f"{s.name} = {v}" for s in found if (v := self.values.get(s)) is not None
        )
        return f"; got {told}" if told else ""

    def allows(self, expr: PrimExpr, got: int) -> bool:
        """Whether an extent is `got` where its symbols without a value are that number, too."""
        unknown = {s: got for s in sizes_of(expr) if s not in self.values}
        return extent_value(expr, {**self.values, **unknown}) == got

    def _solve(self, expr: PrimExpr, got: int, where: str, span: Span | None) -> bool:
        """Bind the one unknown of a linear extent such as ``2 * n + 1``."""
        unknown = {s for s in sizes_of(expr) if s not in self.values}
        if len(unknown) != 1:
            return False
        symbol = unknown.pop()
        at_zero = extent_value(expr, {**self.values, symbol: 0})
        at_one = extent_value(expr, {**self.values, symbol: 1})
        assert at_zero is not None
        assert at_one is not None
        slope = at_one - at_zero
        if slope == 0 or (got - at_zero) % slope:
            return False
        value = (got - at_zero) // slope
        if value < 0 or extent_value(expr, {**self.values, symbol: value}) != got:
            return False
        self.assign(symbol, value, where, span)
        return True

    def evaluate(self, value: Dim | PrimExpr, span: Span | None = None) -> int:
        """The number a dim or a shape expression stands for.

        Raises:
            UnityError: A symbol in it has no value.
        """
        if isinstance(value, int):
            return int(value)
        expr = value if isinstance(value, _PRIM) else prim_of(value)
        number = extent_value(expr, self.values)
        if number is None:
            missing = ", ".join(s.name for s in sizes_of(expr) if s not in self.values)
            raise UnityError(f"no value is known for the symbol {missing}", span)
        return number


_PRIM = Imm | SizeVar | Binary
