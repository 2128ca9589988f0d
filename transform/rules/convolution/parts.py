"""Blocked convolution and pooling: the sizes of tiles, by what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unity.ir.symbols.representative import IMAGES, representative_extent
from unity.machine.machine import Machine
from unity.machine.target import Target

from ...blocks.extents import number
from ...blocks.nest import Axis
from ...roles.blocked import MOST_PIXELS, BlockedRoles, Flat
from ...roles.padding import Edge
from ...roles.reduction import rows_of
from ...tactics.tile_sizes import counts
from ...tensor.tails.border_tiles import least_line
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


@dataclass(frozen=True, slots=True)
class UnknownLine:
    """A line of an unknown number of pixels, or of lines where a tile has whole ones.

    Attributes:
        along: The axis that tiles are cut from.
        roles: The roles of the stage's axes.
        edges: Where there are elements; padding elsewhere.
        threads: How many share the line.
    """

    along: Axis
    roles: BlockedRoles
    edges: Sequence[Edge]
    threads: int = 1

    def pixels(self, image: int) -> int:
        """How many a thread has, of an image of some height and width."""
        return -(-(representative_extent(self.along.extent, image) or UNKNOWN) // self.threads)

    def tiles(self, rows: int, image: int) -> list[tuple[int, int]]:
        """How many tiles of which size it has.

        Those at the ends of a line see a border, those between lie as they please and may share
        rows. Of shorter lines pixels at a border are alone, and the others in smaller tiles
        (`halves`).
        """
        pixels = self.pixels(image)
        first, last = self._at_borders(pixels, image)
        alone = first + last
        room = max(rows + max(first, last), least_line(rows))
        if alone and room <= pixels:
            return [(-(-pixels // rows), rows)]
        whole, rest = divmod(pixels - alone, rows)
        return [(whole, rows), *((1, n) for n in halves(rows) if rest & n), (alone, 1)]

    def _at_borders(self, pixels: int, image: int) -> tuple[int, int]:
        """How many pixels see a border at the begin of a line, and how many others at its end."""
        first = last = 0
        for edge in self.edges:
            if edge.axis is not self.along.var:
                continue
            taps = next(a.length for a in self.roles.steps if a.var is edge.tap)
            rest = number(edge.rest)
            rest = representative_extent(edge.rest, image) or 0 if rest is None else rest
            inside = min(0, edge.pace * (taps - 1)) + rest  # and a step a pixel, from 0 on
            if edge.step > 0:
                first = max(first, -(inside // edge.step))
            elif edge.step < 0:
                last = max(last, pixels - 1 - inside // -edge.step)
            elif inside < 0:
                first = pixels
        return (first, last) if first + last < pixels else (pixels, 0)

    def cycles(self, columns: int, rows: int, image: int, target: Target) -> float:
        """Of a step of all its pixels, by so many blocks of outputs.

        Few sums don't wait for one another: each has copies.
        """
        width, flat = self.roles.width, self.roles.flat
        weights = columns * target.vector_bits // 8 * math.prod(a.length for a in self.roles.steps)
        from_l2 = columns if weights > target.l1_kept else 0
        return sum(
            n * tile_cost(columns, high * width, target.machine, flat, from_l2, waits=False)
            for n, high in self.tiles(rows, image)
        )


def tile_size_of_any(blocks: int, line: UnknownLine, target: Target) -> tuple[int, int]:
    """The same where it is not known how many pixels there are: what suits several images."""

    def cost(size: tuple[int, int], image: int) -> float:
        columns, rows = size
        groups = counts(blocks, columns)
        return sum(n * line.cycles(wide, rows, image, target) for n, wide in groups)

    sizes = _tiles(blocks, UNKNOWN, line.roles.width, line.roles.flat, target)
    return min(sizes, key=lambda size: math.prod(cost(size, i) for i in IMAGES))


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


def tile_cost(
    columns: int,
    pixels: int,
    machine: Machine,
    flat: Flat | None = None,
    from_l2: int = 0,
    *,
    waits: bool = True,
) -> float:
    """Cycles of a step; of taps that are written out, of all of them.

    Args:
        columns: Blocks of outputs.
        pixels: Rows of the tile, all of their pixels.
        machine: The machine.
        flat: How taps are written out.
        from_l2: Registers of weights that come from the second cache.
        waits: Whether few sums wait for one another.
    """
    if flat is None:
        chain, loads = int(waits), columns + pixels
        return machine.step_cycles(columns * pixels, loads, chain=chain, from_l2=from_l2)
    loads = flat.loads(pixels) + flat.taps
    each = machine.step_cycles(flat.taps * pixels, loads, chain=flat.taps)
    return each - machine.loop_cycles + machine.taps_cycles
