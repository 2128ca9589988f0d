"""Blocked convolution and pooling: the size of tiles, cut where they see other taps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.ir.target import Target

from ..layout import rows_of
from .blocked_roles import MOST_PIXELS, Flat, Roles
from .taps import Place, Seen, Taps


@dataclass(frozen=True, slots=True)
class Part:
    """Tiles of one size along an axis, all of which see the same of each tap."""

    begin: int
    count: int
    size: int
    seen: Seen = frozenset()


def tile_size(blocks: int, pixels: int, roles: Roles, target: Target) -> tuple[int, int]:
    """Blocks and rows of a tile that cost least, rows being `width` pixels each.

    ``blocks * (pixels + 1) + 1`` registers have to do.
    """
    best: tuple[float, int, int] = math.inf, 1, 1
    width = roles.width
    for columns in range(1, min(blocks, 4) + 1):
        most = min(rows_of(columns, target), MOST_PIXELS)
        for rows in range(1, min(most // width, pixels) + 1):
            if rows > 1 and not _fits(roles.flat, rows, width, target):
                break
            cost = sum(
                c.count * r.count * _cost(c.size, r.size * width, roles.flat)
                for c in parts_of(blocks, columns)
                for r in parts_of(pixels, rows)
            )
            best = min(best, (cost, columns, rows))
    return best[1], best[2]


def _fits(flat: Flat | None, rows: int, width: int, target: Target) -> bool:
    """Whether there are registers for accumulators, weights and the pixels that taps share."""
    if flat is None:
        return True
    loads = flat.loads(rows) if width == 1 else flat.loads(width) * rows
    weights = flat.taps if flat.weights else 0
    return rows * width + loads + weights <= target.vector_registers


def _cost(columns: int, pixels: int, flat: Flat | None) -> float:
    """Half cycles of a step: two multiplications or loads a cycle, four cycles of latency."""
    if flat is not None:
        return max(flat.taps * max(pixels, 8), flat.loads(pixels) + flat.taps) + 4
    return max(columns * pixels, columns + pixels, 8) + 1


def parts_of(extent: int, size: int) -> list[Part]:
    """Tiles of a size along an axis, and a smaller one for the rest."""
    whole, rest = divmod(extent, size)
    parts = [Part(0, whole, size)] if whole else []
    return parts + ([Part(whole * size, 1, rest)] if rest else [])


def cut(parts: Sequence[Part], roles: Roles, taps: Taps) -> list[Part]:
    """The parts cut where tiles see something else."""
    found: list[Part] = []
    for part in parts:
        if not any(e.axis in taps.inside for e in taps.edges):
            found.append(replace(part, seen=frozenset(range(part.size * roles.width))))
            continue
        for tile in range(part.count):
            begin = part.begin + tile * part.size
            rows = range(begin, begin + part.size)
            seen = taps.seen(_places(roles, rows))
            last = found[-1] if tile else None
            if last is not None and last.seen == seen:
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(Part(begin, 1, part.size, seen))
    return found


def _places(roles: Roles, rows: Sequence[int]) -> list[Place]:
    if roles.line is None:
        return [{roles.pixel.var: r} for r in rows]
    line, pixel = roles.line.var, roles.pixel.var
    return [{line: r, pixel: p} for r in rows for p in range(roles.width)]
