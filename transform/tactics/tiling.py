"""The register tile of a contraction: how many of each axis, and what a task of a thread has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unity.ir.prim_expr import imm
from unity.ir.symbols.representative import LENGTH, representative_extent
from unity.machine.target import Target

from ..blocks.access import known_of, place, step
from ..blocks.extents import ceildiv, count_of, number, product
from ..blocks.nest import Axis, Reduction
from ..roles.reduction import Layout, columns_of, rows_of
from .packing import REPACK, Packing
from .tile_sizes import cheapest_size, counts, tile_size
from .unrolling import steps_in_row

FEW = 2
"""Steps in a row of an unknown number."""
MOST_IN_A_ROW = 48
"""Multiplications of vectors in a row, at most, where a panel of columns is copied. With tiles of 8
by 3 vectors two steps take 0.83 to 1.0 of what four do (64 by 576 by 3136, 128 by 768 by 3072, 512
by 512 by 512; Xeon with AMX); tiles of 4 by 3, of fewer registers, have room for four."""
MOST_BESIDE_COPY = 64
"""Tiles of rows beside the one that copies for which that matters: of more, four steps gain 2 %."""
MOST_ROWS = 8
"""Rows of a tile, at most."""
WIDEST = 3
"""Vectors of a row of a tile that are tried: 16 registers hold 4 rows of 3 as well as 6 of 2."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """How many of each axis a register tile has.

    Attributes:
        rows: Of the axis of rows.
        beside: Of the second axis of columns.
        vectors: Vectors of the first.
        steps: Steps of the innermost reduced axis in a row.
        chunk: Tiles of rows that a task has; 0 for all.
        by_rows: Whether a task has one tile, and the next one the columns beside.
        ahead: Whether the next tile's columns are to be fetched.
        copied: Whether columns are copied to panels, where there are rows enough.
        grain: Multiply-adds from which on threads share the tasks.
    """

    rows: int
    beside: int
    vectors: int
    steps: int
    chunk: int
    by_rows: bool
    ahead: bool
    copied: bool
    grain: int


def tiling_of(
    layout: Layout, reduction: Reduction, target: Target, packing: Packing | None
) -> Tiling:
    """The tile that keeps the multipliers busy, from registers and extents."""
    found = None if packing is None else _cheapest(layout, reduction, target, packing)
    if found is not None:
        return found
    most = 2 * columns_of(target) if layout.row is None else columns_of(target)
    vectors = tile_size(ceildiv(layout.column.extent, imm(layout.lanes)), most)
    if layout.row is not None and layout.beside is None:
        vectors = _width(layout, layout.row, vectors, target)
    beside = 1
    if layout.beside is not None:
        if number(layout.column.extent) is None:
            vectors = 1  # of a short line, more would be computed for nothing
        beside = tile_size(layout.beside.extent, max(1, most // vectors))
    width, rows = vectors * beside, 1
    if layout.row is not None:
        largest = max(1, min(MOST_ROWS, rows_of(width, target)))
        rows = cheapest_size(layout.row.extent, largest, width, target.machine)
    by_rows = packing is None and _is_mostly_written(layout, reduction, rows, target)
    chunk = 0 if by_rows else _chunk(layout, reduction, target, packing, rows, beside, vectors)
    steps, grain = _steps(layout, reduction), target.machine.grain("multiply_adds")
    ahead = packing is not None and _asks(layout, packing, rows)
    return Tiling(rows, beside, vectors, steps, chunk, by_rows, ahead, packing is not None, grain)


def _width(layout: Layout, row: Axis, vectors: int, target: Target) -> int:
    """Vectors of a row of a tile: as many as given, or others whose steps cost less.

    Of columns of unknown number as many as given: more would be computed for nothing where there
    are few.
    """
    columns = number(layout.column.extent)
    if not columns or layout.lanes == 1:
        return vectors
    whole = -(-columns // layout.lanes)
    rows = representative_extent(row.extent) or LENGTH
    outer = count_of(a.extent for a in layout.outer)

    def total(width: int) -> float:
        largest = max(1, min(MOST_ROWS, rows_of(width, target)))
        height = cheapest_size(row.extent, largest, width, target.machine)
        tasks = -(-whole // width) * outer
        idle = -(-tasks // target.threads) * target.threads / tasks
        return idle * sum(
            n * m * target.machine.step_cycles(high * wide, high + wide)
            for n, wide in counts(whole, width)
            for m, high in counts(rows, height)
        )

    widths = dict.fromkeys(tile_size(whole, w) for w in range(1, WIDEST + 1))
    return min((vectors, *widths), key=total)


def _asks(layout: Layout, packing: Packing, rows_in_tile: int) -> bool:
    """Whether columns of unknown number are asked for before the first tile of rows copies them.

    There may be many: lines of a column lie as far apart as there are columns, each in a page of
    its own, and nothing but the program tells the machine which come next.
    """
    rows = None if layout.row is None else number(layout.row.extent)
    if packing.transposed or number(layout.column.extent) is not None:
        return False
    return rows is not None and bool(packing.depth) and rows > rows_in_tile


def _is_mostly_written(
    layout: Layout, reduction: Reduction, rows_in_tile: int, target: Target
) -> bool:
    """Whether the second cache holds all that the tiles read, twice, and not what they write.

    Where columns are of unknown number, whether tiles read little more of them than they write.
    """
    if layout.row is None:
        return False
    axes = (layout.row, layout.column, layout.beside)
    rows, columns, beside = (1 if a is None else number(a.extent) for a in axes)
    depth = number(product([a.extent for a in reduction.axes]))
    if not rows or not depth:
        return False
    if not columns or not beside:
        return depth <= 2 * rows_in_tile
    each = reduction.value.dtype.bytes
    read, written = depth * (rows + columns * beside), rows * columns * beside
    return 2 * read * each <= target.l2_bytes < written * each


def _steps(layout: Layout, reduction: Reduction) -> int:
    """How many steps stand in a row."""
    axes = tuple(a for a in (layout.row, layout.beside) if a is not None)
    steps = steps_in_row(reduction, axes)
    if number(reduction.axes[-1].extent) is None:
        return min(steps, FEW)  # each tile is written twice, also for the rest
    return steps


def _in_a_row(steps: int, sums: int) -> int:
    """So many steps, or fewer that divide them, of no more than `MOST_IN_A_ROW` multiplications."""
    most = max(1, MOST_IN_A_ROW // sums)
    return steps if steps <= most else next(n for n in range(most, 0, -1) if steps % n == 0)


def _stays(layout: Layout, reduction: Reduction, packing: Packing, target: Target) -> bool:
    """Whether what is asked for is in the second cache yet when it is copied.

    Lines that lie a multiple of a large power of two apart share few of its sets.
    """
    known = known_of((*layout.outer, layout.column, *reduction.axes))
    apart = step(place(packing.load, known), reduction.axes[-1].var)
    if not apart or packing.depth is None:
        return True
    sets = math.gcd(target.l2_bytes, abs(apart) * packing.load.dtype.bytes)
    return 2 * packing.depth * sets <= target.l2_bytes


def _cheapest(
    layout: Layout, reduction: Reduction, target: Target, packing: Packing
) -> Tiling | None:
    """The tile over a panel that is estimated to cost least; None where sizes are unknown."""
    depth, columns = packing.depth, number(layout.column.extent)
    rows = None if layout.row is None else number(layout.row.extent)
    if layout.row is None or not depth or not columns or not rows:
        return None
    most = _most_rows(layout, layout.row, reduction, packing, target)
    best: tuple[float, Tiling] | None = None
    for vectors in range(max(WIDEST, columns_of(target)), 0, -1):
        whole = -(-columns // layout.lanes)
        width = tile_size(whole, vectors)
        largest = max(1, min(most, rows_of(width, target)))
        height = cheapest_size(layout.row.extent, largest, width, target.machine)
        chunk = _chunk(layout, reduction, target, packing, height, 1, width)
        total = sum(
            n * m * _cost(depth, layout, packing, rows_here, wide, target)
            for n, wide in counts(whole, width)
            for m, rows_here in counts(rows, height)
        )
        count = -(-whole // width)
        if chunk:
            all_tiles = -(-rows // height)
            count *= -(-all_tiles // chunk)
        count *= count_of(a.extent for a in layout.outer)
        rounds = -(-count // target.threads)
        total *= rounds * target.threads / count
        if best is None or total < best[0]:
            many = width * layout.lanes < columns and height < rows  # who asks, and for what
            far = depth * columns * packing.load.dtype.bytes > target.l2_bytes
            steps = _steps(layout, reduction)
            if rows <= MOST_BESIDE_COPY * height:
                steps = _in_a_row(steps, height * width)
            grain = target.machine.grain("multiply_adds")
            ahead = many and far and _stays(layout, reduction, packing, target)
            best = total, Tiling(height, 1, width, steps, chunk, False, ahead, True, grain)
    return None if best is None else best[1]


def _most_rows(
    layout: Layout, row: Axis, reduction: Reduction, packing: Packing, target: Target
) -> int:
    """Rows of a tile such that what is read for each of them stays in the first cache together.

    Rows that lie a multiple of a page apart share its sets, a way of which is a page large.
    """
    known = known_of((*layout.outer, layout.column, row, *packing.axes))
    page = target.machine.page_bytes
    ways, most = max(2, target.l1_bytes // page), MOST_ROWS
    for load in reduction.loads():
        apart = step(place(load, known), row.var)
        if apart and load is not packing.load:
            sets = page // math.gcd(page, abs(apart) * load.dtype.bytes)
            most = min(most, sets * ways // 2)
    return most


def _cost(
    depth: int, layout: Layout, packing: Packing, rows: int, columns: int, target: Target
) -> float:
    """Cycles of a tile, over all its steps."""
    sums = rows * columns
    read = columns * layout.lanes * packing.load.dtype.bytes
    each = target.machine.step_cycles(sums, rows + columns)
    if depth * read > target.l1_kept:
        each += target.machine.stalled_cycles(read)
    return depth * each + sums + target.machine.tile_end_cycles


def _chunk(
    layout: Layout,
    reduction: Reduction,
    target: Target,
    packing: Packing | None,
    rows: int,
    beside: int,
    vectors: int,
) -> int:
    """How many tiles of rows make a chunk; 0 for all of them."""
    tasks = -(-(number(layout.column.extent) or 1) // (vectors * layout.lanes))
    if layout.beside is not None:
        tasks *= -(-(number(layout.beside.extent) or 1) // beside)
    for axis in layout.outer:
        tasks *= number(axis.extent) or 1
    wanted = target.tasks
    if layout.row is None or target.threads == 1 or tasks >= wanted:
        return 0
    least = 1 if packing is None else -(-REPACK // rows)
    known = number(layout.row.extent)
    if known is None:
        steps = representative_extent(product([a.extent for a in reduction.axes])) or LENGTH
        each = steps * rows * vectors * beside * layout.lanes
        return max(least, -(-target.machine.grain("multiply_adds") // each))
    whole = -(-known // rows)
    chunks = -(-whole // max(least, -(-whole * tasks // wanted)))
    return -(-whole // chunks) if chunks > 1 else 0  # even ones
