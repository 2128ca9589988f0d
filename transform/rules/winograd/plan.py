"""How many tiles at a time, and who shares them: an estimate of cycles for each way.

Transformed weights are read once for every chunk of tiles; the transformed inputs and the products
of a chunk should stay in the second cache meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from unity.ir.symbols.representative import BATCH, IMAGES, representative_extent
from unity.machine.target import Target

from ...blocks.extents import count_of, divisors, number
from ...blocks.memory_of_runs import RUNS_A_THREAD
from ...roles.reduction import rows_of
from ...roles.winograd import TileGroup
from ...tactics.tile_sizes import counts, tile_size
from ..rule import EITHER, Legal, Neighbourhood

MOST_ROWS = 16
"""Tiles of a register tile, at most."""
RUNS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Register tiles along a run of tiles."""
AHEAD = 0.5
"""What is asked for early takes, of what else comes from behind the second cache: weights do."""
WRITTEN = 2
"""Times that what is written goes by: it is read first (nine convolutions of 64 to 256 channels of
unknown sizes by both numbers: 1.06 on one thread, 1.02 on two; AMD Zen 3)."""
SHARERS = 2
"""Register tiles of an unknown number that share what they ask for, at most."""

ROOM = 24 << 20
"""Bytes of the products that all threads keep, at most: what is 32 MiB large is mapped anew at each
call (256 channels, 64 points, 144 tiles by two threads: 11 ms instead of 2, AMD Zen 3)."""


@dataclass(frozen=True, slots=True)
class TilePlan:
    """A way to go through the tiles.

    Attributes:
        tiles: Tiles of a chunk: whole lines of them, a run where lines are unknown.
        columns: Blocks of output channels in a register tile.
        rows: Tiles in a register tile.
        panels: Register tiles side by side that are multiplied before any is transformed back.
        together: Whether all threads transform the inputs first and then share the products'
            columns; else each takes chunks of its own.
        prefetch: Whether weights come from far and are asked for early.
    """

    tiles: int
    columns: int
    rows: int
    panels: int
    together: bool
    prefetch: bool


def plan_for(group: TileGroup, target: Target) -> TilePlan:
    """The way of fewest estimated cycles; of unknown sizes, by the mean of several images."""
    blocks, images = number(group.block_out.extent) or 1, _images(group)
    best: tuple[float, TilePlan] | None = None
    for columns in divisors(blocks, 4):
        most = _most_rows(columns, target)
        if most < 1:
            continue
        for tiles, rows in _chunks(group, most):
            for panels in divisors(blocks // columns):
                for together in (False, True):
                    plan = TilePlan(tiles, columns, rows, panels, together, prefetch=False)
                    if best is not None and _room(group, plan, target) > ROOM:
                        continue
                    each = [_cycles(group, plan, target, i) for i in images]
                    cost, far = math.prod(c for c, _ in each), any(f for _, f in each)
                    if best is None or cost < best[0]:
                        best = cost, replace(plan, prefetch=far)
    assert best is not None
    return best[1]


def _most_rows(columns: int, target: Target) -> int:
    """Rows of a register tile, at most.

    Of 32 registers two are left for what LLVM loads ahead: of fourteen rows of two columns it kept
    a sum on the stack.
    """
    rows = min(rows_of(columns, target), MOST_ROWS)
    left = target.vector_registers - (rows + 1) * columns - 1
    return rows - 1 if target.many_registers and left < 2 else rows


def sharers(group: TileGroup, plan: TilePlan) -> int | None:
    """Register tiles that share what is asked for of the next weights; None for all of a chunk.

    Of unknown sizes few: what they are not asked for is waited for. But two, where there may be
    so many, though a small image has one: where one asks for all while others multiply, memory
    has too much to do at once, then nothing (256 channels of 14 x 14: 1.3 to 1.6 times the time).
    """
    return None if group.is_known else min(SHARERS, plan.tiles // plan.rows)


def legal_plans(group: TileGroup, plan: TilePlan, target: Target) -> Neighbourhood:
    """What else each number of a plan may be."""
    blocks = number(group.block_out.extent) or 1
    lines, line = (number(a.extent) for a in group.tiles[-2:])
    widths = [c for c in divisors(blocks // plan.panels, 4) if blocks % (c * plan.panels) == 0]
    rows = _most_rows(plan.columns, target)
    known = lines is not None and line is not None
    if lines is None or line is None:
        tiles = Legal(
            range(plan.rows, RUNS[-1] * MOST_ROWS + 1, plan.rows),
            f"a run is of whole register tiles, of {plan.rows} rows",
        )
    else:
        whole = [n * line for n in divisors(lines)]
        tiles = Legal(whole, f"chunks of as many of the {lines} lines of {line} tiles")
    registers = f"the sums of {plan.columns} blocks are kept in {target.vector_registers} registers"
    return {
        "tiles": tiles,
        "columns": Legal(
            [c for c in widths if _most_rows(c, target) >= plan.rows],
            f"{blocks} blocks of channels divide evenly, and registers hold the sums",
        ),
        "rows": Legal([r for r in range(1, rows + 1) if known or plan.tiles % r == 0], registers),
        "panels": Legal(
            divisors(blocks // plan.columns), f"{blocks} blocks of channels divide evenly"
        ),
        "together": EITHER,
        "prefetch": EITHER,
    }


def _chunks(group: TileGroup, most: int) -> list[tuple[int, int]]:
    """Tiles of a chunk, and tiles of a register tile."""
    lines, line = (number(a.extent) for a in group.tiles[-2:])
    if lines is None or line is None:
        most_tiles = max(lines * line for *_, lines, line in _images(group))
        longest = -(-most_tiles // most)
        return [(most * n, most) for n in RUNS if n <= longest]
    return [(n * line, tile_size(n * line, most)) for n in divisors(lines)]


def _images(group: TileGroup) -> list[tuple[int, ...]]:
    """The extents that tell a tile, unknown ones as they are represented, of several images."""
    *outer, lines, line = (a.extent for a in group.tiles)
    batch = [representative_extent(e, BATCH) or 1 for e in outer]
    sizes = {tuple(representative_extent(e, i) or 1 for e in (lines, line)) for i in IMAGES}
    return [(*batch, *size) for size in sorted(sizes)]


def _room(group: TileGroup, plan: TilePlan, target: Target) -> int:
    """Bytes of the products of all chunks that are in work; one thread counts as two."""
    lanes, size = number(group.lane_out.extent) or 1, group.reduction.value.dtype.bytes
    tiles = plan.tiles * count_of(a.extent for a in group.points)
    return (
        tiles * plan.columns * plan.panels * lanes * size * RUNS_A_THREAD * max(target.threads, 2)
    )


def _cycles(
    group: TileGroup, plan: TilePlan, target: Target, image: tuple[int, ...]
) -> tuple[float, bool]:
    """Cycles of the thread that has most of an image to do, and whether weights come from afar."""
    *outer, lines, line = image
    sizes = [(n * math.prod(outer), size) for n, size in counts(lines * line, plan.tiles)]
    chunks = sum(n for n, _ in sizes)
    every = [(n, *_chunk_cycles(group, plan, target, size, chunks)) for n, size in sizes]
    far = any(f for _, _, f in every)
    if plan.together:
        tasks = chunks * ((number(group.block_out.extent) or 1) // (plan.columns * plan.panels))
        share = math.ceil(tasks / target.threads) / tasks
        return sum(n * cycles for n, cycles, _ in every) * share, far
    total, left = 0.0, math.ceil(chunks / target.threads)
    for n, cycles, _ in every:
        total += min(n, left) * cycles
        left -= min(n, left)
    return total, far


def _chunk_cycles(
    group: TileGroup, plan: TilePlan, target: Target, tiles: int, chunks: int
) -> tuple[float, bool]:
    """Cycles of a chunk, and whether weights come from behind the second cache.

    Args:
        group: The stages.
        plan: A way to go through the tiles.
        target: The machine.
        tiles: Of the chunk, which may be what is left.
        chunks: How many there are.
    """
    size, lanes = group.reduction.value.dtype.bytes, number(group.lane_out.extent) or 1
    points = count_of(a.extent for a in group.points)
    depth = count_of(a.extent for a in group.reduction.axes)
    c, panels = plan.columns, (number(group.block_out.extent) or 1) // plan.columns
    parts = counts(tiles, plan.rows)
    machine = target.machine
    multiply = depth * panels * sum(n * machine.step_cycles(c * r, c + r) for n, r in parts)
    # At one point, from the second cache: weights once or for each register tile, and so on.
    weight, seen = depth * c * lanes * size, tiles * depth * size
    stays = weight + plan.rows * depth * size <= target.l1_kept
    rounds = 1 if stays else sum(n for n, _ in parts)
    again = (
        panels
        if weight + seen > target.l1_bytes * machine.l1_reread_share
        else panels // plan.panels
    )
    made = tiles * c * lanes * size * panels
    read = (weight * panels * rounds + seen * again + 2 * made) / machine.l2_bytes_per_cycle
    # From afar: what does not stay in the second cache from one chunk to the next.
    room = target.l2_reread
    part = points * made * plan.panels // panels
    chunk = points * seen + part
    far = points * weight * panels + chunk > room
    afar = AHEAD * points * weight * panels if far else 0.0
    if chunk > room:  # inputs are written, and read by each group of panels
        afar += points * seen * (WRITTEN + panels // plan.panels)
    if part > room:
        afar += points * made * (WRITTEN + 1)
    if plan.together:
        afar += 2 * points * seen if points * seen * chunks > target.l2_kept else 0
    waited = machine.exposed_share * afar / machine.memory_bytes_per_cycle
    return points * (multiply + machine.exposed_share * read) + waited, far
