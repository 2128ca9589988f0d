"""Convolution and pooling over blocked channels: lanes are a block of outputs, rows are pixels.

What is added up is walked by loops that stay loops: a tap's pixels are not kept for the next tap,
so that all registers hold accumulators. A few steps of the innermost loop stand in a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith.polynomial import Poly
from unity.ir.prim_expr import PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from ..access import all_axes, collapsed, known_of, may_trap, mentions, place, step
from ..loops import number, parallel, product, sequence
from ..nest import Axis, Nest, Reduction
from ..tile import Tile, Values, accumulate, fill, loops, write_back
from .contraction import GRAIN, with_init

UNROLL = 4
"""Steps of the innermost loop in a row, at most."""
UNROLL_HEAVY = 8
"""The same where weights are more than what they are applied to, and come from far."""
MOST_PIXELS = 14
"""Pixels of a tile, at most."""


@dataclass(frozen=True, slots=True)
class _Roles:
    """Which axis is which.

    Attributes:
        lane: The innermost one, as long as a register.
        block: Moves through the weights alone: blocks of outputs, if pixels have them in common.
        pixel: Moves through the other operand alone.
        line: Another such axis, where one line of pixels does not fill a tile.
        slow: The others that go before the blocks.
        fast: Those that go after them.
        most: Steps of the innermost loop that may stand in a row: none that read a pixel which
            another one reads too, for these would be kept in registers.
    """

    lane: Axis
    block: Axis | None
    pixel: Axis
    line: Axis | None
    slow: tuple[Axis, ...]
    fast: tuple[Axis, ...]
    most: int = UNROLL

    @property
    def width(self) -> int:
        """Pixels that a row of the tile stands for: a whole line, or one."""
        return 1 if self.line is None else _known(self.pixel)


@dataclass(frozen=True, slots=True)
class _Part:
    """Tiles of one size along an axis."""

    begin: int
    count: int
    size: int


def blocked(nest: Nest, target: Target) -> Stmt | None:
    """Applies where lanes lie innermost, just as many as a register holds, and pixels are known."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    roles = _roles(nest, reduction, target)
    if roles is None:
        return None
    blocks = 1 if roles.block is None else _known(roles.block)
    pixels = _known(roles.pixel if roles.line is None else roles.line)
    columns, rows = _tile_size(blocks, pixels, roles.width, target)
    parts = _parts(pixels, rows)
    stmts: list[Stmt] = []
    for column in _parts(blocks, columns):
        tasks = column.count * math.prod(number(a.extent) or 99 for a in roles.slow + roles.fast)
        together = [parts] if tasks >= 4 * target.threads else [[row] for row in parts]
        for some in together:
            stmts.append(_tiles(nest, reduction, roles, column, some))
    return sequence(stmts)


def _roles(nest: Nest, reduction: Reduction, target: Target) -> _Roles | None:
    if len(nest.axes) < 2:
        return None
    *others, lane = nest.axes
    if number(lane.extent) != target.vector_bits // reduction.value.dtype.bits:
        return None
    if any(number(a.extent) is None for a in reduction.axes):
        return None
    known = known_of(all_axes(nest))
    loads = reduction.loads()
    places = [place(x, known) for x in loads]
    steps = [step(index, lane.var) for index in places]
    if any(step(place(x, known), lane.var) != 1 for x in nest.stores()):
        return None
    if len(loads) == 1 and steps == [1]:
        pixel = _last(others, places[0], Poly())
        outer = _without(others, pixel)
        return None if pixel is None else _Roles(lane, None, pixel, None, outer, ())
    if len(loads) != 2 or 1 not in steps or any(s not in (0, 1) for s in steps):
        return None
    for image, weight in ((0, 1), (1, 0)):
        pixel = _last(others, places[image], places[weight])
        if steps[weight] == 1 and pixel is not None:
            block = None if steps[image] else _last(others, places[weight], places[image])
            line = _last(_without(others, pixel), places[image], places[weight])
            line = line if _known(pixel) * 2 <= MOST_PIXELS else None
            outer = _without(others, pixel, block, line)
            heavy = _size(loads[weight].buffer) > _size(loads[image].buffer)
            fast = tuple(a for a in outer if heavy and number(a.extent) is not None)
            apart = step(places[image], pixel.var) or 1
            most = UNROLL_HEAVY if heavy else UNROLL
            most = most if steps[image] else max(1, min(most, apart))
            return _Roles(lane, block, pixel, line, _without(outer, *fast), fast, most)
    return None


def _last(axes: Sequence[Axis], moves: Poly, stays: Poly) -> Axis | None:
    """The innermost axis of known extent that moves through one operand and not the other."""
    for axis in reversed(axes):
        if mentions(moves, axis.var) and not mentions(stays, axis.var) and number(axis.extent):
            return axis
    return None


def _without(axes: Sequence[Axis], *some: Axis | None) -> tuple[Axis, ...]:
    return tuple(a for a in axes if a not in some)


def _known(axis: Axis) -> int:
    extent = number(axis.extent)
    assert extent is not None
    return extent


def _size(buffer: Buffer) -> int:
    """Elements, those of a batch of unknown size counted once."""
    return math.prod(number(e) or 1 for e in buffer.shape)


def _tile_size(blocks: int, pixels: int, width: int, target: Target) -> tuple[int, int]:
    """Blocks and rows of a tile that cost least, rows being `width` pixels each.

    ``blocks * (pixels + 1) + 1`` registers have to do.
    """
    best: tuple[float, int, int] = math.inf, 1, 1
    for columns in range(1, min(blocks, 4) + 1):
        most = min((target.vector_registers - 1 - columns) // columns, MOST_PIXELS)
        for rows in range(1, min(most // width, pixels) + 1):
            cost = sum(
                c.count * r.count * _cost(c.size, r.size * width)
                for c in _parts(blocks, columns)
                for r in _parts(pixels, rows)
            )
            best = min(best, (cost, columns, rows))
    return best[1], best[2]


def _cost(columns: int, pixels: int) -> float:
    """Half cycles of a step: two multiplications or loads a cycle, four cycles of latency."""
    return max(columns * pixels, columns + pixels, 8) + 1


def _parts(extent: int, size: int) -> list[_Part]:
    whole, rest = divmod(extent, size)
    parts = [_Part(0, whole, size)] if whole else []
    return parts + ([_Part(whole * size, 1, rest)] if rest else [])


def _tiles(
    nest: Nest, reduction: Reduction, roles: _Roles, column: _Part, rows: Sequence[_Part]
) -> Stmt:
    """All tiles of some blocks; rows of one size are shared among threads, others go in a row."""
    shared = rows[0].count if len(rows) == 1 else 1
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in roles.slow]
    domain += [("column", imm(column.count))] if column.count > 1 else []
    domain += [(a.var.name.removeprefix("v"), a.extent) for a in roles.fast]
    domain += [("row", imm(shared))] if shared > 1 else []

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)
        outer: Values = {a.var: next(at) for a in roles.slow}
        blocks = _values(column, next(at) if column.count > 1 else imm(0))
        outer |= {a.var: next(at) for a in roles.fast}

        def tile(row: _Part, place: PrimExpr) -> Stmt:
            return _micro_kernel(nest, reduction, roles, outer, blocks, _values(row, place))

        if len(rows) == 1:
            return tile(rows[0], next(at) if shared > 1 else imm(0))
        parts: list[Stmt] = []
        for row in rows:
            place = PrimVar("row")
            parts.append(For(place, imm(0), imm(row.count), tile(row, place)))
        return sequence(parts)

    lanes, steps = _known(roles.lane), product([a.extent for a in reduction.axes])
    pixels = sum(row.count * row.size for row in rows) // shared * roles.width
    return parallel(domain, multiply(steps, imm(column.size * pixels * lanes)), GRAIN, body)


def _values(part: _Part, at: PrimExpr) -> tuple[PrimExpr, ...]:
    first = add(imm(part.begin), multiply(at, imm(part.size)))
    return tuple(add(first, imm(i)) for i in range(part.size))


def _micro_kernel(
    nest: Nest,
    reduction: Reduction,
    roles: _Roles,
    outer: Values,
    blocks: tuple[PrimExpr, ...],
    rows: tuple[PrimExpr, ...],
) -> Stmt:
    lane, lanes = PrimVar("lane"), _known(roles.lane)
    here = {**outer, roles.lane.var: lane}
    whole = [imm(i) for i in range(roles.width)]
    # The tile's rows are loaded first and stay: weights, so that pixels come one at a time.
    tile = Tile(
        row=None if roles.block is None else roles.block.var,
        rows=blocks,
        column=(roles.pixel.var,) if roles.line is None else (roles.line.var, roles.pixel.var),
        columns=tuple((r,) if roles.line is None else (r, p) for r in rows for p in whole),
        lane=lane,
        lanes=lanes,
    )
    size = len(tile.rows) * len(tile.columns) * lanes
    buffer = Buffer("acc", (imm(size),), reduction.value.dtype, scope="local")
    value = substitute_prim(reduction.value, here)
    start = fill(tile, reduction.identity, buffer)
    *others, last = reduction.axes
    extent = _known(last)
    count = max(u for u in range(1, roles.most + 1) if extent % u == 0)
    at = PrimVar(last.var.name)
    # Marked, not written out: the passes in between see one step, not all of them.
    unrolled = PrimVar(f"{last.var.name}_step")
    index = add(multiply(at, imm(count)), unrolled)
    each = accumulate(tile, reduction, substitute_prim(value, {last.var: index}), buffer)
    step_loop = For(unrolled, imm(0), imm(count), each, kind="unrolled")
    inner = For(at, imm(0), imm(extent // count), step_loop)
    finish = substitute_stmt(with_init(reduction, nest.finish), here)
    done = write_back(tile, reduction, finish, buffer)
    return Allocate(buffer, Seq((start, loops(others, inner), done)))
