"""The sizes of tiles that an axis is cut in: of like size, or the largest and smaller ones."""

from __future__ import annotations

from dataclasses import dataclass

from unity.arith import simplify
from unity.ir.prim_expr import PrimExpr, imm
from unity.machine.machine import Machine

from ..blocks.extents import ceildiv, number


@dataclass(frozen=True, slots=True)
class Tier:
    """Tiles of one size: `count` of them from `begin`; in the last one, only `limit` may be full.

    Attributes:
        begin: The first index.
        count: How many tiles there are.
        size: Indices in a tile.
        masked: Whether a tile may reach past the end.
    """

    begin: PrimExpr
    count: PrimExpr
    size: int
    masked: bool = False


def row_tiers(extent: PrimExpr, largest: int) -> list[Tier]:
    """An extent cut in tiles of at most `largest`; no tile reaches past the end."""
    known = number(extent)
    if known is None:
        if largest == 1:
            return [Tier(imm(0), extent, 1)]
        whole = simplify(extent // largest)
        return [
            Tier(imm(0), whole, largest),
            Tier(simplify(whole * largest), simplify(extent % largest), 1),
        ]
    size = _even_size(known, largest)
    tiers = [Tier(imm(0), imm(known // size), size)]
    if known % size:
        tiers.append(Tier(imm(known - known % size), imm(1), known % size))
    return tiers


def tile_tiers(extent: PrimExpr, largest: int, columns: int, machine: Machine) -> list[Tier]:
    """An axis of rows cut in tiles of at most `largest`, so that all steps together cost least.

    An unknown extent gets whole tiles, and what is left of it a tile of each power of two.
    """
    known = number(extent)
    if known is not None:
        if known == 0:
            return [Tier(imm(0), imm(0), 1)]

        def step(rows: int) -> float:
            return machine.step_cycles(rows * columns, rows + columns, from_l2=columns)

        def total(size: int) -> float:
            rest = known % size
            return known // size * step(size) + (step(rest) if rest else 0)

        size = min(range(min(largest, known), 0, -1), key=total)
        tiers = [Tier(imm(0), imm(known // size), size)]
        if known % size:
            tiers.append(Tier(imm(known - known % size), imm(1), known % size))
        return tiers
    tiers = [Tier(imm(0), simplify(extent // largest), largest)]
    size, rest = 1 << (largest - 1).bit_length() - 1, simplify(extent % largest)
    while size and largest > 1:
        begin = simplify(extent - rest)
        tiers.append(Tier(begin, simplify(rest // size), size))
        rest = simplify(rest % size)
        size //= 2
    return tiers


def _even_size(extent: int, largest: int) -> int:
    """A tile size that divides the extent if one is not much smaller, else the most even one."""
    if extent == 0:
        return 1
    for size in range(min(largest, extent), max(1, largest * 3 // 5) - 1, -1):
        if extent % size == 0:
            return size
    tiles = -(-extent // largest)
    return -(-extent // tiles)


def column_tiers(extent: PrimExpr, lanes: int, largest: int) -> list[Tier]:
    """An extent cut in tiles of at most `largest` vectors; only the last vector is masked."""
    known = number(extent)
    if known is None:
        whole = simplify(extent // (lanes * largest))
        done = simplify(whole * (lanes * largest))
        rest = ceildiv(simplify(extent - done), imm(lanes))
        return [Tier(imm(0), whole, largest), Tier(done, rest, 1, masked=True)]
    vectors = -(-known // lanes)
    tiles = -(-vectors // largest)
    size = -(-vectors // max(tiles, 1))
    full = known // (size * lanes)
    tiers = [Tier(imm(0), imm(full), size)] if full else []
    left = known - full * size * lanes
    if left:
        begin = imm(full * size * lanes)
        tiers.append(Tier(begin, imm(1), -(-left // lanes), masked=left % lanes != 0))
    return tiers


def tile_size(extent: PrimExpr, largest: int) -> int:
    """The size of a tile that cuts an extent in as many parts as `largest`, the most evenly."""
    known = number(extent)
    if not known:
        return largest
    return -(-known // -(-known // largest))
