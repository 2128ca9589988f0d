"""Blocked convolution and pooling: the sizes of tiles, by what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from unity.machine.machine import Machine
from unity.machine.target import Target

from ...roles.blocked import MOST_PIXELS, BlockedRoles, Flat
from ...roles.reduction import rows_of
from ...tactics.tile_sizes import counts
from ...tensor.tails.tail_tiles import halves

UNKNOWN = 840
"""Pixels that an unknown line is taken to have where tiles are chosen: many, and no odd rest."""
WRITTEN_TWICE = 1.03
"""What tiles of a second size have to save, for which all of a kernel stands there again."""


def tile_size(blocks: int, pixels: int, roles: BlockedRoles, target: Target) -> tuple[int, int]:
    """Blocks and rows of a tile that cost least, rows being `width` pixels each.

    ``blocks * (pixels + 1) + 1`` registers have to do.
    """
    best = _best_tile(blocks, pixels, roles.width, roles.flat, target)
    return best[1], best[2]


def tile_size_of_any(
    blocks: int, lines: Sequence[int], roles: BlockedRoles, target: Target
) -> tuple[int, int]:
    """The same where it is not known how many pixels there are: by the mean of several numbers.

    What is left of a line is done in smaller tiles (`halves`).
    """

    def cost(size: tuple[int, int], pixels: int) -> float:
        columns, rows = size
        parts = [(pixels // rows, rows), *((1, n) for n in halves(rows) if pixels % rows & n)]
        return sum(
            c * r * tile_cost(wide, high * roles.width, target.machine, roles.flat)
            for c, wide in counts(blocks, columns)
            for r, high in parts
        )

    sizes = _tiles(blocks, UNKNOWN, roles.width, roles.flat, target)
    return min(sizes, key=lambda size: math.prod(cost(size, n) for n in lines))


def whole_tile_size(blocks: int, pixels: int, target: Target) -> tuple[int, int]:
    """The same where the last tile costs as much as any, and threads share the tiles."""

    def cost(size: tuple[int, int]) -> float:
        columns, rows = size
        tiles = -(-pixels // (rows * target.threads))
        groups = counts(blocks, columns)
        each = sum(n * tile_cost(c, rows, target.machine) for n, c in groups)
        return tiles * each * WRITTEN_TWICE ** (len(groups) - 1)

    sizes = _tiles(blocks, UNKNOWN, 1, None, target)
    return min(sizes, key=lambda size: (cost(size), -math.prod(size)))


def legal_tiles(
    blocks: int, pixels: int, roles: BlockedRoles, target: Target
) -> list[tuple[int, int]]:
    """The blocks and rows of every tile whose sums registers hold."""
    return list(_tiles(blocks, pixels, roles.width, roles.flat, target))


def line_cycles(blocks: int, pixels: int, target: Target) -> float:
    """Cycles of a step of all products of a line, in the tiles that cost least."""
    return _best_tile(blocks, pixels, 1, None, target)[0]


def _best_tile(
    blocks: int, pixels: int, width: int, flat: Flat | None, target: Target
) -> tuple[float, int, int]:
    """What it costs, its blocks and its rows."""
    best: tuple[float, int, int] = math.inf, 1, 1
    for columns, rows in _tiles(blocks, pixels, width, flat, target):
        cost = sum(
            c * r * tile_cost(wide, high * width, target.machine, flat)
            for c, wide in counts(blocks, columns)
            for r, high in counts(pixels, rows)
        )
        best = min(best, (cost, columns, rows))
    return best


def _tiles(
    blocks: int, pixels: int, width: int, flat: Flat | None, target: Target
) -> Iterator[tuple[int, int]]:
    """The blocks and rows of tiles that there are registers for."""
    for columns in range(1, min(blocks, 4) + 1):
        most = min(rows_of(columns, target), MOST_PIXELS)
        for rows in range(1, min(most // width, pixels) + 1):
            if rows > 1 and not _fits(flat, rows, width, target):
                break
            yield columns, rows


def _fits(flat: Flat | None, rows: int, width: int, target: Target) -> bool:
    """Whether there are registers for accumulators, weights and the pixels that taps share."""
    if flat is None:
        return True
    loads = flat.loads(rows) if width == 1 else flat.loads(width) * rows
    weights = flat.taps if flat.weights else 0
    return rows * width + loads + weights <= target.vector_registers


def tile_cost(columns: int, pixels: int, machine: Machine, flat: Flat | None = None) -> float:
    """Cycles of a step; of taps that are written out, of all of them."""
    if flat is None:
        return machine.step_cycles(columns * pixels, columns + pixels)
    loads = flat.loads(pixels) + flat.taps
    each = machine.step_cycles(flat.taps * pixels, loads, chain=flat.taps)
    return each - machine.loop_cycles + machine.taps_cycles
