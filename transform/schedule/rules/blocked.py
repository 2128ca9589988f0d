"""Convolution and pooling over blocked channels: lanes are a block of outputs, rows are pixels.

What is added up is walked by loops that stay loops: a tap's pixels are not kept for the next tap,
so that all registers hold accumulators. A few steps of the innermost loop stand in a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from unity.ir.prim_expr import Binary, Intrinsic, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from ..access import collapsed, may_trap
from ..loops import number, sequence
from ..nest import Axis, Nest, Reduction
from ..padding import without_padding
from ..tile import Tile, Values, accumulate, fill, write_back
from ..wide_lanes import in_wide_lanes
from .blocked_parts import Part, cut, parts_of, tile_size
from .blocked_roles import Roles, length_of, roles_of
from .blocked_share import Coordinate, shared
from .result import with_init
from .taps import Ahead, Seen, Taps

LINE_BITS = 512
"""A line of the caches."""


def blocked(nest: Nest, target: Target) -> Stmt | None:
    """Applies where lanes lie innermost, just as many as a register holds, and pixels are known."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    bare = without_padding(collapsed(nest))
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
    if any(number(e.rest) is None for e in edges if e.axis in taps.inside):
        return None
    blocks = 1 if roles.block is None else length_of(roles.block)
    pixels = length_of(roles.pixel if roles.line is None else roles.line)
    columns, rows = tile_size(blocks, pixels, roles, target)
    parts = cut(parts_of(pixels, rows), roles, taps)
    stmts: list[Stmt] = []
    for column in parts_of(blocks, columns):
        tasks = column.count * math.prod(number(a.extent) or 99 for a in roles.slow + roles.fast)
        together = [parts] if tasks >= 4 * target.threads else [[row] for row in parts]
        for some in together:
            stmts.append(_tiles(nest, reduction, roles, taps, column, some, target))
    return sequence(stmts)


def _tiles(
    nest: Nest,
    reduction: Reduction,
    roles: Roles,
    taps: Taps,
    column: Part,
    rows: Sequence[Part],
    target: Target,
) -> Stmt:
    """All tiles of some blocks; rows of one size are shared among threads, others go in a row."""
    count = rows[0].count if len(rows) == 1 else 1
    column_axis = Axis(PrimVar("column"), imm(column.count))
    row_axis = Axis(PrimVar("row"), imm(count))
    here = (column_axis,) if column.count > 1 else ()
    across = (row_axis,) if count > 1 else ()
    inner = across + here + roles.fast if roles.columns_last else here + roles.fast + across
    tiles = sum(row.count for row in rows)

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
            ahead = _ahead(roles, column, block, now, turns * most, outer)
            return _micro_kernel(nest, reduction, tile, taps, row.seen, outer, ahead)

        if len(rows) == 1:
            return tile(rows[0], at[row_axis.var] if across else Coordinate(imm(0), imm(0), 1), 0)
        parts: list[Stmt] = []
        before = 0
        for row in rows:
            place = PrimVar("row")
            kernel = tile(row, Coordinate(place, place, None), before)
            parts.append(For(place, imm(0), imm(row.count), kernel))
            before += row.count
        return sequence(parts)

    steps = math.prod(length_of(a) for a in reduction.axes)
    pixels = sum(row.count * row.size for row in rows) // count * roles.width
    work = steps * column.size * pixels * length_of(roles.lane)
    # The last of the outer axes are lines of pixels, which the next stage goes along, too.
    lines = [a for a in reversed(roles.slow + roles.fast) if number(a.extent) != 1]
    preferred = (*lines[:1], *across, *here, *lines[1:])
    return shared(roles.slow + inner, preferred, work, target, body)


def _ahead(
    roles: Roles, column: Part, here: PrimExpr, turn: PrimExpr, turns: int, outer: Values
) -> Ahead | None:
    """Fetching the weights of the next blocks while these are in use, a part at each tile.

    Weights that come from memory once a call would be waited for at the first tile of each block.
    """
    weight = roles.weight
    if weight is None or roles.block is None or turns < 2 or column.count < 2:
        return None
    block, last = roles.block.var, roles.steps[-1].var
    following = Binary("min", add(here, imm(1)), imm(column.count - 1))
    line = max(1, LINE_BITS // (weight.dtype.bits * length_of(roles.lane)))

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
    first = add(imm(part.begin), multiply(at, imm(part.size)))
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


def _micro_kernel(
    nest: Nest,
    reduction: Reduction,
    tile: Tile,
    taps: Taps,
    seen: Seen,
    outer: Values,
    ahead: Ahead | None,
) -> Stmt:
    here = {**outer, nest.axes[-1].var: tile.lane}
    size = len(tile.rows) * len(tile.columns) * tile.lanes
    buffer = Buffer("acc", (imm(size),), reduction.value.dtype, scope="local")
    value = substitute_prim(reduction.value, here)

    def step(at: Values, some: frozenset[int]) -> Stmt:
        return accumulate(tile, reduction, substitute_prim(value, at), buffer, only=some)

    start = fill(tile, reduction.identity, buffer)
    finish = substitute_stmt(with_init(reduction, nest.finish), here)
    done = write_back(tile, reduction, finish, buffer)
    return Allocate(buffer, Seq((start, taps.loops(seen, outer, step, ahead), done)))


def _var(axis: Axis | None) -> PrimVar | None:
    return None if axis is None else axis.var
