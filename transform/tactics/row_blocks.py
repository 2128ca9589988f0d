"""Rows in tiles, tiles in blocks: what of an axis a task takes, known or not.

Known rows go evenly to as few tiles as possible, whose sizes differ by one at most. Of unknown
ones full tiles are taken, then one tile among all smaller sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import For, IfThen, Seq, Stmt

from ..blocks.extents import ceildiv, number
from ..blocks.tree import sequence

TileOf = Callable[[PrimExpr, int, PrimExpr], Stmt]
"""The tile that begins at a row and has so many, and which one it is, counted from the first."""
BLOCK = 8
"""Tiles of a block, where rows are unknown and there is little else to share."""
MOST = 48
"""Tiles of a block, at most: what a row has is to be found in the second cache again."""


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """Blocks of so many tiles (the last may have fewer) of at most so many rows.

    Attributes:
        rows: The extent.
        size: Rows of the largest tile.
        tiles: Tiles of a block.
        count: How many blocks there are.
    """

    rows: PrimExpr
    size: int
    tiles: int
    count: PrimExpr

    @property
    def total(self) -> PrimExpr:
        """All tiles, of all blocks."""
        return ceildiv(self.rows, imm(self.size))

    def at(self, block: PrimExpr, tile: TileOf) -> Stmt:
        """The tiles of a block."""
        known = number(self.rows)
        if known is None:
            return self._unknown(block, tile)
        if not known:
            return Seq(())
        count = -(-known // self.size)
        size, more = divmod(known, count)
        middle = imm(more * (size + 1))
        parts: list[Stmt] = []

        def larger(i: PrimExpr) -> Stmt:
            return tile(multiply(i, imm(size + 1)), size + 1, i)

        def smaller(i: PrimExpr) -> Stmt:
            return tile(add(middle, multiply(add(i, imm(-more)), imm(size))), size, i)

        if more:
            parts.append(self._run(block, 0, more, larger))
        parts.append(self._run(block, more, count, smaller))
        return sequence(parts)

    def _run(self, block: PrimExpr, begin: int, end: int, tile: Callable[[PrimExpr], Stmt]) -> Stmt:
        """Those tiles from `begin` to `end` that the block has."""
        at = PrimVar("tile")
        if number(self.count) == 1:
            return For(at, imm(begin), imm(end - begin), tile(at))
        lower = multiply(block, imm(self.tiles))
        first = simplify(Binary("max", lower, imm(begin)))
        last = simplify(Binary("min", add(lower, imm(self.tiles)), imm(end)))
        return For(at, first, simplify(Binary("max", last - first, imm(0))), tile(at))

    def _unknown(self, block: PrimExpr, tile: TileOf) -> Stmt:
        whole, rest = simplify(self.rows // self.size), simplify(self.rows % self.size)
        lower = multiply(block, imm(self.tiles))
        upper = add(lower, imm(self.tiles))
        at = PrimVar("tile")
        count = simplify(Binary("min", upper, whole) - lower)
        full = For(at, lower, count, tile(multiply(at, imm(self.size)), self.size, at))
        if self.size == 1:
            return full
        last: Stmt | None = None
        for size in range(1, self.size):
            done = tile(multiply(whole, imm(self.size)), size, whole)
            last = IfThen(Compare("eq", rest, imm(size)), done, last)
        assert last is not None
        return Seq((full, IfThen(Compare("lt", whole, upper), last)))


def blocks_of(rows: PrimExpr, size: int, tiles: int) -> RowBlocks:
    """Blocks of so many tiles of at most so many rows."""
    known = number(rows)
    if known is None:
        return RowBlocks(rows, size, tiles, ceildiv(rows, imm(tiles * size)))
    return RowBlocks(rows, size, tiles, imm(-(-max(1, -(-known // size)) // tiles)))


def row_blocks(rows: PrimExpr, size: int, others: int, threads: int) -> RowBlocks:
    """Blocks such that threads have about the same to do.

    Args:
        rows: The extent.
        size: Rows of the largest tile.
        others: How many other units of work there are, each of all rows.
        threads: How many share them.
    """
    known = number(rows)
    if known is None:
        each = MOST // 2 if threads == 1 or others >= 4 * threads else BLOCK
        return blocks_of(rows, size, each)
    tiles = max(1, -(-known // size))

    def idle(blocks: int) -> float:
        """The share of the threads' time that has nothing to do, and what blocks cost."""
        units = others * -(-tiles // -(-tiles // blocks))
        return -(-units // threads) * threads / units + blocks / 50

    best = min(range(1, max(1, min(tiles, 4 * threads)) + 1), key=idle) if threads > 1 else 1
    best = max(best, -(-tiles // MOST))
    each = max(1, -(-tiles // best))
    return blocks_of(rows, size, each)
