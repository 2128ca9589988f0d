"""Products in vector registers: panels in groups of depth, where dot products are instructions.

A task takes a panel and some rows, as `packed` does; the sums of a tile are kept in registers. Each
step takes a group of neighbours in depth of a row, which all lanes share, and those of a register
of columns: one instruction adds the group's products to a register of sums. A left operand that is
computed, or whose groups do not lie together, is copied tile by tile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from unity.arith import bounds
from unity.ir.marks import FITTING, TAIL
from unity.ir.symbols.representative import LENGTH, representative_extent
from unity.machine.dot_units import group_of
from unity.machine.target import Target

from ...blocks.nest import Nest
from ...roles.grouped_panels import GroupedProduct, grouped_product
from ...schedule.refs import BlockRef, LoopRef
from ...schedule.schedule import Schedule
from ...tactics.dot_tile import DotTile, dot_tile, rows_in_registers
from ...tactics.reshaping import reshape
from ...tactics.row_blocks import MOST, tiles_of_block
from ...tactics.tile_sizes import cheapest_size
from ..rule import Legal, Neighbourhood, by_steps, worth

COPIED = (32, 16, 8, 4, 2)
"""Elements of a row that are copied at once: as many as divide it."""


@dataclass(frozen=True, slots=True)
class LaneProduct(GroupedProduct):
    """A product whose columns are lanes.

    Attributes:
        lanes: Sums of a register.
        copied: Whether the left operand is copied before it is read.
    """

    lanes: int
    copied: bool

    @property
    def vectors(self) -> int:
        """Registers of a panel's columns."""
        return self.layout.width // self.lanes

    @property
    def all_panels(self) -> int:
        """How many panels there are, of all matrices."""
        outer = math.prod(representative_extent(a.extent) or LENGTH for a in self.layout.outer)
        return outer * self.panels


@dataclass(frozen=True, slots=True)
class LaneTiles:
    """The decisions.

    Attributes:
        rows: Rows of a register tile.
        tiles: Tiles of rows that a task takes.
        grain: Multiply-adds from which on threads share the tasks.
    """

    rows: int
    tiles: int
    grain: int


def _match(nest: Nest, target: Target) -> LaneProduct | None:
    """A product whose right operand lies in panels of groups, the target multiplying lanes."""
    found = grouped_product(nest, target, "lanes")
    if found is None or found.shaped.nest.reduction is None:
        return None
    lanes = target.vector_bits // found.shaped.nest.reduction.value.dtype.bits
    if found.layout.width % lanes:
        return None
    copied = not found.in_place(rows=False)
    return LaneProduct(nest, found.shaped, found.layout, found.unit, lanes, copied)


def _most_rows(product: LaneProduct, target: Target) -> int:
    row, room = product.layout.row, rows_in_registers(product.vectors, target)
    most = 1 if row is None else bounds(row.extent)[1]
    return room if most is None else max(1, min(room, most))


def _decide(product: LaneProduct, target: Target) -> LaneTiles:
    layout, rows, tiles = product.layout, 1, 1
    if layout.row is not None:
        rows = _most_rows(product, target)
        if product.rows is not None:
            rows = cheapest_size(layout.row.extent, rows, product.vectors, target.machine)
        tiles = tiles_of_block(layout.row.extent, rows, product.all_panels, target.threads)
        if product.rows is not None:
            tiles = min(tiles, max(1, -(-product.rows // rows)))
    return LaneTiles(rows, tiles, target.machine.grain("multiply_adds"))


def _legal(product: LaneProduct, _how: LaneTiles, target: Target) -> Neighbourhood:
    why = f"a row's sums take {product.vectors} of {target.vector_registers} registers"
    return {
        "rows": Legal(range(1, _most_rows(product, target) + 1), why),
        "tiles": Legal(range(1, MOST + 1), f"a task takes at most {MOST} tiles"),
        "grain": worth("multiply-adds"),
    }


def schedule_lanes(sch: Schedule, product: LaneProduct, how: LaneTiles, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    layout, nest, sums = product.layout, product.shaped.nest, product.written.name
    reshape(sch, product.written, product.shaped, result)
    assert nest.reduction is not None
    axes = [*nest.axes, *nest.reduction.axes]
    copy = sch.cache_operand(sums, 0, "local") if product.copied else None
    if layout.columns % layout.width:
        last = nest.axes[-1]
        sch.pad_einsum(sums, [layout.width if a is last else 1 for a in axes])
    at = dict(zip(axes, sch.get_loops(sums), strict=True))
    panel, vector, lane = sch.split(at[nest.axes[-1]], [None, product.vectors, product.lanes])
    tasks = [*(at[a] for a in layout.outer), panel]
    tiles: list[LoopRef] = []
    inner: list[LoopRef] = []
    if layout.row is not None:
        block, tile, row = sch.split(at[layout.row], [None, how.tiles, how.rows])
        tasks, tiles, inner = [*tasks, block], [tile], [row]
        if product.rows is None:
            sch.annotate(tile, TAIL, FITTING)
    step, place = at[layout.depth], [*tasks, *tiles][-1]
    sch.reorder(*tasks, *tiles, step, *inner, vector, lane)
    loops = DotTile(place, [step], inner, vector, lane, at[layout.place])
    dot_tile(sch, sums, result, loops, product.unit, product.lanes)
    if copy is not None:
        sch.compute_at(copy, place)
        sch.store_at(copy, 0, place)
        _copied(sch, product, copy)
    if _work(product) > how.grain:
        sch.parallel(sch.fuse(*tasks) if len(tasks) > 1 else tasks[0])


def _copied(sch: Schedule, product: LaneProduct, copy: BlockRef) -> None:
    """The rows of a tile copied, registers of columns at a time."""
    size = product.depth * group_of(product.layout.left.dtype)
    *_, row, depth, group = sch.get_loops(copy)
    if product.rows is None:
        sch.unroll(row)  # as rows of the tile are: what is left of them knows its size
    lanes = next(n for n in COPIED if size % n == 0)
    _, wide = sch.split(sch.fuse(depth, group), [None, lanes])
    sch.vectorize(wide)


def _work(product: LaneProduct) -> int:
    """Multiply-adds of all, where rows are as many as is usual if that is not known."""
    layout = product.layout
    steps = (layout.depth, *(() if layout.row is None else (layout.row,)))
    each = math.prod(representative_extent(a.extent) or LENGTH for a in steps)
    return each * product.all_panels * layout.width


LANE_DOTS = by_steps(
    "lane_dots",
    _match,
    _decide,
    _legal,
    nest=lambda product: product.written,
    steps=schedule_lanes,
)
