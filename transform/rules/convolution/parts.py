"""Blocked convolution and pooling: the size of tiles, cut where they see other taps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.regions import add, multiply
from unity.machine.machine import Machine
from unity.machine.target import Target

from ...blocks.extents import number
from ...roles.blocked import MOST_PIXELS, Flat, Roles, length_of
from ...roles.padding import Edge
from ...roles.reduction import rows_of
from .taps import Place, Seen, Taps

UNKNOWN = 840
"""Pixels that an unknown line is taken to have where tiles are chosen: many, and no odd rest."""


@dataclass(frozen=True, slots=True)
class Part:
    """Tiles of one size along an axis, all of which see the same of each tap.

    Attributes:
        begin: The first index.
        count: How many tiles there are.
        size: Indices in a tile.
        seen: Which pixels see what; None at a border of unknown place, where a tile is one pixel
            and loops over taps end where it sees nothing.
    """

    begin: PrimExpr
    count: PrimExpr
    size: int
    seen: Seen | None = frozenset()

    @property
    def tiles(self) -> int | None:
        """How many tiles, where that is known."""
        return number(self.count)


def tile_size(blocks: int, pixels: int, roles: Roles, target: Target) -> tuple[int, int]:
    """Blocks and rows of a tile that cost least, rows being `width` pixels each.

    ``blocks * (pixels + 1) + 1`` registers have to do.
    """
    best = _best_tile(blocks, pixels, roles.width, roles.flat, target)
    return best[1], best[2]


def legal_tiles(blocks: int, pixels: int, roles: Roles, target: Target) -> list[tuple[int, int]]:
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
            for c, wide in _counts(blocks, columns)
            for r, high in _counts(pixels, rows)
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


def _counts(extent: int, size: int) -> list[tuple[int, int]]:
    """How many tiles of which size an extent has."""
    whole, rest = divmod(extent, size)
    return [(n, e) for n, e in ((whole, size), (1, rest)) if n and e]


def parts_of(extent: int, size: int) -> list[Part]:
    """Tiles of a size along an axis, and a smaller one for the rest."""
    parts: list[Part] = []
    begin = 0
    for count, each in _counts(extent, size):
        parts.append(Part(imm(begin), imm(count), each))
        begin += count * each
    return parts


def unknown_parts(roles: Roles, size: int, edges: Sequence[Edge]) -> list[Part]:
    """Parts of a line of unknown length: the border, whole tiles, smaller ones, the border.

    Args:
        roles: Tell the axis, and how many taps there are.
        size: Pixels of a tile.
        edges: Where pixels see taps; those that do not see all are done one by one.
    """
    pixel, taps = roles.pixel, {a.var: length_of(a) for a in roles.steps}
    low: PrimExpr = imm(0)
    high = pixel.extent
    for edge in edges:
        if edge.axis is not pixel.var:
            continue
        least = add(edge.rest, imm(min(0, edge.pace * (taps[edge.tap] - 1))))
        if edge.step > 0:
            first = Binary("floordiv", Binary("sub", imm(edge.step - 1), least), imm(edge.step))
            low = Binary("max", low, first)
        else:
            end = add(Binary("floordiv", least, imm(-edge.step)), imm(1))
            high = Binary("min", high, end)
    low = simplify(Binary("min", low, pixel.extent))
    high = simplify(Binary("max", low, high))
    parts: list[Part] = []
    if number(low) != 0:
        parts.append(Part(imm(0), low, 1, None))
    begin, left = low, simplify(Binary("sub", high, low))
    while size:
        count = simplify(Binary("floordiv", left, imm(size)))
        parts.append(Part(begin, count, size, frozenset(range(size))))
        begin, left = add(begin, multiply(count, imm(size))), simplify(left % size)
        size = 1 << (size - 1).bit_length() - 1 if size > 1 else 0
    if high != pixel.extent:
        parts.append(Part(high, simplify(Binary("sub", pixel.extent, high)), 1, None))
    return parts


def cut(parts: Sequence[Part], roles: Roles, taps: Taps) -> list[Part]:
    """The parts cut where tiles see something else."""
    found: list[Part] = []
    for part in parts:
        if not any(e.axis in taps.inside for e in taps.edges):
            found.append(replace(part, seen=frozenset(range(part.size * roles.width))))
            continue
        start, count = number(part.begin), number(part.count)
        assert start is not None
        assert count is not None
        last: tuple[int, int] | None = None
        for tile in range(count):
            begin = start + tile * part.size
            seen = taps.seen(_places(roles, range(begin, begin + part.size)))
            if last is not None and found[-1].seen == seen:
                last = last[0], last[1] + 1
                found[-1] = replace(found[-1], count=imm(last[1]))
            else:
                last = begin, 1
                found.append(Part(imm(begin), imm(1), part.size, seen))
    return found


def _places(roles: Roles, rows: Sequence[int]) -> list[Place]:
    if roles.line is None:
        return [{roles.pixel.var: r} for r in rows]
    line, pixel = roles.line.var, roles.pixel.var
    return [{line: r, pixel: p} for r in rows for p in range(roles.width)]
