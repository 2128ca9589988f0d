"""The transforms of Winograd's minimal filtering, exact, and their cheapest order of evaluation.

``F(m, r)`` gives `m` outputs of a filter with `r` taps by ``m + r - 1`` multiplications:
``y = A^T ((G g) * (B^T d))``. The matrices come from evaluating polynomials at as many points
(Cook and Toom; Lavin and Gray 2015). Points in pairs ``p, -p`` share half of their work, and those
near 1 lose the fewest digits: with 0, 3/4, -3/4, 3/2, -3/2 for six of them, the rounding error is a
quarter of that with 0, 1, -1, 2, -2; with 0 and the pairs of 1/2, 1, 2 for eight it is four times
that of six, the least of 16 choices of pairs that were tried. All of `A` and `B` is exact in
float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from unity.ir.dtype import DType
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.op.accumulate import Real

Row = tuple[Fraction, ...]
POINTS: dict[int, Row] = {
    2: (Fraction(0),),
    4: (Fraction(0), Fraction(1), Fraction(-1)),
    6: (Fraction(0), Fraction(3, 4), Fraction(-3, 4), Fraction(3, 2), Fraction(-3, 2)),
    8: (Fraction(0), *(s * p for p in (Fraction(1, 2), Fraction(1), Fraction(2)) for s in (1, -1))),
}
"""By the number of multiplications: the points besides infinity, 0 and then pairs."""


@dataclass(frozen=True, slots=True)
class CookToom:
    """The matrices of one F(m, r), each as rows.

    Attributes:
        outputs: ``A^T``, m rows.
        weights: ``G``, m + r - 1 rows.
        inputs: ``B^T``, m + r - 1 rows.
    """

    outputs: tuple[Row, ...]
    weights: tuple[Row, ...]
    inputs: tuple[Row, ...]


@lru_cache(maxsize=16)
def cook_toom(tile: int, size: int) -> CookToom:
    """The transforms for `tile` outputs from `size` values, ``size - tile + 1`` taps.

    >>> [[int(x) for x in row] for row in cook_toom(2, 4).inputs]
    [[-1, 0, 1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]
    """
    points, taps = POINTS[size], size - tile + 1
    scales = [_product([p - q for q in points if q != p]) for p in points]
    outputs = [(*(p**i for p in points), Fraction(i == tile - 1)) for i in range(tile)]
    weights = [tuple(p**k / s for k in range(taps)) for p, s in zip(points, scales, strict=True)]
    weights.append(tuple(Fraction(k == taps - 1) for k in range(taps)))
    inputs: list[Row] = [(*_polynomial([q for q in points if q != p]), Fraction(0)) for p in points]
    inputs.append(_polynomial(points))
    return CookToom(tuple(outputs), tuple(weights), tuple(inputs))


def as_array(rows: Sequence[Row]) -> Real:
    """A matrix in float64."""
    return np.array([[float(x) for x in row] for row in rows])


def input_rows(tile: int, d: Sequence[PrimExpr]) -> list[PrimExpr]:
    """``B^T d``: even and odd coefficients apart, so that the rows of a pair share both sums."""
    return [_by_parity(row, d) for row in cook_toom(tile, len(d)).inputs]


def output_rows(tile: int, m: Sequence[PrimExpr]) -> list[PrimExpr]:
    """``A^T m``: sums and differences of pairs, which every other row shares."""
    size = len(m)
    rows: list[PrimExpr] = []
    for row in cook_toom(tile, size).outputs:
        terms: list[tuple[Fraction, PrimExpr]] = [(row[0], m[0])]
        for at in range(1, size - 1, 2):
            alike = row[at] == row[at + 1]
            pair = Binary("add" if alike else "sub", m[at], m[at + 1])
            terms.append((row[at], pair))
        terms.append((row[-1], m[-1]))
        rows.append(_sum(terms))
    return rows


def _by_parity(row: Row, d: Sequence[PrimExpr]) -> PrimExpr:
    terms: list[tuple[Fraction, PrimExpr]] = []
    for parity in (0, 1):
        some = [(c, x) for c, x in list(zip(row, d, strict=True))[parity::2] if c]
        if some:
            leading = some[-1][0]
            terms.append((leading, _sum([(c / leading, x) for c, x in some])))
    return _sum(terms)


def _sum(terms: Sequence[tuple[Fraction, PrimExpr]]) -> PrimExpr:
    """A sum of multiples, bare terms first: each product is then one multiply-add."""
    found = sorted((t for t in terms if t[0]), key=lambda t: t[0] != 1)
    total = _scaled(*found[0])
    for factor, x in found[1:]:
        if factor < 0:
            total = Binary("sub", total, _scaled(-factor, x))
        else:
            total = Binary("add", total, _scaled(factor, x))
    return total


def _scaled(factor: Fraction, x: PrimExpr) -> PrimExpr:
    return x if factor == 1 else Binary("mul", x, _literal(factor, x.dtype))


def _literal(value: Fraction, of: DType) -> PrimExpr:
    return imm(float(value), of)


def _product(factors: Sequence[Fraction]) -> Fraction:
    total = Fraction(1)
    for f in factors:
        total *= f
    return total


def _polynomial(roots: Sequence[Fraction]) -> Row:
    """The coefficients of ``prod (x - root)``, the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        shifted, same = [Fraction(0), *found], [*found, Fraction(0)]
        found = [a - root * b for a, b in zip(shifted, same, strict=True)]
    return tuple(found)
