"""Convolution over blocked channels of images of unknown size: pixels gathered for the tiles.

What the pixels of some register tiles read, zeros where there is none, is copied to a panel; then
all blocks of outputs pass over it. Tiles go along all pixels of all images, whatever the lines'
length, and none of them knows of borders or steps. The copy costs a few parts in a hundred where
there are many outputs, and lines that are no longer than a few tiles would cost far more.
Threads have pixels, or blocks of outputs where weights are more than what pixels are copied for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from unity.ir.marks import ASKED, TAIL
from unity.ir.prim_expr import Binary, Imm, Load, PrimVar, Select, imm
from unity.ir.symbols.representative import FRAMES, IMAGE, IMAGES, representative_extent
from unity.machine.target import Target

from ...blocks.access import (
    Reshaped,
    all_axes,
    as_written,
    collapse,
    depends,
    known_of,
    may_trap,
    place,
    step,
)
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path
from ...roles.blocked import BlockedRoles, blocked_roles
from ...roles.padding import Edge
from ...schedule.index_map import IndexMap
from ...schedule.refs import BlockRef, LoopRef
from ...schedule.schedule import Schedule
from ...tactics.reshaping import joining, reshape
from ...tactics.skip_padding import unpadded, without_padding
from ..rule import EITHER, Legal, Neighbourhood, by_steps
from ..stages import Stages, pair_of
from .parts import UNKNOWN, UnknownLine, legal_tiles, tile_cost, tile_size, whole_tile_size

MOST_TILES = 16
"""Register tiles of a panel, at most."""
MOST_STEPS = 8
"""Steps of the innermost loop in a row, at most."""
COPIES = 4
"""Vectors copied in a row, at most."""
COPIED = 2
"""Cycles that a vector of pixels takes to be copied."""


@dataclass(frozen=True, slots=True)
class Gathering:
    """What is gathered, and what it is multiplied by.

    Attributes:
        pixels: The axes that pixels have and weights do not, outermost first.
        block: The blocks of outputs.
        lane: The innermost axis.
        taps: The reduced axes that tell whether there is a pixel.
        depth: The other reduced axes, the innermost of the image last.
        image: The load of a pixel, and the choice of it or of zero around it.
        weight: The load of a weight.
    """

    pixels: tuple[Axis, ...]
    block: Axis
    lane: Axis
    taps: tuple[Axis, ...]
    depth: tuple[Axis, ...]
    image: Load | Select
    weight: Load

    @property
    def order(self) -> tuple[Axis, ...]:
        """The reduced axes as they go by, the innermost last."""
        return (*self.depth[:-1], *self.taps, self.depth[-1])


def gathering_of(nest: Nest, target: Target) -> Gathering | None:
    """What a stage gathers; None where it is no such sum, or all of its sizes are known."""
    reduction = nest.reduction
    assert reduction is not None
    match reduction.value:
        case Binary("mul", a, b) if reduction.op == "add" and nest.axes:
            *outer, lane = nest.axes
        case _:
            return None
    image, weight = (b, a) if depends(a, lane.var) else (a, b)
    if not isinstance(weight, Load) or depends(image, lane.var):
        return None
    if number(lane.extent) != target.vector_bits // reduction.value.dtype.bits:
        return None
    pixels = tuple(a for a in outer if depends(image, a.var))
    blocks = [a for a in outer if a not in pixels]
    if len(blocks) != 1 or any(depends(weight, a.var) for a in pixels):
        return None
    if all(number(a.extent) is not None for a in pixels[-2:]) or not number(blocks[0].extent):
        return None
    match image:
        case Select(condition, Load() as load, Imm(0 | 0.0)):
            asked = [condition]
        case Load() as load:
            asked = []
        case _:
            return None
    known = known_of(all_axes(nest))
    steps = [step(place(load, known), a.var) for a in reduction.axes]
    inner = [a for a, s in zip(reduction.axes, steps, strict=True) if s == 1]
    taps = tuple(a for a in reduction.axes if any(depends(c, a.var) for c in asked))
    depth = tuple(a for a in reduction.axes if a not in taps and a not in inner[-1:])
    if not inner or inner[-1] in taps or any(not number(a.extent) for a in reduction.axes):
        return None
    if inner[-1].length % lane.length or step(place(weight, known), lane.var) != 1:
        return None
    if any(step(place(s, known), lane.var) != 1 for s in nest.stores()):
        return None
    return Gathering(pixels, blocks[0], lane, taps, (*depth, inner[-1]), image, weight)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a stage is whose pixels are gathered.

    Attributes:
        written: The stage as it was written, reading through what pads.
        shaped: It with its axes joined.
        gathering: What is gathered.
        roles: The roles of its axes where nothing is.
        edges: Where there are elements; padding elsewhere.
    """

    written: Nest
    shaped: Reshaped
    gathering: Gathering
    roles: BlockedRoles
    edges: tuple[Edge, ...]

    @property
    def blocks(self) -> int:
        """Blocks of outputs."""
        return self.gathering.block.length

    @property
    def steps(self) -> int:
        """Steps of the innermost sum."""
        return self.gathering.order[-1].length

    @property
    def pixel_bytes(self) -> int:
        """Of what is gathered for a pixel."""
        each = math.prod(a.length for a in self.gathering.order)
        return each * self.gathering.image.dtype.bytes

    @property
    def pixels(self) -> int:
        """How many there are, as is usual."""
        return self.pixels_of(IMAGE)

    def pixels_of(self, image: int) -> int:
        """How many there are, of images of some height and width: one image if it is unknown."""
        images, *sizes = (a.extent for a in self.gathering.pixels)
        each = math.prod(representative_extent(e, image) or 1 for e in sizes)
        return (number(images) or 1) * each

    def pays(self, target: Target) -> bool:
        """Whether it costs less than tiles along lines, of which a border is done apart.

        An image one line high is a signal, as long as another has pixels.
        """
        found, machine = self.gathering, target.machine
        usual = IMAGE * IMAGE if number(found.pixels[-2].extent) == 1 else IMAGE
        columns, rows = tile_size(found.block.length, UNKNOWN, self.roles, target)
        line = UnknownLine(self.roles.pixel, self.roles, self.edges)
        groups = -(-found.block.length // columns)
        each = groups * tile_cost(columns, rows, machine) / rows + COPIED / found.lane.length
        by_line = groups * line.cycles(columns, rows, usual, target)
        return line.pixels(usual) * each * self._zeros() < by_line

    def _zeros(self) -> float:
        """What zeros before and behind the frames add to a sum: tiles along lines leave them out.

        There are few frames; of the many lines, those at a border are no matter.
        """
        taps, found = {a.var: a.length for a in self.roles.steps}, 1.0
        for axis in self.gathering.pixels[:-2]:
            outside = sum(taps[e.tap] - 1 for e in self.edges if e.axis is axis.var) / 2
            for tap in {e.tap for e in self.edges if e.axis is axis.var}:
                seen = (representative_extent(axis.extent, FRAMES) or 1) * taps[tap]
                found *= seen / max(1, seen - outside)
        return found


@dataclass(frozen=True, slots=True)
class GatheredTiles:
    """The decisions.

    Attributes:
        columns: Blocks of output channels in a register tile.
        rows: Pixels in a register tile.
        tiles: Register tiles of a panel.
        steps: Steps of the innermost sum in a row.
        ahead: Whether the next blocks' weights are fetched while these are in use.
        by_blocks: Whether each thread has blocks of outputs, copies all pixels, and reads a part
            of the weights; else it has pixels.
    """

    columns: int
    rows: int
    tiles: int
    steps: int
    ahead: bool
    by_blocks: bool


def _match(nest: Nest, target: Target) -> Gathered | None:
    """A stage of an unknown number of pixels in short lines."""
    return _gathered(nest, target)


def _match_unpadded(stages: Stages, target: Target) -> Gathered | None:
    """The same, read through the stage before that pads its image."""
    pair = pair_of(stages)
    joined = None if pair is None else unpadded(*pair)
    return None if joined is None else _gathered(joined, target)


def _gathered(nest: Nest, target: Target) -> Gathered | None:
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    shaped = collapse(as_written(nest))
    padded = shaped.nest
    bare, gathering = without_padding(padded), gathering_of(padded, target)
    if bare is None or gathering is None or bare[0].reduction is None:
        return None
    inside, edges = bare
    assert inside.reduction is not None
    roles = blocked_roles(inside, inside.reduction, edges, target)
    if roles is None or any(e.axis in (roles.lane.var, gathering.block.var) for e in edges):
        return None
    if number(roles.pixel.extent) is not None:
        return None
    found = Gathered(nest, shaped, gathering, roles, edges)
    return found if found.pays(target) else None


def _decide(found: Gathered, target: Target) -> GatheredTiles:
    columns, rows = whole_tile_size(found.blocks, found.pixels, target)
    steps = next(n for n in range(min(MOST_STEPS, found.steps), 0, -1) if found.steps % n == 0)
    ahead = found.blocks > columns
    ways = [
        GatheredTiles(columns, rows, _tiles(found, rows, target, by), steps, ahead, by)
        for by in (False, True)[: 1 + _may_share_blocks(found, columns, target)]
    ]
    return min(ways, key=lambda way: math.prod(_cycles(found, way, target, i) for i in IMAGES))


def _tiles(found: Gathered, rows: int, target: Target, by_blocks: bool) -> int:
    """Tiles of a panel: half of the second cache, and panels of like size for all threads."""
    most = max(1, min(MOST_TILES, target.l2_kept // (rows * found.pixel_bytes)))
    tiles = max(1, -(-found.pixels // (rows * (1 if by_blocks else target.threads))))
    return -(-tiles // -(-tiles // most))


def _may_share_blocks(found: Gathered, columns: int, target: Target) -> bool:
    return 1 < target.threads <= found.blocks // columns


def _cycles(found: Gathered, how: GatheredTiles, target: Target, image: int) -> float:
    """Cycles of the thread that has most to do, of an image of some height and width."""
    machine, lanes = target.machine, found.gathering.lane.length
    tiles, groups = -(-found.pixels_of(image) // how.rows), -(-found.blocks // how.columns)
    if how.by_blocks:
        groups = -(-groups // target.threads)
    else:
        tiles = -(-tiles // target.threads)
    steps = found.pixel_bytes // found.gathering.image.dtype.bytes
    copy = COPIED * tiles * how.rows * steps / lanes
    weights = groups * how.columns * lanes * found.pixel_bytes
    passes = -(-tiles // how.tiles) if weights > target.l2_kept else 1
    waited = machine.exposed_share * passes * weights / machine.memory_bytes_per_cycle
    return tiles * groups * steps * tile_cost(how.columns, how.rows, machine) + copy + waited


def _legal(found: Gathered, how: GatheredTiles, target: Target) -> Neighbourhood:
    sizes = legal_tiles(found.blocks, UNKNOWN, found.roles, target)
    registers = f"{target.vector_registers} registers hold the sums and what they are made of"
    columns = sorted({c for c, r in sizes if r == how.rows} | {how.columns})
    rows = sorted({r for c, r in sizes if c == how.columns} | {how.rows})
    steps = [n for n in range(1, MOST_STEPS + 1) if found.steps % n == 0]
    return {
        "columns": Legal(columns, registers),
        "rows": Legal(rows, registers),
        "tiles": Legal(range(1, MOST_TILES + 1), f"a panel has {MOST_TILES} tiles at most"),
        "steps": Legal(steps, f"of {found.steps} steps, {MOST_STEPS} at most"),
        "ahead": EITHER
        if found.blocks > how.columns
        else Legal((False,), "no block of outputs is left to be next"),
        "by_blocks": EITHER
        if _may_share_blocks(found, how.columns, target)
        else Legal((False,), f"there are {target.threads} threads, and too few blocks for them"),
    }


def schedule_gathered(sch: Schedule, found: Gathered, how: GatheredTiles, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    assert sch.target is not None
    sums, gathering = found.written.name, found.gathering
    _join_pixels(sch, found, result)
    copy = sch.cache_operand(sums, int(_is_second(found)), "global")
    padded = sch.pad_einsum(sums, [how.rows, *(1 for _ in range(2 + len(gathering.order)))])
    if padded:  # not tiles of one row, of which none is a part
        sch.compute_inline(copy)
        (copy,) = padded
    pixel, block, lane, *around, last = sch.get_loops(sums)
    tile, row = sch.split(pixel, [None, how.rows])
    group, column = sch.split(block, [None, how.columns])
    step, several = sch.split(last, [None, how.steps])
    inner = [row, column] if how.rows >= how.columns else [column, row]
    sch.reorder(group, tile, *around, step, several, *inner, lane)
    sch.reverse_compute_at(result, tile)
    sch.store_at(sums, 0, tile)
    thread: list[LoopRef] = []
    if how.by_blocks:
        *thread, group = sch.split(group, [sch.target.threads, None])
    elif sch.target.threads > 1:
        *thread, tile = sch.split(tile, [sch.target.threads, None])
    panel, tile = sch.split(tile, [None, how.tiles])
    sch.reorder(*thread, panel, group, tile)
    choices = (bool(padded), bool(found.edges))  # where there are no pixels, where there is padding
    _gather(sch, found, how, (copy, panel), sum(choices))
    sch.annotate(tile, TAIL, ASKED)
    if how.ahead:
        _, reads = block_path(sch.func, sums)
        weight = gathering.weight.buffer
        index = next(k for k, r in enumerate(reads.reads) if r.buffer is weight)
        small = max(1, min(how.tiles, found.pixels_of(IMAGES[1]) // how.rows))
        lines = sch.prefetch(sums, index, group, step, tile, all_share=True, sharers=small)
        sch.unroll(sch.get_loops(lines)[-1])
    init = sch.decompose_reduction(sums, (*around, step)[0])
    for vector in (sch.get_loops(init)[-1], sch.get_loops(result)[-1], lane):
        sch.vectorize(vector)
    for loop in (several, *inner):
        sch.unroll(loop)
    if thread:
        sch.parallel(*thread)


def _is_second(found: Gathered) -> bool:
    """Whether pixels are the second factor."""
    reduction = found.shaped.nest.reduction
    assert reduction is not None
    match reduction.value:
        case Binary("mul", first, _):
            return depends(first, found.gathering.lane.var)
        case _:
            raise AssertionError


def _join_pixels(sch: Schedule, found: Gathered, result: str) -> None:
    """The axes as they are to be: all pixels, blocks of outputs, lanes, and the sum's in order."""
    gathering, nest = found.gathering, found.shaped.nest
    reshape(sch, found.written, found.shaped, result)
    axes = all_axes(nest)
    at = {a.var: k for k, a in enumerate(axes)}
    points = [[at[a.var] for a in gathering.pixels]]
    points += [[at[a.var]] for a in (gathering.block, gathering.lane)]
    every = joining(axes, [*points, *([at[a.var]] for a in gathering.order)])
    spatial = joining(nest.axes, points)
    sch.transform_layout(found.written.name, 0, spatial)
    sch.transform_block_layout(found.written.name, every)
    sch.transform_block_layout(result, spatial)


def _gather(
    sch: Schedule,
    found: Gathered,
    how: GatheredTiles,
    copied: tuple[BlockRef, LoopRef],
    choices: int,
) -> None:
    """The pixels of a panel copied, tile by tile as they are read.

    Args:
        sch: The schedule.
        found: The stage.
        how: The tiles.
        copied: The block that copies, and the loop over panels.
        choices: How many conditions say whether it copies a pixel, or zero.
    """
    gathering, (copy, panel) = found.gathering, copied
    sch.compute_at(copy, panel)
    sch.store_at(copy, 0, panel)
    pixel, *depth, last = (PrimVar(f"i{k}") for k in range(len(gathering.order) + 1))
    tile, row = Binary("floordiv", pixel, imm(how.rows)), Binary("floormod", pixel, imm(how.rows))
    sch.transform_layout(copy, 0, IndexMap((pixel, *depth, last), (tile, *depth, row, last)))
    loops = sch.get_loops(copy)
    loops = loops[loops.index(panel) + 1 :]
    at = dict(zip(gathering.order, loops[1:], strict=True))
    some, lane = sch.split(at.pop(gathering.order[-1]), [None, gathering.lane.length])
    taps = [at.pop(a) for a in gathering.taps]
    within, lengths = [*at.values(), some], [a.length for a in at]
    lengths.append(gathering.order[-1].length // gathering.lane.length)
    k = max((k for k, n in enumerate(lengths) if n > 1), default=0)
    several = next(n for n in range(COPIES, 0, -1) if lengths[k] % n == 0)
    within[k : k + 1] = sch.split(within[k], [None, several])
    sch.reorder(loops[0], *taps, *within, lane)
    ways = [within[0]]
    for _ in range(choices):
        ways = [*sch.unswitch(ways[0]), *ways[1:]]
    for loop in ways:
        (block,) = sch.get_child_blocks(loop)
        here = sch.get_loops(block)
        sch.vectorize(here[-1])
        sch.unroll(here[k - len(within)])


GATHERED = by_steps(
    "gathered", _match, _decide, _legal, nest=lambda found: found.written, steps=schedule_gathered
)
GATHERED_UNPADDED = by_steps(
    "gathered_unpadded",
    _match_unpadded,
    _decide,
    _legal,
    nest=lambda found: found.written,
    steps=schedule_gathered,
    count=2,
)
