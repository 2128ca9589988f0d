"""Products on matrix tiles: panels in groups of depth, two by two tiles of sums at a time.

A task takes some panels and a block of rows. Tiles of rows pass over a panel, which stays in a
cache; what the task reads next is fetched meanwhile. Sums go through a little memory, from which
the stores of the stage are done row by row. As few tiles as possible, of as few rows, are all full:
the last one begins where it is. The left operand is read where it lies if its rows are contiguous
in depth and fill whole steps; else, and of fewer rows than a tile has where their number is
unknown, from a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import bounds
from unity.ir.prim_expr import Compare, PrimVar, imm
from unity.machine.dot_units import SIDE, group_of
from unity.machine.target import Target

from ...blocks.extents import ceildiv, count_of
from ...blocks.extents import product as product_of
from ...blocks.nest import Nest
from ...roles.grouped_panels import GroupedProduct, grouped_product
from ...schedule.index_map import IndexMap
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.matrix_tiles import (
    InTiles,
    TileSum,
    copied_at,
    in_tiles,
    instructed,
    most_tall,
    moved_to,
    whole_tiles,
)
from ...tactics.reshaping import reshape
from ...tactics.threads import share
from ..rule import EITHER, Legal, Neighbourhood, by_steps, worth

MOST_TILES = 64
"""Tiles of rows of a block, at most."""
UNKNOWN_TILES = 16
"""The same where the number of rows is unknown."""


@dataclass(frozen=True, slots=True)
class TiledProduct(GroupedProduct):
    """A product on tiles.

    Attributes:
        left_in_place: Whether tiles of the left operand can be loaded from where it lies.
    """

    left_in_place: bool

    @property
    def wide(self) -> int:
        """Columns of tiles of a panel."""
        return min(self.layout.width, -(-self.layout.columns // SIDE) * SIDE) // SIDE


@dataclass(frozen=True, slots=True)
class TileBlocks:
    """The decisions.

    Attributes:
        height: Rows of a tile.
        tall: Tiles of rows that are done at once.
        times: How often a task does so, at most, before it takes the next panel.
        panels: Panels of a task.
        ahead: Whether the next panel is asked for.
        grain: Multiply-adds that a task has at least.
    """

    height: int
    tall: int
    times: int
    panels: int
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> TiledProduct | None:
    """A product whose right operand lies in panels of groups, the target multiplying tiles."""
    found = grouped_product(nest, target, "tile")
    if found is None or found.layout.width not in (SIDE, 2 * SIDE) or found.depth % SIDE:
        return None
    place = found.in_place(rows=True)
    return TiledProduct(nest, found.shaped, found.layout, found.unit, place)


def _height(product: TiledProduct) -> int:
    """Rows of a tile: as few as make no more tiles."""
    rows, row = product.rows, product.layout.row
    if rows is None and row is not None:
        return max(1, min(SIDE, bounds(row.extent)[1] or SIDE))
    return max(1, -(-rows // max(1, -(-rows // SIDE)))) if rows else 1


def _decide(product: TiledProduct, target: Target) -> TileBlocks:
    """Blocks of rows of the left operand such as half of the second cache holds."""
    layout, rows = product.layout, product.rows
    height = _height(product)
    tiles = None if rows is None else max(1, -(-rows // height))
    tall = most_tall(product.wide) if tiles is None else min(most_tall(product.wide), tiles)
    depth = product.depth * group_of(layout.left.dtype) * layout.left.dtype.bits // 8
    most = max(1, target.l2_kept // (depth * tall * height))
    most = min(most, MOST_TILES // tall)
    if tiles is None:
        times, blocks = min(most, UNKNOWN_TILES // tall), 1
    else:
        whole = -(-tiles // tall)
        blocks = -(-whole // most)
        times = -(-whole // blocks)
    others = count_of(a.extent for a in layout.outer) * blocks
    tasks = target.tasks if target.threads > 1 else 1
    runs = min(product.panels, max(1, -(-tasks // others)))
    return TileBlocks(
        height,
        tall,
        times,
        -(-product.panels // runs),
        ahead=_may_ask(product) and (tiles is None or tiles > 1),
        grain=target.machine.grain("tile_multiply_adds"),
    )


def _may_ask(product: TiledProduct) -> bool:
    """Whether another panel follows, and comes from far."""
    buffer = product.layout.right.buffer
    return product.panels > 1 and not buffer.scope.startswith("local")


def _legal(product: TiledProduct, how: TileBlocks, _target: Target) -> Neighbourhood:
    row = product.layout.row
    rows = 1 if row is None else bounds(row.extent)[1]
    height = range(1, max(1, min(SIDE, SIDE if rows is None else rows)) + 1)
    tall = range(1, most_tall(product.wide) + 1)
    one = Legal((False,), "there is no next panel that comes from far")
    return {
        "height": Legal(height, f"a tile has at most {SIDE} rows, and no more than there are"),
        "tall": Legal(tall, f"there are 8 tiles, {product.wide} for columns"),
        "times": Legal(
            range(1, max(MOST_TILES // how.tall, how.times) + 1), f"{MOST_TILES} tiles of a block"
        ),
        "panels": Legal(range(1, product.panels + 1), f"there are {product.panels}"),
        "ahead": EITHER if _may_ask(product) else one,
        "grain": worth("multiply-adds"),
    }


def schedule_tiles(sch: Schedule, product: TiledProduct, how: TileBlocks, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    sums, layout = product.written.name, product.layout
    reshape(sch, product.written, product.shaped, result)
    if layout.row is None:
        _with_row(sch, sums, result, len(layout.outer))
    if layout.row is None or product.rows is not None or not product.left_in_place:
        _tiled(sch, product, how, (sums, result), copied=not product.left_in_place)
        return
    extent = layout.row.extent
    if how.height == 1 or (bounds(extent)[0] or 0) >= how.height:
        _tiled(sch, product, how, (sums, result), copied=False)
        return
    enough = Compare("ge", extent, imm(how.height))
    few_sums, *_, few_result = sch.specialize_when(enough, sums, result)
    _tiled(sch, product, how, (sums, result), copied=False)
    if not bounds(extent)[0]:
        sch.specialize_when(Compare("ge", extent, imm(1)), few_sums, few_result)
    _few(sch, product, how, (few_sums.name, few_result.name))


def _with_row(sch: Schedule, sums: str, result: str, at: int) -> None:
    """Axes for the one row that there is: of sums for its tile and the place there."""
    for name, more in ((sums, (imm(0), imm(0))), (result, (imm(0),))):
        axes = tuple(PrimVar(f"i{k}") for k in range(len(sch.get_loops(name))))
        sch.transform_block_layout(name, IndexMap(axes, (*axes[:at], *more, *axes[at:])))
    axes = tuple(PrimVar(f"i{k}") for k in range(at + 1))
    sch.transform_layout(sums, 0, IndexMap(axes, (*axes[:at], imm(0), imm(0), *axes[at:])))


def _tiled(
    sch: Schedule, product: TiledProduct, how: TileBlocks, names: tuple[str, str], *, copied: bool
) -> None:
    """Two blocks laid out."""
    sums, result = names
    tiles = _in_tiles(sch, product, how.height, sums, copied=copied)
    whole_tiles(sch, tiles, result)
    *outer, rows, columns = sch.get_loops(result)
    block, pair, tile, line = sch.split(rows, [None, how.times, how.tall, how.height])
    run, panel, vector, lane = _columns(sch, product, how, columns)
    tasks = [*outer, block, run]
    sch.reorder(*tasks, panel, pair, tile, line, vector, lane)
    loops = moved_to(sch, tiles, pair)
    if copied:
        copied_at(sch, tiles, run)
    if how.ahead:
        following = run if how.panels == 1 else panel
        lines = sch.prefetch(tiles.right, 0, following, loops.step, pair)
        sch.unroll(sch.get_loops(lines)[-1])
    instructed(sch, tiles, loops)
    sch.vectorize(lane)
    sch.unroll(vector)
    _shared(sch, product, how, tasks)


def _few(sch: Schedule, product: TiledProduct, how: TileBlocks, names: tuple[str, str]) -> None:
    """The same of rows that fill no tile: of some, read from a copy."""
    sums, result = names
    tiles = _in_tiles(sch, product, how.height, sums, copied=True)
    whole_tiles(sch, tiles, result)
    *outer, rows, columns = sch.get_loops(result)
    run, panel, vector, lane = _columns(sch, product, how, columns)
    tasks = [*outer, run]
    sch.reorder(*tasks, panel, rows, vector, lane)
    loops = moved_to(sch, tiles, panel)
    copied_at(sch, tiles, run)
    instructed(sch, tiles, loops)
    sch.vectorize(lane)
    sch.unroll(vector)
    _shared(sch, product, how, tasks, few=True)


def _in_tiles(
    sch: Schedule, product: TiledProduct, height: int, sums: str, *, copied: bool
) -> InTiles:
    """A block that sums up, its rows and columns in tiles."""
    layout, row = product.layout, len(product.layout.outer)
    if layout.row is not None:
        sch.tile_axis(sums, row, height)
    copy = sch.cache_operand(sums, 0, "local") if copied else None
    panel = product.wide * SIDE
    if layout.columns % panel:
        axes = range(len(sch.get_loops(sums)))
        sch.pad_einsum(sums, [panel if k == row + 2 else 1 for k in axes])
    sch.tile_axis(sums, row + 2, SIDE)
    return in_tiles(sch, TileSum(sums, product.unit, height), copy)


def _columns(
    sch: Schedule, product: TiledProduct, how: TileBlocks, columns: LoopRef
) -> tuple[LoopRef, LoopRef, LoopRef, LoopRef]:
    """Loops over a task's runs of panels, its panels, the vectors of one, and their lanes."""
    assert sch.target is not None
    lanes = min(SIDE, sch.target.vector_bits // product.unit.out.bits)
    vectors = product.wide * SIDE // lanes
    run, panel, vector, lane = sch.split(columns, [None, how.panels, vectors, lanes])
    return run, panel, vector, lane


def _shared(
    sch: Schedule,
    product: TiledProduct,
    how: TileBlocks,
    tasks: Sequence[LoopRef],
    *,
    few: bool = False,
) -> None:
    """Tasks shared among threads, by the multiply-adds of one, of rows that there surely are."""
    layout, rows = product.layout, product.rows
    most = how.times * how.tall * how.height
    blocks = imm(1) if few or layout.row is None else ceildiv(layout.row.extent, imm(most))
    outer = [a.extent for a in layout.outer]
    points = product_of([*outer, blocks, imm(-(-product.panels // how.panels))])
    height = how.height if rows is None else min(rows, most)
    depth = [layout.depth.extent, layout.place.extent]
    work = product_of([*depth, imm(height * how.panels * layout.width)])
    share(sch, tasks, points, work, how.grain)


MATRIX_TILES = by_steps(
    "matrix_tiles",
    _match,
    _decide,
    _legal,
    nest=lambda product: product.written,
    steps=schedule_tiles,
)
