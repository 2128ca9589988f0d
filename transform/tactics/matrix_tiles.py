"""Sums on matrix tiles: steps that put a block that sums up in tile registers, an instruction each.

Each step of the sum loads a tile of either operand for each row and column of tiles, and adds each
product as soon as both are there. The registers leave their sums in a little memory at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.marks import TILES
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.regions import add
from unity.ir.visit import stmt_loads
from unity.machine.dot_units import SIDE, TILE_REGISTERS, DotUnit

from ..blocks.tree import block_path
from ..schedule.dots import tile_step
from ..schedule.index_map import IndexMap
from ..schedule.refs import BlockRef, LoopRef
from ..schedule.schedule import Schedule


def registers(tall: int, wide: int) -> int:
    """Tile registers that so many rows and columns of tiles need."""
    return tall * wide + tall + wide


def most_tall(wide: int) -> int:
    """Rows of tiles that there are registers for, beside so many columns of them."""
    return (TILE_REGISTERS - wide) // (wide + 1)


@dataclass(frozen=True, slots=True)
class TileSum:
    """A block that sums up, of which tiles are axes of their own, and the memory that it leaves.

    Attributes:
        sums: The block. Its axes end with rows of a tile, columns of tiles, those of a tile, the
            reduced ones, groups of depth, and places in a group.
        unit: What adds up.
        height: Rows of a tile.
        steps: Reduced axes before the groups of depth.
    """

    sums: str
    unit: DotUnit
    height: int
    steps: int = 0

    @property
    def row(self) -> int:
        """The place of the rows among the axes, from the end."""
        return -5 - self.steps


@dataclass(frozen=True, slots=True)
class InTiles:
    """The blocks of sums in tiles.

    Attributes:
        of: What is summed up.
        kept: Copies the sums to memory.
        left: Copies tiles of the left operand to registers.
        right: The same of the right one.
        copy: Copies the left operand to memory first, if it is to.
    """

    of: TileSum
    kept: BlockRef
    left: BlockRef
    right: BlockRef
    copy: BlockRef | None


def in_tiles(sch: Schedule, of: TileSum, copy: BlockRef | None = None) -> InTiles:
    """A block that sums up reads tiles and makes tiles, before any loop is changed.

    Args:
        sch: The schedule.
        of: What is summed up.
        copy: What computed the left operand before, along the same axes, if anything did.
    """
    kept = sch.cache_write(of.sums, 0, TILES)
    left, right = (sch.cache_operand(of.sums, k, TILES) for k in (0, 1))
    return InTiles(of, kept, left, right, copy)


def whole_tiles(sch: Schedule, tiles: InTiles, result: str) -> None:
    """What takes the sums is said to take all of a tile: no less of it is computed."""
    _, kept = block_path(sch.func, tiles.kept.name)
    _, block = block_path(sch.func, result)
    buffer = kept.writes[0].buffer
    region = next(r for r in block.reads if r.buffer is buffer)
    last = len(buffer.shape) - 1
    ends: list[PrimExpr] = []
    for k, (r, size) in enumerate(zip(region.ranges, buffer.shape, strict=True)):
        whole = k in (last - 2, last)
        ends += [imm(0), size] if whole else [r.begin, add(r.begin, r.extent)]
    axes = tuple(a.var for a in block.axes)
    sch.annotate_buffer_access(result, buffer.name, "read", IndexMap(axes, tuple(ends)))


@dataclass(frozen=True, slots=True)
class TileLoops:
    """Where a block of tiles is computed.

    Attributes:
        step: The innermost loop over steps.
        begun: The block that begins the sums.
    """

    step: LoopRef
    begun: BlockRef


def moved_to(sch: Schedule, tiles: InTiles, at: LoopRef) -> TileLoops:
    """A block of tiles moves to a loop of what reads its sums, and operands to its steps.

    Instructions are made by `instructed`: what is read may be copied or asked for ahead before.
    """
    of, sums = tiles.of, tiles.of.sums
    for block in (tiles.kept, sums):
        sch.compute_at(block, at)
        sch.store_at(block, 0, at)
    loops = sch.get_loops(sums)
    tile, (row, wide, column) = loops[of.row - 1], loops[of.row : of.row + 3]
    *steps, depth, place = loops[of.row + 3 :]
    step, groups = sch.split(depth, [None, SIDE])
    sch.reorder(*steps, step, tile, wide, row, column, groups, place)
    begun = sch.decompose_reduction(sums, [*steps, step][0])
    sch.compute_at(tiles.left, tile)
    sch.compute_at(tiles.right, wide, tile)
    for block in (tiles.left, tiles.right):
        sch.store_at(block, 0, step)
    return TileLoops(step, begun)


def copied_at(sch: Schedule, tiles: InTiles, at: LoopRef) -> None:
    """The copy of the left operand is made in a loop around the block, lines of tiles at a time."""
    assert tiles.copy is not None
    sch.compute_at(tiles.copy, at)
    sch.store_at(tiles.copy, 0, at)
    *_, depth, place = sch.get_loops(tiles.copy)
    _, groups = sch.split(depth, [None, SIDE])
    sch.vectorize(sch.fuse(groups, place))


def instructed(sch: Schedule, tiles: InTiles, loops: TileLoops) -> None:
    """Tiles by instructions, and the loops over them written out."""
    _lay_out(sch, tiles)
    unit, height = tiles.of.unit, tiles.of.height
    zero = sch.get_loops(loops.begun)[-4:]
    dot = sch.get_loops(tiles.of.sums)[-6:]
    *around, groups, _ = sch.get_loops(tiles.left)
    if height == 1 and len(sch.axis_kinds(tiles.left)) == 2:  # it does not move along its one row
        row = sch.add_unit_loop(groups)
    else:
        row, *steps = around[-1 - tiles.of.steps :]
        sch.reorder(*steps, row)
    *around, depth, _ = sch.get_loops(tiles.right)
    columns, *steps = around[-1 - tiles.of.steps :]
    sch.reorder(*steps, depth, columns)
    tile, rows, wide, columns = sch.get_loops(tiles.kept)[-4:]
    sch.reorder(tile, wide, rows, columns)
    begins = {"zero": zero[2], "left": row, "right": depth, "dot": dot[2], "store": rows}
    for step, loop in begins.items():
        sch.tensorize(loop, tile_step(unit, step, height))
    for loop in (*zero[:2], *dot[:2], tile, wide):
        sch.unroll(loop)


def _lay_out(sch: Schedule, tiles: InTiles) -> None:
    """Every tile lies by itself."""
    of = tiles.of
    _, block = block_path(sch.func, of.sums)
    axes = [a.var for a in block.axes]
    row, column, depth, place = (axes[k] for k in (of.row, of.row + 2, -2, -1))
    at = {x.buffer.name: x.indices for x in stmt_loads(block.body)}
    (sums,) = block.writes
    sch.transform_layout(of.sums, 0, _tiled([r.begin for r in sums.ranges], [row, column], None))
    left, right = at[tiles.left.name], at[tiles.right.name]
    for copy in (tiles.left, *(() if tiles.copy is None else (tiles.copy,))):
        sch.transform_layout(copy, 0, _tiled(left, [row, depth, place], depth))
    sch.transform_layout(tiles.right, 0, _tiled(right, [depth, column, place], depth))


def _tiled(indices: Sequence[PrimExpr], ends: Sequence[PrimVar], depth: PrimVar | None) -> IndexMap:
    """A map that puts a tile's dimensions last, the others before them in their order.

    Args:
        indices: What indexes each dimension.
        ends: The axes of a tile.
        depth: That over groups of depth, of which a tile has 16.
    """
    inputs = tuple(PrimVar(f"i{k}") for k in range(len(indices)))
    at = {index: x for index, x in zip(indices, inputs, strict=True) if isinstance(index, PrimVar)}
    outside: list[PrimExpr] = []
    for index, x in zip(indices, inputs, strict=True):
        if index is depth:
            outside.append(Binary("floordiv", x, imm(SIDE)))
        elif not any(index is end for end in ends):
            outside.append(x)
    inside: list[PrimExpr] = []
    for end in ends:
        if end in at:
            place = at[end]
            inside.append(Binary("floormod", place, imm(SIDE)) if end is depth else place)
    return IndexMap(inputs, (*outside, *inside))
