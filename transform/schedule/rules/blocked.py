"""Convolution and pooling over blocked channels: lanes are a block of outputs, rows are pixels.

What is added up is walked by loops that stay loops: a tap's pixels are not kept for the next tap,
so that all registers hold accumulators. A few steps of the innermost loop stand in a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, Intrinsic, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim, substitute_stmt

from ..access import all_axes, collapsed, known_of, may_trap, mentions, place, step
from ..loops import number, parallel, product, sequence
from ..nest import Axis, Nest, Reduction
from ..padding import Edge, without_padding
from ..tile import Tile, Values, accumulate, fill, write_back
from .result import GRAIN, with_init
from .taps import Ahead, Place, Seen, Taps

UNROLL = 4
"""Steps of the innermost loop in a row, at most."""
UNROLL_HEAVY = 8
"""The same where weights are more than what they are applied to, and come from far."""
MOST_PIXELS = 14
"""Pixels of a tile, at most."""
MOST_TAPS = 8
"""Taps along a line that are written out where pixels are the only thing loaded, at most."""
LINE_BITS = 512
"""A line of the caches."""


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
        weight: The load of a weight, where weights are more than what they are applied to.
        columns_last: Whether all blocks follow at each place: what they are computed from is too
            much for a cache to be read anew for each of them.
        steps: The reduced axes, the one whose steps may stand in a row last.
        most: How many may: none that read a pixel which another one reads too, for these would be
            kept in registers. All of them where there are registers for that.
        flat: The taps of the last axis, where all of them stand in a row.
    """

    lane: Axis
    block: Axis | None
    pixel: Axis
    line: Axis | None
    slow: tuple[Axis, ...]
    fast: tuple[Axis, ...]
    steps: tuple[Axis, ...]
    most: int
    flat: _Flat | None = None
    weight: Load | None = None
    columns_last: bool = False

    @property
    def width(self) -> int:
        """Pixels that a row of the tile stands for: a whole line, or one."""
        return 1 if self.line is None else _known(self.pixel)

    @property
    def inside(self) -> tuple[Axis, ...]:
        """The axes along a tile."""
        return (self.pixel,) if self.line is None else (self.line, self.pixel)


@dataclass(frozen=True, slots=True)
class _Flat:
    """Taps along a line that are written out: pixels that several of them read are loaded once.

    Attributes:
        taps: How many there are.
        step: From one pixel to the next.
        pace: From one tap to the next.
        weights: Whether there is a weight for each tap.
    """

    taps: int
    step: int
    pace: int
    weights: bool

    def loads(self, pixels: int) -> int:
        """Distinct loads of a line of pixels."""
        return len({p * self.step + t * self.pace for p in range(pixels) for t in range(self.taps)})


@dataclass(frozen=True, slots=True)
class _Part:
    """Tiles of one size along an axis, all of which see the same of each tap."""

    begin: int
    count: int
    size: int
    seen: Seen = frozenset()


def blocked(nest: Nest, target: Target) -> Stmt | None:
    """Applies where lanes lie innermost, just as many as a register holds, and pixels are known."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    bare = without_padding(collapsed(nest))
    if bare is None:
        return None
    nest, edges = bare
    reduction = nest.reduction
    assert reduction is not None
    roles = _roles(nest, reduction, edges, target)
    if roles is None or any(e.axis in (roles.lane.var, _var(roles.block)) for e in edges):
        return None
    taps = Taps(roles.steps, edges, frozenset(a.var for a in roles.inside), roles.most)
    if any(number(e.rest) is None for e in edges if e.axis in taps.inside):
        return None
    blocks = 1 if roles.block is None else _known(roles.block)
    pixels = _known(roles.pixel if roles.line is None else roles.line)
    columns, rows = _tile_size(blocks, pixels, roles, target)
    parts = _seen(_parts(pixels, rows), roles, taps)
    stmts: list[Stmt] = []
    for column in _parts(blocks, columns):
        tasks = column.count * math.prod(number(a.extent) or 99 for a in roles.slow + roles.fast)
        together = [parts] if tasks >= 4 * target.threads else [[row] for row in parts]
        for some in together:
            stmts.append(_tiles(nest, reduction, roles, taps, column, some))
    return sequence(stmts)


def _roles(
    nest: Nest, reduction: Reduction, edges: Sequence[Edge], target: Target
) -> _Roles | None:
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
        if pixel is None:
            return None
        flat = _flat(reduction, pixel, places[0], weights=False)
        most = UNROLL if flat is None else flat.taps
        outer = _without(others, pixel)
        return _Roles(lane, None, pixel, None, outer, (), reduction.axes, most, flat)
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
            slow = _without(outer, *fast)
            if steps[image]:
                flat = _flat(reduction, pixel, places[image], weights=True)
                most = UNROLL if flat is None else flat.taps
                return _Roles(lane, None, pixel, line, slow, fast, reduction.axes, most, flat)
            limit = UNROLL_HEAVY if heavy else UNROLL
            reduced, most = _ordered(reduction, edges, places[image], pixel, limit)
            far = loads[weight] if heavy else None
            read = _size(loads[image].buffer) * loads[image].dtype.bytes
            last = not heavy and read > target.l2_bytes // 2
            return _Roles(lane, block, pixel, line, slow, fast, reduced, most, None, far, last)
    return None


def _flat(reduction: Reduction, pixel: Axis, image: Poly, *, weights: bool) -> _Flat | None:
    """How the taps of the last axis are written out; None where they are too many."""
    last = reduction.axes[-1]
    taps, apart, pace = _known(last), step(image, pixel.var), step(image, last.var)
    if taps > MOST_TAPS or apart is None or pace is None:
        return None
    return _Flat(taps, apart, pace, weights)


def _ordered(
    reduction: Reduction, edges: Sequence[Edge], image: Poly, pixel: Axis, limit: int
) -> tuple[tuple[Axis, ...], int]:
    """The reduced axes, last the one that most steps of may stand in a row, and how many."""
    apart = step(image, pixel.var)
    best, most = reduction.axes[-1], 0
    for axis in reversed(reduction.axes):
        pace = step(image, axis.var)
        if apart is None or pace is None or any(e.tap is axis.var for e in edges):
            continue
        steps = range(1, min(limit, _known(axis)))
        free = next((n for n in steps if _meet(n * pace, apart)), min(limit, _known(axis)))
        if free > most:
            best, most = axis, free
    return (*(a for a in reduction.axes if a is not best), best), max(most, 1)


def _meet(distance: int, apart: int) -> bool:
    """Whether pixels of a tile that lie `apart` from each other may lie a distance apart."""
    return apart == 0 or (distance % apart == 0 and abs(distance // apart) < MOST_PIXELS)


def _seen(parts: Sequence[_Part], roles: _Roles, taps: Taps) -> list[_Part]:
    """The parts cut where tiles see something else."""
    found: list[_Part] = []
    for part in parts:
        if not any(e.axis in taps.inside for e in taps.edges):
            found.append(replace(part, seen=frozenset(range(part.size * roles.width))))
            continue
        for tile in range(part.count):
            begin = part.begin + tile * part.size
            rows = range(begin, begin + part.size)
            seen = taps.seen(_places(roles, rows))
            last = found[-1] if tile else None
            if last is not None and last.seen == seen:
                found[-1] = replace(last, count=last.count + 1)
            else:
                found.append(_Part(begin, 1, part.size, seen))
    return found


def _places(roles: _Roles, rows: Sequence[int]) -> list[Place]:
    if roles.line is None:
        return [{roles.pixel.var: r} for r in rows]
    line, pixel = roles.line.var, roles.pixel.var
    return [{line: r, pixel: p} for r in rows for p in range(roles.width)]


def _last(axes: Sequence[Axis], moves: Poly, stays: Poly) -> Axis | None:
    """The innermost axis of known extent that moves through one operand and not the other."""
    for axis in reversed(axes):
        if mentions(moves, axis.var) and not mentions(stays, axis.var) and number(axis.extent):
            return axis
    return None


def _var(axis: Axis | None) -> PrimVar | None:
    return None if axis is None else axis.var


def _without(axes: Sequence[Axis], *some: Axis | None) -> tuple[Axis, ...]:
    return tuple(a for a in axes if a not in some)


def _known(axis: Axis) -> int:
    extent = number(axis.extent)
    assert extent is not None
    return extent


def _size(buffer: Buffer) -> int:
    """Elements, those of a batch of unknown size counted once."""
    return math.prod(number(e) or 1 for e in buffer.shape)


def _tile_size(blocks: int, pixels: int, roles: _Roles, target: Target) -> tuple[int, int]:
    """Blocks and rows of a tile that cost least, rows being `width` pixels each.

    ``blocks * (pixels + 1) + 1`` registers have to do.
    """
    best: tuple[float, int, int] = math.inf, 1, 1
    width = roles.width
    for columns in range(1, min(blocks, 4) + 1):
        most = min((target.vector_registers - 1 - columns) // columns, MOST_PIXELS)
        for rows in range(1, min(most // width, pixels) + 1):
            if rows > 1 and not _fits(roles.flat, rows, width, target):
                break
            cost = sum(
                c.count * r.count * _cost(c.size, r.size * width, roles.flat)
                for c in _parts(blocks, columns)
                for r in _parts(pixels, rows)
            )
            best = min(best, (cost, columns, rows))
    return best[1], best[2]


def _fits(flat: _Flat | None, rows: int, width: int, target: Target) -> bool:
    """Whether there are registers for accumulators, weights and the pixels that taps share."""
    if flat is None:
        return True
    loads = flat.loads(rows) if width == 1 else flat.loads(width) * rows
    weights = flat.taps if flat.weights else 0
    return rows * width + loads + weights <= target.vector_registers


def _cost(columns: int, pixels: int, flat: _Flat | None) -> float:
    """Half cycles of a step: two multiplications or loads a cycle, four cycles of latency."""
    if flat is not None:
        return max(flat.taps * max(pixels, 8), flat.loads(pixels) + flat.taps) + 4
    return max(columns * pixels, columns + pixels, 8) + 1


def _parts(extent: int, size: int) -> list[_Part]:
    whole, rest = divmod(extent, size)
    parts = [_Part(0, whole, size)] if whole else []
    return parts + ([_Part(whole * size, 1, rest)] if rest else [])


def _tiles(
    nest: Nest,
    reduction: Reduction,
    roles: _Roles,
    taps: Taps,
    column: _Part,
    rows: Sequence[_Part],
) -> Stmt:
    """All tiles of some blocks; rows of one size are shared among threads, others go in a row."""
    shared = rows[0].count if len(rows) == 1 else 1
    domain = [(a.var.name.removeprefix("v"), a.extent) for a in roles.slow]
    inner: list[tuple[str, PrimExpr]] = []
    inner += [("column", imm(column.count))] if column.count > 1 else []
    inner += [(a.var.name.removeprefix("v"), a.extent) for a in roles.fast]
    across: list[tuple[str, PrimExpr]] = [("row", imm(shared))] if shared > 1 else []
    domain += across + inner if roles.columns_last else inner + across

    tiles = sum(row.count for row in rows)

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)
        outer: Values = {a.var: next(at) for a in roles.slow}
        first = next(at) if across and roles.columns_last else imm(0)
        here = next(at) if column.count > 1 else imm(0)
        outer |= {a.var: next(at) for a in roles.fast}
        turn: PrimExpr = imm(0)
        turns = tiles
        for axis in roles.fast:
            turn = add(multiply(turn, axis.extent), outer[axis.var])
            turns *= _known(axis)

        def tile(row: _Part, place: PrimExpr, before: int) -> Stmt:
            tile = _tile(roles, _values(column, here), _values(row, place))
            now = add(add(multiply(turn, imm(tiles)), place), imm(before))
            ahead = _ahead(roles, column, here, now, turns, outer)
            return _micro_kernel(nest, reduction, tile, taps, row.seen, outer, ahead)

        if len(rows) == 1:
            return tile(rows[0], first if roles.columns_last or not across else next(at), 0)
        parts: list[Stmt] = []
        before = 0
        for row in rows:
            place = PrimVar("row")
            parts.append(For(place, imm(0), imm(row.count), tile(row, place, before)))
            before += row.count
        return sequence(parts)

    lanes, steps = _known(roles.lane), product([a.extent for a in reduction.axes])
    pixels = sum(row.count * row.size for row in rows) // shared * roles.width
    return parallel(domain, multiply(steps, imm(column.size * pixels * lanes)), GRAIN, body)


def _ahead(
    roles: _Roles, column: _Part, here: PrimExpr, turn: PrimExpr, turns: int, outer: Values
) -> Ahead | None:
    """Fetching the weights of the next blocks while these are in use, a part at each tile.

    Weights that come from memory once a call would be waited for at the first tile of each block.
    """
    weight = roles.weight
    if weight is None or roles.block is None or turns < 2 or column.count < 2:
        return None
    block, last = roles.block.var, roles.steps[-1].var
    following = Binary("min", add(here, imm(1)), imm(column.count - 1))
    line = max(1, LINE_BITS // (weight.dtype.bits * _known(roles.lane)))

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


def _values(part: _Part, at: PrimExpr) -> tuple[PrimExpr, ...]:
    first = add(imm(part.begin), multiply(at, imm(part.size)))
    return tuple(add(first, imm(i)) for i in range(part.size))


def _tile(roles: _Roles, blocks: tuple[PrimExpr, ...], rows: tuple[PrimExpr, ...]) -> Tile:
    whole = [imm(i) for i in range(roles.width)]
    # The tile's rows are loaded first and stay: weights, so that pixels come one at a time.
    return Tile(
        row=None if roles.block is None else roles.block.var,
        rows=blocks,
        column=tuple(a.var for a in roles.inside),
        columns=tuple((r,) if roles.line is None else (r, p) for r in rows for p in whole),
        lane=PrimVar("lane"),
        lanes=_known(roles.lane),
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
