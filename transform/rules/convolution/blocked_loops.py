"""Convolution and pooling over blocked channels: lines of unknown length, narrow least numbers.

Lanes are a block of outputs, rows are pixels; `blocked` has the same tiles by steps of a schedule.

What is added up is walked by loops that stay loops: a tap's pixels are not kept for the next tap,
so that all registers hold accumulators. A few steps of the innermost loop stand in a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Intrinsic, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, Seq, Stmt
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.target import Target

from ...blocks.access import collapsed, may_trap
from ...blocks.extents import number
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.blocked import Roles, length_of, roles_of
from ...roles.padding import unpadded, without_padding
from ...tactics.register_tile import Tile, Values, accumulate, fill, write_back
from ...tactics.result import with_init
from ...tactics.wide_lanes import in_wide_lanes
from ..rule import EITHER, Legal, Neighbourhood, Rule, worth
from ..stages import Stages, pair_of
from .gathered import Gathering, gathered, gathering_of, pays
from .parts import UNKNOWN, Part, cut, legal_tiles, parts_of, tile_size, unknown_parts
from .share import Coordinate, shared
from .taps import Ahead, Seen, Taps


@dataclass(frozen=True, slots=True)
class Blocked:
    """What a blocked stage is.

    Attributes:
        padded: The stage as it reads what is padded.
        nest: The stage without padding, over whole registers.
        reduction: Its reduction.
        roles: The roles of its axes.
        taps: What it sums over, and where pixels see it.
        gathering: How the pixels of unknown lines may be gathered; None where that can't be.
        stages: How many stages that are.
    """

    padded: Nest
    nest: Nest
    reduction: Reduction
    roles: Roles
    taps: Taps
    gathering: Gathering | None
    stages: int

    @property
    def blocks(self) -> int:
        """Blocks of output channels."""
        return 1 if self.roles.block is None else length_of(self.roles.block)

    @property
    def pixels(self) -> int | None:
        """Pixels of a line, or lines where a tile has whole ones."""
        roles = self.roles
        return number((roles.pixel if roles.line is None else roles.line).extent)


@dataclass(frozen=True, slots=True)
class BlockedTiles:
    """The decisions.

    Attributes:
        columns: Blocks of output channels in a register tile.
        rows: Pixels in a register tile, or lines of them where lines are short.
        gather: Whether pixels of several lines are gathered for a tile.
        ahead: Whether the next blocks' weights are fetched while these are in use.
        grain: Multiply-adds that a task has at least.
    """

    columns: int
    rows: int
    gather: bool
    ahead: bool
    grain: int


def _match(nest: Nest, target: Target) -> Blocked | None:
    """A stage whose lanes lie innermost, just as many as a register holds; pixels are known."""
    return _blocked(nest, 1, target)


def _match_unpadded(stages: Stages, target: Target) -> Blocked | None:
    """The same, read through the stage before that pads its image."""
    pair = pair_of(stages)
    joined = None if pair is None else unpadded(*pair)
    return None if joined is None else _blocked(joined, 2, target)


def _blocked(nest: Nest, stages: int, target: Target) -> Blocked | None:
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    padded = collapsed(nest)
    bare = without_padding(padded)
    if bare is None:
        return None
    nest, edges = bare
    nest = in_wide_lanes(nest, target)
    reduction = nest.reduction
    assert reduction is not None
    roles = roles_of(nest, reduction, edges, target)
    if roles is None or any(e.axis in (roles.lane.var, _var(roles.block)) for e in edges):
        return None
    taps = Taps(roles.steps, edges, frozenset(a.var for a in roles.inside), roles.most)
    found = Blocked(padded, nest, reduction, roles, taps, None, stages)
    if found.pixels is None:
        return replace(found, gathering=gathering_of(padded, target))
    if any(number(e.rest) is None for e in edges if e.axis in taps.inside):
        return None
    return found


def _decide(found: Blocked, target: Target) -> BlockedTiles:
    columns, rows = tile_size(found.blocks, found.pixels or UNKNOWN, found.roles, target)
    gather = False
    if found.gathering is not None:
        parts = unknown_parts(found.roles, rows, found.taps.edges)
        gather = pays(found.gathering, parts, columns, rows, target.machine)
    grain = target.machine.grain("multiply_adds")
    return BlockedTiles(columns, rows, gather, ahead=True, grain=grain)


def _legal(found: Blocked, decisions: BlockedTiles, target: Target) -> Neighbourhood:
    sizes = legal_tiles(found.blocks, found.pixels or UNKNOWN, found.roles, target)
    registers = f"{target.vector_registers} registers hold the sums and what they are made of"
    columns = sorted({c for c, r in sizes if r == decisions.rows} | {decisions.columns})
    rows = sorted({r for c, r in sizes if c == decisions.columns} | {decisions.rows})
    never = Legal((False,), "only images of unknown width are gathered")
    return {
        "columns": Legal(columns, registers),
        "rows": Legal(rows, registers),
        "gather": never if found.gathering is None else EITHER,
        "ahead": EITHER,
        "grain": worth("multiply-adds"),
    }


def _write(found: Blocked, how: BlockedTiles, target: Target) -> Stmt:
    roles, taps, pixels = found.roles, found.taps, found.pixels
    if how.gather and found.gathering is not None:
        return gathered(found.padded, found.gathering, (how.columns, how.rows), target)
    if pixels is None:
        parts = unknown_parts(roles, how.rows, taps.edges)
        longest = next(i for i, part in enumerate(parts) if part.size == how.rows)
        apart = [[parts[longest]], parts[:longest] + parts[longest + 1 :]]
    else:
        parts = cut(parts_of(pixels, how.rows), roles, taps)
        apart = [[part] for part in parts]
    stmts: list[Stmt] = []
    for column in parts_of(found.blocks, how.columns):
        outer = math.prod(number(a.extent) or 99 for a in roles.slow + roles.fast)
        together = [parts] if (column.tiles or 0) * outer >= 4 * target.threads else apart
        for some in filter(None, together):
            stmts.append(_tiles(found, how, column, some, target))
    return sequence(stmts)


BLOCKED_LOOPS = Rule("blocked_loops", _match, _decide, _legal, _write)
UNPADDED_LOOPS = Rule(
    "unpadded_loops", _match_unpadded, _decide, _legal, _write, count=lambda found: found.stages
)


def _tiles(
    found: Blocked, how: BlockedTiles, column: Part, rows: Sequence[Part], target: Target
) -> Stmt:
    """All tiles of some blocks; rows of one size are shared among threads, others go in a row."""
    nest, reduction, roles, taps = found.nest, found.reduction, found.roles, found.taps
    row_axis = Axis(PrimVar("row"), rows[0].count if len(rows) == 1 else imm(1))
    column_axis = Axis(PrimVar("column"), column.count)
    here = () if column.tiles == 1 else (column_axis,)
    across = () if number(row_axis.extent) == 1 else (row_axis,)
    inner = across + here + roles.fast if roles.columns_last else here + roles.fast + across
    tiles = sum(row.tiles or 0 for row in rows)

    def body(at: Mapping[PrimVar, Coordinate]) -> Stmt:
        outer: Values = {a.var: at[a.var].value for a in roles.slow + roles.fast}
        block = at[column_axis.var].value if here else imm(0)
        turn: PrimExpr = imm(0)
        turns = 1
        for axis in roles.fast:
            most = at[axis.var].turns
            assert most is not None
            turn, turns = add(multiply(turn, imm(most)), at[axis.var].turn), turns * most

        def tile(row: Part, place: Coordinate, before: int) -> Stmt:
            tile = _tile(roles, _values(column, block), _values(row, place.value))
            most = place.turns or tiles
            now = add(add(multiply(turn, imm(most)), place.turn), imm(before))
            ahead = None
            if how.ahead:
                ahead = _ahead(roles, column, block, now, turns * most, outer)
            return _micro_kernel(
                nest, reduction, tile, _seeing(row, tile, roles, taps), outer, ahead
            )

        if len(rows) == 1:
            return tile(rows[0], at[row_axis.var] if across else Coordinate(imm(0), imm(0), 1), 0)
        parts: list[Stmt] = []
        before = 0
        for row in rows:
            place = PrimVar("row")
            kernel = tile(row, Coordinate(place, place, None), before)
            parts.append(For(place, imm(0), row.count, kernel))
            before += row.tiles or 0
        return sequence(parts)

    steps = math.prod(length_of(a) for a in reduction.axes)
    if across:
        pixels = rows[0].size * roles.width
    elif number(roles.pixel.extent) is None:
        pixels = UNKNOWN
    else:
        pixels = sum((row.tiles or 0) * row.size for row in rows) * roles.width
    work = steps * column.size * pixels * length_of(roles.lane)
    # The last of the outer axes are lines of pixels, which the next stage goes along, too.
    lines = [a for a in reversed(roles.slow + roles.fast) if number(a.extent) != 1]
    preferred = (*lines[:1], *across, *here, *lines[1:])
    # The first axis counts images, of which there may be a single one.
    long = [a for a in (*lines[:1], *across) if number(a.extent) is None and a is not nest.axes[0]]
    return shared(roles.slow + inner, preferred, work, how.grain, target, body, long)


def _ahead(
    roles: Roles, column: Part, here: PrimExpr, turn: PrimExpr, turns: int, outer: Values
) -> Ahead | None:
    """Fetching the weights of the next blocks while these are in use, a part at each tile.

    Weights that come from memory once a call would be waited for at the first tile of each block.
    """
    weight = roles.weight
    if weight is None or roles.block is None or turns < 2 or (column.tiles or 0) < 2:
        return None
    block, last = roles.block.var, roles.steps[-1].var
    following = Binary("min", add(here, imm(1)), Binary("sub", column.count, imm(1)))
    line = max(1, 8 * LINE // (weight.dtype.bits * length_of(roles.lane)))

    def ahead(taps: Values, count: int) -> Stmt:
        lines = -(-count // line)
        each = -(-lines // turns)
        fetches: list[Stmt] = []
        for i in range(each):
            nth = Binary("floormod", add(multiply(turn, imm(each)), imm(i)), imm(lines))
            place = add(taps[last], multiply(nth, imm(line)))
            for value in _values(column, following):
                at = {**outer, **taps, block: value, last: place, roles.lane.var: imm(0)}
                fetched = substitute_prim(weight, at)
                fetches.append(Evaluate(Intrinsic("prefetch", (fetched,), weight.dtype)))
        return sequence(fetches)

    return ahead


def _values(part: Part, at: PrimExpr) -> tuple[PrimExpr, ...]:
    first = add(part.begin, multiply(at, imm(part.size)))
    return tuple(add(first, imm(i)) for i in range(part.size))


def _tile(roles: Roles, blocks: tuple[PrimExpr, ...], rows: tuple[PrimExpr, ...]) -> Tile:
    whole = [imm(i) for i in range(roles.width)]
    # The tile's rows are loaded first and stay: weights, so that pixels come one at a time.
    return Tile(
        row=None if roles.block is None else roles.block.var,
        rows=blocks,
        column=tuple(a.var for a in roles.inside),
        columns=tuple((r,) if roles.line is None else (r, p) for r in rows for p in whole),
        lane=PrimVar("lane"),
        lanes=length_of(roles.lane),
    )


@dataclass(frozen=True, slots=True)
class Seeing:
    """What a tile sees of the taps.

    Attributes:
        taps: The taps, with the edges that are not certain.
        seen: Which pixels see what.
        at: The pixel, where loops over taps depend on it.
    """

    taps: Taps
    seen: Seen
    at: Values


def _seeing(part: Part, tile: Tile, roles: Roles, taps: Taps) -> Seeing:
    if part.seen is None:
        ((pixel,),) = tile.columns
        at_border = replace(taps, inside=frozenset())
        return Seeing(at_border, frozenset({0}), {roles.pixel.var: pixel})
    if number(roles.pixel.extent) is None:  # parts are such that all is seen
        outside = tuple(e for e in taps.edges if e.axis not in taps.inside)
        taps = replace(taps, edges=outside)
    return Seeing(taps, part.seen, {})


def _micro_kernel(
    nest: Nest,
    reduction: Reduction,
    tile: Tile,
    seeing: Seeing,
    outer: Values,
    ahead: Ahead | None,
) -> Stmt:
    outer = {**outer, **seeing.at}
    here = {**outer, nest.axes[-1].var: tile.lane}
    size = len(tile.rows) * len(tile.columns) * tile.lanes
    buffer = Buffer("acc", (imm(size),), reduction.value.dtype, scope="local")
    value = substitute_prim(reduction.value, here)

    def step(at: Values, some: frozenset[int]) -> Stmt:
        return accumulate(tile, reduction, substitute_prim(value, at), buffer, only=some)

    start = fill(tile, reduction.identity, buffer)
    finish = substitute_stmt(with_init(reduction, nest.finish), here)
    done = write_back(tile, reduction, finish, buffer)
    steps = seeing.taps.loops(seeing.seen, outer, step, ahead)
    return Allocate(buffer, Seq((start, steps, done)))


def _var(axis: Axis | None) -> PrimVar | None:
    return None if axis is None else axis.var
