"""Index maps: axes parted, turned and joined, as a text ``"n, c -> n, c // 4, c % 4"`` says it.

On the right each part of each axis stands once: ``c // 4`` and ``c % 4`` are the parts of ``c``,
and a sum ``c * 4 + b`` joins axes to one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from unity.errors import UnityError
from unity.ir.dims import Dim, ceildiv, product

_HINT = "an index is i, i // 4, i % 4, i // 4 % 2, or a sum of such, i * 4 + j"


@dataclass(frozen=True, slots=True)
class Part:
    """``axis // low``, and of that the remainder by ``high // low`` if there is a ``high``."""

    axis: int
    low: int
    high: int | None

    def extent(self, shape: Sequence[Dim]) -> Dim:
        """How many indices it has, of a tensor of a shape: with the last block filled up."""
        if self.high is not None:
            return self.high // self.low
        return shape[self.axis] if self.low == 1 else ceildiv(shape[self.axis], self.low)


Joined: TypeAlias = "tuple[tuple[Part, int], ...]"
"""The parts that an index of the result sums up, each with its factor, the greatest first."""


@dataclass(frozen=True, slots=True)
class IndexMap:
    """A map that has an inverse.

    Attributes:
        names: The operand's axes.
        joined: The parts of each axis of the result.
        parts: The parts of each axis of the operand, the greatest first.
    """

    names: tuple[str, ...]
    joined: tuple[Joined, ...]
    parts: tuple[tuple[Part, ...], ...]

    def whole(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """A shape with the last block of each axis filled up."""
        lows = [parts[0].low for parts in self.parts]
        return tuple(
            n if low == 1 else ceildiv(n, low) * low for n, low in zip(shape, lows, strict=True)
        )

    def parted(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The extents of all parts, in the order of the operand's axes."""
        return tuple(p.extent(shape) for parts in self.parts for p in parts)

    def order(self) -> tuple[int, ...]:
        """For each part of the result, its place among the operand's."""
        ordered = [p for parts in self.parts for p in parts]
        return tuple(ordered.index(p) for group in self.joined for p, _ in group)

    def result(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape of the result."""
        return tuple(product(p.extent(shape) for p, _ in group) for group in self.joined)

    def fixed(self) -> dict[int, int]:
        """The axes that are joined as a whole behind others, with the extents that they must have.

        Raises:
            UnityError: Parts of known extents do not lie one behind the other.
        """
        found: dict[int, int] = {}
        for group in self.joined:
            for (_, before), (part, factor) in pairwise(group):
                wanted = before // factor
                if part.high is None and part.low == 1:
                    found[part.axis] = wanted
                elif part.high is None or part.high // part.low != wanted:
                    name = self.names[part.axis]
                    raise UnityError(f"the map does not tell {name!r} apart", hint=_HINT)
        return found


def read_index_map(text: str) -> IndexMap:
    """A map from its text.

    Raises:
        UnityError: It is none, or does more than part, turn and join axes.

    >>> found = read_index_map("n, c -> n, c // 4, c % 4")
    >>> found.result((2, 8)), found.order()
    ((2, 2, 4), (0, 1, 2))
    """
    left, arrow, right = text.partition("->")
    names = tuple(name.strip() for name in left.split(",") if name.strip())
    if not arrow or not all(n.isidentifier() for n in names) or len({*names}) < len(names):
        raise _no_map(text)
    try:
        body = ast.parse(f"({right},)" if right.strip() else "()", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_map(text) from None
    if not isinstance(body, ast.Tuple):
        raise _no_map(text)
    joined = tuple(_joined(e, names) for e in body.elts)
    found = IndexMap(names, joined, _by_axis([p for g in joined for p, _ in g], names))
    found.fixed()
    return found


def _no_map(text: str) -> UnityError:
    return UnityError(
        f"{text!r} is no index map", hint='it looks like "n, c, h, w -> n, c // 4, h, w, c % 4"'
    )


def _joined(node: ast.expr, names: Sequence[str]) -> Joined:
    terms: list[tuple[Part, int]] = []
    left = [node]
    while left:
        term = left.pop()
        match term:
            case ast.BinOp(a, ast.Add(), b):
                left += [a, b]
                continue
            case ast.BinOp(a, ast.Mult(), ast.Constant(int() as factor)):
                part = _part(a, names)
            case ast.BinOp(ast.Constant(int() as factor), ast.Mult(), b):
                part = _part(b, names)
            case _:
                part, factor = _part(term, names), 1
        if part is None or factor < 1:
            raise _refused(node)
        terms.append((part, factor))
    terms.sort(key=lambda t: -t[1])
    factors = [f for _, f in terms]
    if factors[-1] != 1 or any(a % b or a == b for a, b in pairwise(factors)):
        raise _refused(node)
    return tuple(terms)


def _refused(node: ast.expr) -> UnityError:
    return UnityError(f"the map can't compute {ast.unparse(node)!r}", hint=_HINT)


def _part(node: ast.expr, names: Sequence[str]) -> Part | None:
    match node:
        case ast.Name(name) if name in names:
            return Part(names.index(name), 1, None)
        case ast.BinOp(inner, ast.FloorDiv() | ast.Mod() as op, ast.Constant(int() as number)):
            part = _part(inner, names)
            if part is None or isinstance(number, bool) or number < 1:
                return None
            at = part.low * number
            if part.high is not None and part.high % at:
                return None
            if isinstance(op, ast.FloorDiv):
                return Part(part.axis, at, part.high)
            return Part(part.axis, part.low, at)
        case _:
            return None


def _by_axis(found: Sequence[Part], names: Sequence[str]) -> tuple[tuple[Part, ...], ...]:
    """The parts of each axis, the greatest first: together they are the axis, each once."""
    result: list[tuple[Part, ...]] = []
    for axis, name in enumerate(names):
        parts = sorted((p for p in found if p.axis == axis), key=lambda p: -p.low)
        ends = [p.high for p in parts]
        if ends != [None, *(p.low for p in parts)][: len(parts)] or not parts or parts[-1].low != 1:
            raise UnityError(f"each part of {name!r} must stand in the map once", hint=_HINT)
        result.append(tuple(parts))
    return tuple(result)
