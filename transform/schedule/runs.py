"""Runs: an axis of unknown extent cut in pieces of like size, each in whole register tiles."""

from __future__ import annotations

from dataclasses import dataclass

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, imm
from unity.ir.regions import multiply

from .loops import ceildiv

SMALLEST = 2
"""Rows of the smallest register tile at the end of a run."""


@dataclass(frozen=True, slots=True)
class RowPart:
    """Register tiles of one size along a piece.

    Attributes:
        begin: The first row.
        count: How many register tiles there are.
        size: Rows in each.
        turn: How many register tiles come before, in a whole piece.
        when: When there are any; None for always.
    """

    begin: PrimExpr
    count: PrimExpr
    size: int
    turn: PrimExpr
    when: PrimExpr | None = None


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of at most `most` rows, as many for each thread, as long as each other.

    Attributes:
        total: All rows.
        most: Rows that there is room for, a multiple of `rows`.
        rows: Rows of a register tile.
        threads: Among how many the runs are shared.
    """

    total: PrimExpr
    most: int
    rows: int
    threads: int

    @property
    def length(self) -> PrimExpr:
        """Rows of a run, in whole register tiles."""
        some: PrimExpr = Binary("max", self.total, imm(1))
        runs = ceildiv(some, imm(self.most))
        if self.threads > 1:
            runs = multiply(ceildiv(runs, imm(self.threads)), imm(self.threads))
        rows = imm(self.rows)
        return simplify(multiply(ceildiv(ceildiv(some, runs), rows), rows))

    @property
    def count(self) -> PrimExpr:
        """How many runs there are."""
        return ceildiv(self.total, self.length)

    def of(self, run: PrimExpr) -> PrimExpr:
        """How many rows a run has: the last may have fewer."""
        left = Binary("sub", self.total, multiply(run, self.length))
        return Binary("min", self.length, left)

    def parts(self, run: PrimExpr) -> list[RowPart]:
        """Full register tiles, and at the end the smallest that holds the rows left."""
        rows, here = self.rows, self.of(run)
        whole, rest = Binary("floordiv", here, imm(rows)), Binary("floormod", here, imm(rows))
        begin = multiply(whole, imm(rows))
        parts = [RowPart(imm(0), whole, rows, imm(0))]
        sizes = [rows]
        while sizes[-1] > SMALLEST:
            sizes.append(max(SMALLEST, -(-sizes[-1] // 2)))
        for size, smaller in zip(sizes, [*sizes[1:], 0], strict=True):
            fits = Compare("gt", rest, imm(smaller))
            when = fits if size == rows else Binary("and", fits, Compare("le", rest, imm(size)))
            parts.append(RowPart(begin, imm(1), size, whole, when))
        return parts
