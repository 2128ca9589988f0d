"""Runs: an axis of unknown extent cut in pieces of like size, each in whole register tiles."""

from __future__ import annotations

from dataclasses import dataclass, field

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Let, Stmt

from ..blocks.extents import ceildiv


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

    What is computed of sizes is bound once: around all runs, and within each.

    Attributes:
        total: All rows.
        most: Rows that there is room for, a multiple of `rows`.
        rows: Rows of a register tile.
        threads: Among how many the runs are shared.
        all_rows, length, count: What `around` binds: the rows, those of a run, how many runs.
        here, whole, rest: What `within` binds: the run's rows, its full tiles, the rows left behind
            them, fewer than 1 if there are none.
    """

    total: PrimExpr
    most: int
    rows: int
    threads: int
    all_rows: PrimVar = field(default_factory=lambda: PrimVar("all_rows"))
    length: PrimVar = field(default_factory=lambda: PrimVar("length"))
    count: PrimVar = field(default_factory=lambda: PrimVar("runs"))
    here: PrimVar = field(default_factory=lambda: PrimVar("here"))
    whole: PrimVar = field(default_factory=lambda: PrimVar("whole"))
    rest: PrimVar = field(default_factory=lambda: PrimVar("rest"))

    def around(self, body: Stmt) -> Stmt:
        """All runs, for which their number and length are computed."""
        body = Let(self.count, ceildiv(self.all_rows, self.length), body)
        return Let(self.all_rows, self.total, Let(self.length, self._length(self.all_rows), body))

    def counted(self) -> PrimExpr:
        """How many runs there are, computed of sizes: for the shape of what all of them fill."""
        return ceildiv(self.total, self._length(self.total))

    def _length(self, total: PrimExpr) -> PrimExpr:
        """Rows of a run, in whole register tiles."""
        some: PrimExpr = Binary("max", total, imm(1))
        runs = ceildiv(some, imm(self.most))
        if self.threads > 1:
            runs = multiply(ceildiv(runs, imm(self.threads)), imm(self.threads))
        rows = imm(self.rows)
        return simplify(multiply(ceildiv(ceildiv(some, runs), rows), rows))

    @property
    def half(self) -> int:
        """Rows of the smaller register tile."""
        return -(-self.rows // 2)

    def within(self, run: PrimExpr, body: Stmt) -> Stmt:
        """A run, of which it is computed how many rows it has: the last may have fewer."""
        rows, more = imm(self.rows), imm(max(0, self.rows - self.half - 1))
        body = Let(self.rest, Binary("sub", self.here, multiply(self.whole, rows)), body)
        body = Let(self.whole, Binary("floordiv", add(self.here, more), rows), body)
        left = Binary("sub", self.all_rows, multiply(run, self.length))
        return Let(self.here, Binary("min", self.length, left), body)

    def parts(self) -> list[RowPart]:
        """Full register tiles, the last of which may be full by more than half, and a half one."""
        parts = [RowPart(imm(0), self.whole, self.rows, imm(0))]
        if self.rows > 1:
            begin, some = multiply(self.whole, imm(self.rows)), Compare("gt", self.rest, imm(0))
            parts.append(RowPart(begin, imm(1), self.half, self.whole, some))
        return parts
