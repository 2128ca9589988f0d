"""How many tiles at a time, and who shares them: an estimate of cycles for each way.

Transformed weights are read once for every chunk of tiles; the transformed inputs and the products
of a chunk should stay in the second cache meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from unity.ir.representative import BATCH, IMAGE, representative_extent
from unity.machine.target import Target

from ...blocks.extents import count_of, divisors, number
from ...roles.reduction import rows_of
from ...roles.winograd import TileGroup
from ...tactics.tile_sizes import counts, tile_size
from ..rule import EITHER, Legal, Neighbourhood

MOST_ROWS = 16
"""Tiles of a register tile, at most."""
LONGEST_RUN = 24
"""Register tiles along a run of tiles, at most."""


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
    """The way of fewest estimated cycles."""
    blocks = number(group.block_out.extent) or 1
    best: tuple[float, TilePlan] | None = None
    for columns in divisors(blocks, 4):
        most = min(rows_of(columns, target), MOST_ROWS)
        if most < 1:
            continue
        for tiles, rows in _chunks(group, most):
            for panels in divisors(blocks // columns):
                for together in (False, True):
                    plan = TilePlan(tiles, columns, rows, panels, together, prefetch=False)
                    cost, far = _cycles(group, plan, target)
                    if best is None or cost < best[0]:
                        best = cost, replace(plan, prefetch=far)
    assert best is not None
    return best[1]


def legal_plans(group: TileGroup, plan: TilePlan, target: Target) -> Neighbourhood:
    """What else each number of a plan may be."""
    blocks = number(group.block_out.extent) or 1
    lines, line = (number(a.extent) for a in group.tiles[-2:])
    widths = [c for c in divisors(blocks // plan.panels, 4) if blocks % (c * plan.panels) == 0]
    rows = min(rows_of(plan.columns, target), MOST_ROWS)
    known = lines is not None and line is not None
    if lines is None or line is None:
        tiles = Legal(
            range(plan.rows, LONGEST_RUN * MOST_ROWS + 1, plan.rows),
            f"a run is of whole register tiles, of {plan.rows} rows",
        )
    else:
        whole = [n * line for n in divisors(lines)]
        tiles = Legal(whole, f"chunks of as many of the {lines} lines of {line} tiles")
    registers = f"the sums of {plan.columns} blocks are kept in {target.vector_registers} registers"
    return {
        "tiles": tiles,
        "columns": Legal(
            [c for c in widths if rows_of(c, target) >= plan.rows],
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
        total = math.prod(_extents(group)[-2:])
        longest = min(LONGEST_RUN, -(-total // most))
        return [(most * n, most) for n in range(1, longest + 1)]
    return [(n * line, tile_size(n * line, most)) for n in divisors(lines)]


def _extents(group: TileGroup) -> list[int]:
    """The extents that tell a tile, unknown ones as they are represented."""
    *outer, lines, line = group.tiles
    found = [representative_extent(a.extent, BATCH) for a in outer]
    found += [representative_extent(a.extent, IMAGE) for a in (lines, line)]
    return [n or 1 for n in found]


def _cycles(group: TileGroup, plan: TilePlan, target: Target) -> tuple[float, bool]:
    """Cycles, and whether weights come from behind the second cache."""
    *outer, lines, line = _extents(group)
    size, lanes = group.reduction.value.dtype.bytes, number(group.lane_out.extent) or 1
    points = count_of(a.extent for a in group.points)
    depth = count_of(a.extent for a in group.reduction.axes)
    c, panels = plan.columns, (number(group.block_out.extent) or 1) // plan.columns
    tiles, chunks = plan.tiles, -(-lines * line // plan.tiles) * math.prod(outer)
    parts = counts(tiles, plan.rows)
    machine = target.machine
    multiply = depth * panels * sum(n * machine.step_cycles(c * r, c + r) for n, r in parts)
    # At one point, from the second cache: weights once or for each register tile, and so on.
    weight, seen = depth * c * lanes * size, tiles * depth * size
    rounds = sum(n for n, _ in parts) if weight > target.l1_kept else 1
    again = (
        panels
        if weight + seen > target.l1_bytes * machine.l1_reread_share
        else panels // plan.panels
    )
    made = tiles * c * lanes * size * panels
    read = (weight * panels * rounds + seen * again + 2 * made) / machine.l2_bytes_per_cycle
    # From afar: what does not stay in the second cache from one chunk to the next.
    room = target.l2_reread
    chunk = points * (seen + made * plan.panels // panels)
    far = points * weight * panels + chunk > room
    afar = points * weight * panels if far else 0
    afar += 2 * chunk if chunk > room else 0
    if plan.together:
        afar += 2 * points * seen if points * seen * chunks > target.l2_kept else 0
    waited = machine.exposed_share * afar / machine.memory_bytes_per_cycle
    total = chunks * (points * (multiply + machine.exposed_share * read) + waited)
    tasks = chunks * (panels // plan.panels if plan.together else 1)
    return total * math.ceil(tasks / target.threads) / tasks, far
