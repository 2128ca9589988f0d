"""Chunks of tiles that are transformed and multiplied together: whole lines, or runs.

Known images are cut in chunks of whole lines of tiles, each the same. Of unknown ones a chunk is a
run of tiles along the lines, and the last run may be shorter than its memory has room for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, Let, Stmt

from .loops import ceildiv, number, product
from .nest import Axis
from .tile_group import TileGroup
from .tile_plan import TilePlan, row_parts

SMALLEST = 2
"""Tiles of the smallest register tile at the end of a run."""


@dataclass(frozen=True, slots=True)
class RowPart:
    """Register tiles of one size along the tiles of a chunk.

    Attributes:
        begin: The first tile.
        count: How many register tiles there are.
        size: Tiles in each.
        turn: How many register tiles come before, in a whole chunk.
        when: When there are any; None for always.
    """

    begin: PrimExpr
    count: PrimExpr
    size: int
    turn: PrimExpr
    when: PrimExpr | None = None


class Chunks(Protocol):
    """How an image's tiles are cut in chunks."""

    @property
    def count(self) -> PrimExpr:
        """How many chunks an image has."""
        ...

    def each(self, chunk: PrimVar, tile: PrimVar, body: Stmt) -> Stmt:
        """A statement for every tile of a chunk, `tile` counting them."""
        ...

    def parts(self, chunk: PrimVar) -> list[RowPart]:
        """The register tiles along a chunk's tiles."""
        ...


def chunks_of(group: TileGroup, plan: TilePlan, threads: int) -> Chunks:
    """The chunks that a plan says."""
    *_, lines, line = group.tiles
    if plan.lines is None:
        return _Runs(lines, line, plan, threads)
    return _Lines(lines, line, plan, plan.lines)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Chunks of so many whole lines."""

    lines: Axis
    line: Axis
    plan: TilePlan
    together: int

    @property
    def count(self) -> PrimExpr:
        return imm((number(self.lines.extent) or 0) // self.together)

    def each(self, chunk: PrimVar, tile: PrimVar, body: Stmt) -> Stmt:
        at, along = PrimVar("line"), self.line.var
        body = Let(tile, add(multiply(at, self.line.extent), along), body)
        body = For(along, imm(0), self.line.extent, body)
        line = add(multiply(chunk, imm(self.together)), at)
        return For(at, imm(0), imm(self.together), Let(self.lines.var, line, body))

    def parts(self, chunk: PrimVar) -> list[RowPart]:
        parts, turn = list[RowPart](), 0
        for begin, count, size in row_parts(self.plan.tiles, self.plan.rows):
            parts.append(RowPart(imm(begin), imm(count), size, imm(turn)))
            turn += count
        return parts


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of as many tiles as there is room for, or fewer: the same for each, and for threads."""

    lines: Axis
    line: Axis
    plan: TilePlan
    threads: int

    @property
    def _total(self) -> PrimExpr:
        return product([self.lines.extent, self.line.extent])

    @property
    def length(self) -> PrimExpr:
        """Tiles of a run, in whole register tiles."""
        some: PrimExpr = Binary("max", self._total, imm(1))
        runs = ceildiv(some, imm(self.plan.tiles))
        if self.threads > 1 and not self.plan.together:
            runs = multiply(ceildiv(runs, imm(self.threads)), imm(self.threads))
        rows = imm(self.plan.rows)
        return simplify(multiply(ceildiv(ceildiv(some, runs), rows), rows))

    @property
    def count(self) -> PrimExpr:
        return ceildiv(self._total, self.length)

    def _tiles(self, chunk: PrimVar) -> PrimExpr:
        """How many tiles a run has."""
        left = Binary("sub", self._total, multiply(chunk, self.length))
        return Binary("min", self.length, left)

    def each(self, chunk: PrimVar, tile: PrimVar, body: Stmt) -> Stmt:
        at, width = PrimVar("at"), self.line.extent
        body = Let(self.line.var, Binary("floormod", at, width), body)
        body = Let(self.lines.var, Binary("floordiv", at, width), body)
        body = Let(at, add(multiply(chunk, self.length), tile), body)
        return For(tile, imm(0), self._tiles(chunk), body)

    def parts(self, chunk: PrimVar) -> list[RowPart]:
        """Full register tiles, and at the end the smallest that holds the tiles left."""
        rows, tiles = self.plan.rows, self._tiles(chunk)
        whole, rest = Binary("floordiv", tiles, imm(rows)), Binary("floormod", tiles, imm(rows))
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
