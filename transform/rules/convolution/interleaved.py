"""Products of narrow numbers with interleaved weights: tiles of pixels times blocks of outputs.

What a convolution over blocked channels is when dot products of groups add it up: pixels of a line
are the rows of a matrix tile, at an even distance in memory, the channels of a block its depth, and
a block of outputs its columns. Taps and blocks of inputs are steps. Sums leave the tiles through a
little memory, from which each pixel is finished and stored. As few tiles as possible, of as few
rows, are all full: the last of a line begins where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Cast, PrimVar, imm
from unity.machine.dot_units import SIDE, TILE_REGISTERS, DotUnit, dot_unit
from unity.machine.target import Target

from ...blocks.access import Reshaped, all_axes, as_written, collapse, may_trap
from ...blocks.extents import count_of, number, product
from ...blocks.nest import Axis, Nest
from ...roles.interleaved import InterleavedRoles, interleaved_roles
from ...schedule.index_map import IndexMap
from ...schedule.refs import LoopRef
from ...schedule.schedule import Schedule
from ...tactics.matrix_tiles import (
    InTiles,
    TileSum,
    in_tiles,
    instructed,
    most_tall,
    moved_to,
    whole_tiles,
)
from ...tactics.reshaping import reshape
from ..rule import EITHER, Legal, Neighbourhood, by_steps, worth

AT_ONCE = 2
"""Tiles of pixels that are done at once: as many as there are registers for beside two columns."""
WIDE = 2
"""Columns of tiles that are done at once, at most."""
BLOCKS = (SIDE, 2 * SIDE, 4 * SIDE)
"""Outputs of a block."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """A sum over groups of inputs, in tiles of a matrix.

    Attributes:
        written: The stage as it was written.
        shaped: It over the axes of its roles: the outer ones, blocks of outputs, lines, pixels,
            lanes, and what is summed over, groups last.
        roles: The roles of its axes.
        unit: What adds up.
    """

    written: Nest
    shaped: Reshaped
    roles: InterleavedRoles
    unit: DotUnit

    @property
    def wide(self) -> int:
        """Columns of tiles that are done at once: all of a block, or as many at a time."""
        return min(self.roles.lane.length // SIDE, WIDE)

    @property
    def width(self) -> int:
        """Pixels of a line."""
        return self.roles.pixel.length

    def across(self, how: PixelTiles) -> bool:
        """Whether tiles that are done at once are of other lines."""
        return how.across and how.lines == 1 and self.roles.line is not None

    def height(self, how: PixelTiles) -> int:
        """Rows of a tile."""
        if how.lines > 1:
            return (how.lines - 1) * self.roles.pitch + self.width
        return min(how.height, self.width)

    def tiles(self, how: PixelTiles) -> int:
        """Tiles in the direction of those that are done at once."""
        if self.across(how) or how.lines > 1:
            return -(-self.roles.lines // how.lines)
        return -(-self.width // self.height(how))

    @property
    def most_lines(self) -> int:
        """Lines that fit in one tile."""
        roles, lines = self.roles, self.roles.lines
        if roles.pitch < self.width:
            return 1
        return min(lines, max(1, (SIDE - self.width) // roles.pitch + 1))


@dataclass(frozen=True, slots=True)
class PixelTiles:
    """The decisions.

    Attributes:
        height: Pixels of a tile; of several lines, it has all of them.
        lines: Lines of a tile; pixels between them are computed in vain.
        tall: Tiles that are done at once, of a line or each of another.
        across: Whether those at once are of other lines.
        weights_last: Whether all blocks of outputs follow at each place of the image, so that it
            is walked through once; else all places at each block.
        ahead: Whether the next block's weights are asked for while these are in use.
        grain: Multiply-adds that a task has at least.
    """

    height: int
    lines: int
    tall: int
    across: bool
    weights_last: bool
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> Grouped | None:
    """A stage whose weights lie in groups that the target multiplies in tiles."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = collapse(as_written(nest))
    reduction = shaped.nest.reduction
    roles = None if reduction is None else interleaved_roles(shaped.nest, reduction)
    if reduction is None or roles is None:
        return None
    if roles.lane.length not in BLOCKS or roles.depth.length % SIDE:
        return None
    unit = dot_unit("tile", roles.image.dtype, roles.weight.dtype, reduction.value.dtype)
    if unit is None or not unit.on(target):
        return None
    match reduction.value:
        case Binary("mul", Cast(_, first)) if first is roles.image:
            return Grouped(nest, _in_order(shaped, roles), roles, unit)
        case _:
            return None  # the unit takes what its columns share first


def _in_order(shaped: Reshaped, roles: InterleavedRoles) -> Reshaped:
    """The stage over the same axes, those of a tile last."""
    reduction = shaped.nest.reduction
    assert reduction is not None
    inner = [a for a in (roles.block, roles.line, roles.pixel, roles.lane) if a is not None]
    axes = (*roles.outer, *inner)
    reduced = (*roles.steps, roles.depth, roles.group)
    place = dict(zip(all_axes(shaped.nest), shaped.places, strict=True))
    nest = replace(shaped.nest, axes=axes, reduction=replace(reduction, axes=reduced))
    return Reshaped(nest, tuple(place[a] for a in (*axes, *reduced)))


def _decide(found: Grouped, target: Target) -> PixelTiles:
    """As few tiles as possible, of as few rows."""
    roles, width, lines = found.roles, found.width, found.roles.lines
    together, parts = found.most_lines, 1
    if together == 1:
        parts = -(-width // SIDE)
        if parts > 1 and parts * lines % AT_ONCE:
            parts += 1
    height = -(-width // parts)
    parts = -(-width // height)
    return PixelTiles(
        height,
        together,
        min(parts * -(-lines // together), AT_ONCE),
        across=roles.line is not None and together == 1 and parts % AT_ONCE != 0,
        weights_last=not roles.heavy,
        ahead=roles.heavy and roles.block is not None,
        grain=target.machine.grain("tile_convolutions"),
    )


def _legal(found: Grouped, how: PixelTiles, _target: Target) -> Neighbourhood:
    roles = found.roles
    height = range(1, min(SIDE, found.width) + 1)
    one, none = "there is one block of outputs", roles.block is None
    at_once = f"there are {TILE_REGISTERS} tiles, {found.wide} for columns"
    several = EITHER
    if roles.line is None or how.lines > 1:
        several = Legal((how.across,), "tiles are of all lines")
    return {
        "height": Legal(height, f"a line has {found.width} pixels, a tile {SIDE} rows"),
        "lines": Legal(range(1, found.most_lines + 1), f"a tile has {SIDE} rows"),
        "tall": Legal(range(1, most_tall(found.wide) + 1), at_once),
        "across": several,
        "weights_last": Legal((how.weights_last,), one) if none else EITHER,
        "ahead": Legal((False,), one) if none else EITHER,
        "grain": worth("multiply-adds"),
    }


def schedule_pixels(sch: Schedule, found: Grouped, how: PixelTiles, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    assert sch.target is not None
    roles = found.roles
    reshape(sch, found.written, found.shaped, result)
    tiles = _in_tiles(sch, found, how)
    whole_tiles(sch, tiles, result)
    at = dict(zip(found.shaped.nest.axes, sch.get_loops(result), strict=True))
    turns, rows = _turns(sch, found, how, at)
    outer = [at[a] for a in roles.outer]
    block = [] if roles.block is None else [at[roles.block]]
    tasks = [*outer, *turns, *block] if how.weights_last else [*block, *outer, *turns]
    part, lane = sch.split(at[roles.lane], [None, SIDE * found.wide])
    sch.reorder(*tasks, part, *rows, lane)
    loops = moved_to(sch, tiles, part)
    if how.ahead and block and not how.weights_last:
        turn = dict(zip(_counts(found, how), turns, strict=True))
        following, threads = block[0], sch.target.threads
        lines = sch.prefetch(tiles.right, 0, following, loops.step, turn[max(turn)], threads)
        sch.unroll(sch.get_loops(lines)[-1])
    instructed(sch, tiles, loops)
    sch.vectorize(lane)
    _shared(sch, found, how, tasks)


def _in_tiles(sch: Schedule, found: Grouped, how: PixelTiles) -> InTiles:
    """The block that sums up, its pixels and lanes in tiles, and tiles in groups done at once."""
    sums, height = found.written.name, found.height(how)
    pixel = found.shaped.nest.axes.index(found.roles.pixel)
    tile = pixel
    if how.lines > 1:
        tile = pixel - 1
        sch.tile_lines(sums, tile, how.lines)
    else:
        sch.tile_axis(sums, pixel, height)
    sch.tile_axis(sums, tile + 2, SIDE)
    if found.tiles(how) % how.tall and found.tiles(how) > how.tall:
        sch.tile_axis(sums, tile - found.across(how), how.tall)
        tile += 1
    if found.across(how):
        _swap(sch, sums, tile - 1)
    return in_tiles(sch, TileSum(sums, found.unit, height, len(found.roles.steps)))


def _swap(sch: Schedule, sums: str, k: int) -> None:
    """An axis of a block that sums up changes places with the one behind it, also in its sums."""
    kinds = sch.axis_kinds(sums)
    order = [*range(k), k + 1, k, *range(k + 2, len(kinds))]
    axes = tuple(PrimVar(f"i{n}") for n in range(kinds.count("S")))
    sch.transform_layout(sums, 0, IndexMap(axes, tuple(axes[n] for n in order[: len(axes)])))
    sch.reorder_block_iter_var(sums, order)


def _turns(
    sch: Schedule, found: Grouped, how: PixelTiles, at: Mapping[Axis, LoopRef]
) -> tuple[list[LoopRef], list[LoopRef]]:
    """Loops over the tiles that are done at once, and those over the pixels of some of them."""
    roles, pixel = found.roles, at[found.roles.pixel]
    line = [] if roles.line is None else [at[roles.line]]
    if how.lines > 1:
        turn, tile, several = sch.split(line[0], [None, how.tall, how.lines])
        return [turn], [tile, several, pixel]
    if found.across(how):
        across, tile = sch.split(line[0], [None, how.tall])
        turn, row = sch.split(pixel, [None, found.height(how)])
        return [across, turn], [tile, row]
    turn, tile, row = sch.split(pixel, [None, how.tall, found.height(how)])
    return [*line, turn], [tile, row]


def _counts(found: Grouped, how: PixelTiles) -> list[int]:
    """How often loops over tiles run."""
    groups = -(-found.tiles(how) // how.tall)
    if how.lines > 1 or found.roles.line is None:
        return [groups]
    if found.across(how):
        return [groups, -(-found.width // found.height(how))]
    return [found.roles.lines, groups]


def _shared(sch: Schedule, found: Grouped, how: PixelTiles, tasks: Sequence[LoopRef]) -> None:
    """Loops around tiles shared among threads: a run of the image each, or blocks of weights.

    Where a stage walks through its image once, each thread has a run of it, the same one at every
    stage: it mostly reads what it wrote itself.
    """
    assert sch.target is not None
    target, roles, reduction = sch.target, found.roles, found.shaped.nest.reduction
    assert reduction is not None
    images = [a.extent for a in roles.outer]
    turns = [imm(n) for n in _counts(found, how)]
    blocks = [] if roles.block is None else [roles.block.extent]
    slow, fast = (images + turns, blocks) if how.weights_last else (blocks + images, turns)
    if count_of(slow, target.tasks) < target.tasks:
        slow, fast = [*slow, *fast], []
    pixels = how.tall * found.height(how) * roles.lane.length
    work = product([*(a.extent for a in reduction.axes), *fast, imm(pixels)])
    chunk = -(-how.grain // max(1, number(simplify(work)) or 1))
    points = count_of(slow)
    if how.weights_last:
        chunk = max(chunk, -(-points // target.threads))
    if not slow or (chunk >= points and all(number(n) is not None for n in slow)):
        return
    loop = sch.fuse(*tasks[: len(slow)]) if len(slow) > 1 else tasks[0]
    if chunk > 1:
        loop, _ = sch.split(loop, [None, chunk])
    sch.parallel(loop)


INTERLEAVED = by_steps(
    "interleaved",
    _match,
    _decide,
    _legal,
    nest=lambda found: found.written,
    steps=schedule_pixels,
)
