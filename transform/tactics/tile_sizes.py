"""The sizes of tiles that an axis is cut in: of like size, or those that cost least."""

from __future__ import annotations

from unity.ir.prim_expr import PrimExpr
from unity.machine.machine import Machine

from ..blocks.extents import number


def counts(extent: int, size: int) -> list[tuple[int, int]]:
    """How many tiles of which size an extent has: those of the given one, and what is left.

    >>> counts(20, 6), counts(4, 6), counts(12, 6)
    ([(3, 6), (1, 2)], [(1, 4)], [(2, 6)])
    """
    whole, rest = divmod(extent, size)
    return [(n, e) for n, e in ((whole, size), (1, rest)) if n and e]


def tile_size(extent: PrimExpr | int, largest: int) -> int:
    """The size of a tile that cuts an extent in as many parts as `largest`, the most evenly."""
    known = extent if isinstance(extent, int) else number(extent)
    return -(-known // -(-known // largest)) if known else largest


def even_size(extent: PrimExpr, largest: int) -> int:
    """A size that divides the extent if one is not much smaller, else the most even one."""
    known = number(extent)
    for size in range(min(largest, known or 0), max(1, largest * 3 // 5) - 1, -1):
        if known and known % size == 0:
            return size
    return 1 if known == 0 else tile_size(extent, largest)


def cheapest_size(extent: PrimExpr, largest: int, columns: int, machine: Machine) -> int:
    """The size of tiles of rows whose steps cost least together.

    Args:
        extent: How many rows there are; where that is unknown, tiles are as large as may be.
        largest: Rows of a tile at most.
        columns: Registers of a row.
        machine: What steps take.
    """
    known = number(extent)
    if not known:
        return largest if known is None else 1

    def total(size: int) -> float:
        tiles = counts(known, size)
        return sum(
            n * machine.step_cycles(r * columns, r + columns, from_l2=columns) for n, r in tiles
        )

    return min(range(min(largest, known), 0, -1), key=total)
