"""Integer vectors that a graph computes, and symbols that have the values of their elements.

What an operand says of sizes may be known only when the model runs. It is then worked out by
operators on int64 vectors, one element an axis, and what comes out of that (never negative) becomes
symbols, checked as they are bound: a size below 0 is an error that names the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.frontend.emission import Emission
from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, dim
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr
from unity.ir.types import Shape, ShapeType

Operand: TypeAlias = "Ints | int | Sequence[int]"


@dataclass(frozen=True, slots=True)
class Ints:
    """An int64 tensor (a vector, mostly) or a bool one, and arithmetic on it.

    Attributes:
        node: What it is emitted for.
        value: The tensor.
    """

    node: Emission
    value: Expr

    def __add__(self, other: Operand) -> Ints:
        return self.op("add", other)

    def __sub__(self, other: Operand) -> Ints:
        return self.op("subtract", other)

    def __mul__(self, other: Operand) -> Ints:
        return self.op("multiply", other)

    def __floordiv__(self, other: Operand) -> Ints:
        return self.op("floor_divide", other)

    def __lt__(self, other: Operand) -> Ints:
        return self.op("less", other)

    def __gt__(self, other: Operand) -> Ints:
        return self.op("greater", other)

    def __and__(self, other: Ints) -> Ints:
        return self.op("logical_and", other)

    def __neg__(self) -> Ints:
        return self.op("negative")

    def equals(self, other: Operand) -> Ints:
        """Where it equals another."""
        return self.op("equal", other)

    def least(self, other: Operand) -> Ints:
        """The smaller one of each pair."""
        return self.op("minimum", other)

    def most(self, other: Operand) -> Ints:
        """The larger one of each pair."""
        return self.op("maximum", other)

    def negated(self) -> Ints:
        """Where it is not true."""
        return self.op("logical_not")

    def choose(self, then: Operand, otherwise: Operand) -> Ints:
        """One of two where it is true, the other elsewhere."""
        return self.op("where", self._operand(then), self._operand(otherwise))

    def total(self) -> Ints:
        """The sum of all elements."""
        return self.op("sum", axis=None)

    def count(self) -> Ints:
        """The product of all elements."""
        return self.op("prod", axis=None)

    def row(self, extent: int) -> Ints:
        """With an axis of extent 1 before or behind."""
        return self.op("expand_dims", axis=extent)

    def element(self, index: int) -> Ints:
        """One element of a vector, as a scalar."""
        part = self.op("strided_slice", axes=(0,), begin=(index,), end=(index + 1,))
        return Ints(self.node, self.node.op("reshape", part.value, ()))

    def op(self, name: str, *others: Operand, **attrs: object) -> Ints:
        """An operator on it and others."""
        operands = [self._operand(o).value for o in others]
        return Ints(self.node, self.node.op(name, self.value, *operands, **attrs))

    def _operand(self, other: Operand) -> Ints:
        if isinstance(other, Ints):
            return other
        return Ints(self.node, Constant(np.asarray(other, np.int64)))


def ints_of(node: Emission, value: Expr) -> Ints:
    """An integer tensor as int64."""
    return Ints(node, node.cast(value, INT64))


def vector_of(node: Emission, dims: Sequence[Dim]) -> Ints:
    """A vector of dims."""
    return Ints(node, node.materialize(sizes_of(tuple(dims))))


def places(node: Emission, count: int) -> Ints:
    """The numbers of so many axes."""
    return Ints(node, Constant(np.arange(count, dtype=np.int64)))


def length_of(node: Emission, value: Expr, what: str) -> int:
    """How many elements an operand has: one, or as many as its only axis.

    Raises:
        Gap: That is not known.
    """
    shape = node.shape_of(value)
    if len(shape) > 1:
        raise UnityError(f"{what} must be a vector, got rank {len(shape)}")
    length = shape[0] if shape else 1
    if not isinstance(length, int):
        raise node.gap(f"{what} known only at run time, and not how many there are")
    return length


def bound(
    node: Emission, values: Ints, name: str, *, least: int = 0, most: int | None = None
) -> Shape:
    """The elements of a vector (or a scalar) as new symbols, checked when they get their values.

    Of a constant, they are its numbers.

    Args:
        node: What this is emitted for.
        values: The vector, of known length.
        name: What the symbols are called: ``n_shape`` for a node n and the name shape.
        least: What none is below.
        most: What none is above.
    """
    count = length_of(node, values.value, name)
    if isinstance(values.value, Constant):
        return _numbers(values.value, name, least, most)
    shape = node.shape_of(values.value)
    flat = values.value if len(shape) == 1 else node.op("reshape", values.value, (1,))
    hint = f"{node.label}_{name}"
    names = [f"{hint}_{k}" if count > 1 else hint for k in range(count)]
    fresh = node.builder.fresh
    symbols = tuple(dim(fresh(n).name, min=least, max=most) for n in names)
    matched(node, flat, symbols, name)
    return symbols


def _numbers(values: Constant, name: str, least: int, most: int | None) -> Shape:
    numbers = tuple(int(v) for v in values.data.reshape(-1))
    wrong = [n for n in numbers if n < least or (most is not None and n > most)]
    if wrong:
        limit = f"at least {least}" + ("" if most is None else f" and at most {most}")
        raise UnityError(f"{name} is {wrong[0]}, but it must be {limit}")
    return numbers


def matched(node: Emission, values: Expr, dims: Shape, name: str, rule: str = "") -> None:
    """Check at run time that a vector holds just these dims, whose new symbols get values so.

    `rule` is what is said of the node if it does not.
    """
    said = node.op("tensor_to_shape", values)
    node.builder.match_cast(said, ShapeType(dims), f"{node.label}_{name}", node.ruled(rule))
