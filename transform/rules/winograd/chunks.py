"""Chunks of tiles that are transformed and multiplied together: whole lines, or runs.

Known images are cut in chunks of whole lines of tiles, each the same. Of unknown ones a chunk is a
run of tiles along the lines, and the last run may be shorter than its memory has room for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, Let, Stmt

from ...blocks.extents import number, product
from ...blocks.nest import Axis
from ...roles.winograd import TileGroup
from ...tactics.pieces import RowPart, Runs
from .plan import TilePlan, row_parts


class Chunks(Protocol):
    """How an image's tiles are cut in chunks."""

    @property
    def count(self) -> PrimExpr:
        """How many chunks an image has."""
        ...

    def counted(self) -> PrimExpr:
        """The same, computed of sizes."""
        ...

    def around(self, body: Stmt) -> Stmt:
        """All chunks, for which is computed what they have in common."""
        ...

    def within(self, chunk: PrimVar, body: Stmt) -> Stmt:
        """A chunk, for which is computed what is its own."""
        ...

    def each(self, chunk: PrimVar, tile: PrimVar, body: Stmt) -> Stmt:
        """A statement for every tile of a chunk, `tile` counting them."""
        ...

    def parts(self) -> list[RowPart]:
        """The register tiles along a chunk's tiles."""
        ...


def chunks_of(group: TileGroup, plan: TilePlan, threads: int) -> Chunks:
    """The chunks that a plan says."""
    *_, lines, line = group.tiles
    each = number(line.extent)
    if number(lines.extent) is None or each is None:
        shared = 1 if plan.together else threads
        total = product([lines.extent, line.extent])
        return _Runs(lines, line, Runs(total, plan.tiles, plan.rows, shared), PrimVar("width"))
    return _Lines(lines, line, plan, plan.tiles // each)


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

    def counted(self) -> PrimExpr:
        return self.count

    def around(self, body: Stmt) -> Stmt:
        return body

    def within(self, chunk: PrimVar, body: Stmt) -> Stmt:
        return body

    def each(self, chunk: PrimVar, tile: PrimVar, body: Stmt) -> Stmt:
        at, along = PrimVar("line"), self.line.var
        body = Let(tile, add(multiply(at, self.line.extent), along), body)
        body = For(along, imm(0), self.line.extent, body)
        line = add(multiply(chunk, imm(self.together)), at)
        return For(at, imm(0), imm(self.together), Let(self.lines.var, line, body))

    def parts(self) -> list[RowPart]:
        parts, turn = list[RowPart](), 0
        for begin, count, size in row_parts(self.plan.tiles, self.plan.rows):
            parts.append(RowPart(imm(begin), imm(count), size, imm(turn)))
            turn += count
        return parts


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of as many tiles as there is room for, or fewer."""

    lines: Axis
    line: Axis
    runs: Runs
    width: PrimVar

    @property
    def count(self) -> PrimExpr:
        return self.runs.count

    def counted(self) -> PrimExpr:
        return self.runs.counted()

    def around(self, body: Stmt) -> Stmt:
        return Let(self.width, self.line.extent, self.runs.around(body))

    def within(self, chunk: PrimVar, body: Stmt) -> Stmt:
        return self.runs.within(chunk, body)

    def each(self, chunk: PrimVar, tile: PrimVar, body: Stmt) -> Stmt:
        at = PrimVar("at")
        body = Let(self.line.var, Binary("floormod", at, self.width), body)
        body = Let(self.lines.var, Binary("floordiv", at, self.width), body)
        body = Let(at, add(multiply(chunk, self.runs.length), tile), body)
        return For(tile, imm(0), self.runs.here, body)

    def parts(self) -> list[RowPart]:
        return self.runs.parts()
