"""Tiles of rows in blocks: how many of them a task takes, of known rows or not."""

from __future__ import annotations

from unity.ir.prim_expr import PrimExpr

from ..blocks.extents import number

BLOCK = 8
"""Tiles of a block, where rows are unknown and there is little else to share."""
MOST = 48
"""Tiles of a block, at most: what a row has is to be found in the second cache again."""


def tiles_of_block(rows: PrimExpr, size: int, others: int, threads: int) -> int:
    """Tiles of a block such that threads have about the same to do.

    Args:
        rows: The extent.
        size: Rows of the largest tile.
        others: How many other units of work there are, each of all rows.
        threads: How many share them.
    """
    known = number(rows)
    if known is None:
        return MOST // 2 if threads == 1 or others >= 4 * threads else BLOCK
    tiles = max(1, -(-known // size))

    def idle(blocks: int) -> float:
        """The share of the threads' time that has nothing to do, and what blocks cost."""
        units = others * -(-tiles // -(-tiles // blocks))
        return -(-units // threads) * threads / units + blocks / 50

    best = min(range(1, max(1, min(tiles, 4 * threads)) + 1), key=idle) if threads > 1 else 1
    best = max(best, -(-tiles // MOST))
    return max(1, -(-tiles // best))
