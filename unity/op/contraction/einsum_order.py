"""In what order of axes two operands of an einsum become one matrix product: what moves least.

Either operand may be the left one, and axes of a group (batch, rows, columns, summed) may come in
the order of one operand, of the other or of the result. An operand whose groups lie together is
taken as it is; rows and summed axes the other way round are read so by the product's kernel. Where
sizes are unknown, the first operand is the left one: which moves less can't be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

FLIPPED = 0.3
"""What reading an operand the other way round costs, relative to transposing it."""


@dataclass(frozen=True, slots=True)
class Order:
    """Axes by their letters.

    Attributes:
        swapped: Whether the second operand is the left one.
        batch: Axes of both operands and of the result.
        rows: Axes of the left operand alone.
        inner: Axes that are summed.
        columns: Axes of the right operand alone.
    """

    swapped: bool
    batch: str
    rows: str
    inner: str
    columns: str

    @property
    def result(self) -> str:
        """The axes of what the product gives."""
        return self.batch + self.rows + self.columns


def best_order(a: str, b: str, out: str, extents: Mapping[str, int]) -> Order:
    """The order that moves the fewest elements, the plainest of several.

    Args:
        a: The letters of the first operand: each of them in `b` or in `out`.
        b: Those of the second.
        out: Those of the result.
        extents: How long the axes are.

    >>> best_order("dea", "bcde", "bca", dict.fromkeys("abcde", 48))  # b lies as it is wanted
    Order(swapped=True, batch='', rows='bc', inner='de', columns='a')
    """
    shared = [c for c in a if c in b]
    candidates: list[tuple[float, int, Order]] = []
    for swapped in (False, True):
        left, right = (b, a) if swapped else (a, b)
        batch = _orders("".join(c for c in shared if c in out), (left, right, out))
        inner = _orders("".join(c for c in shared if c not in out), (left, right))
        rows = _orders("".join(c for c in left if c not in right), (left, out))
        columns = _orders("".join(c for c in right if c not in left), (right, out))
        for found in product(batch, rows, inner, columns):
            order = Order(swapped, *found)
            moved = _moved(order, left, right, out, extents)
            candidates.append((moved, len(candidates), order))
    return min(candidates)[2]


def plain_order(a: str, b: str, out: str) -> Order:
    """The operands as they are, all axes in the order of the first one that has them."""
    shared = [c for c in a if c in b]
    return Order(
        swapped=False,
        batch="".join(c for c in shared if c in out),
        rows="".join(c for c in a if c not in b),
        inner="".join(c for c in shared if c not in out),
        columns="".join(c for c in b if c not in a),
    )


def _orders(letters: str, names: Sequence[str]) -> list[str]:
    """The letters as they come in some names."""
    return list(dict.fromkeys("".join(c for c in name if c in letters) for name in names))


def _moved(order: Order, left: str, right: str, out: str, extents: Mapping[str, int]) -> float:
    """How many elements are transposed."""
    total = 0.0
    for name, first, second in (
        (left, order.rows, order.inner),
        (right, order.inner, order.columns),
    ):
        if name == order.batch + first + second:
            continue
        share = FLIPPED if is_flipped(name, order.batch, first, second) else 1.0
        total += share * _size(name, extents)
    return total + (_size(out, extents) if out != order.result else 0)


def is_flipped(name: str, batch: str, first: str, second: str) -> bool:
    """Whether an operand's second group comes before its first."""
    return name == batch + second + first


def _size(name: str, extents: Mapping[str, int]) -> int:
    size = 1
    for c in name:
        size *= extents[c]
    return size
