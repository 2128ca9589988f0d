"""Products of narrow numbers with interleaved weights: tiles of pixels times blocks of outputs.

What a convolution over blocked channels is when dot products of groups add it up: pixels of a line
are the rows of a matrix tile, at an even distance in memory, the channels of a block its depth, and
a block of outputs its columns. Taps and blocks of inputs are steps. Sums leave the tiles through a
small buffer, from which each pixel is finished and stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.arith.polynomial import Poly
from unity.ir.prim_expr import Binary, Cast, Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Seq, Stmt
from unity.ir.target import Target
from unity.ir.visit import substitute_prim

from ..access import all_axes, collapsed, depends, known_of, mentions, place, step
from ..loops import number, parallel, product
from ..marked import Access, group_of
from ..nest import Axis, Nest, Reduction
from ..tile import Values, finished, loops
from ..tile_sums import SIDE, TileSums, configured, has_tiles, tile_sums
from .result import with_init

GRAIN = 1 << 21
"""Multiply-adds on tiles that are worth a thread's waking."""
TASKS = 4
"""Tasks for each thread, at least, before the inner loops are shared, too."""


@dataclass(frozen=True, slots=True)
class _Roles:
    """Which axis is which.

    Attributes:
        image: The load of what is walked in pixels.
        weight: The load of a weight.
        depth: The groups of a block of inputs.
        group: The elements of a group.
        lane: The outputs of a block, innermost.
        block: The blocks of outputs, if there are several.
        pixel: The pixels of a line.
        line: The lines, if there are several.
        outer: The other spatial axes.
        steps: The other reduced ones.
        pitch: How many pixels a line is from the next; 0 where that is uneven.
    """

    image: Load
    weight: Load
    depth: Axis
    group: Axis
    lane: Axis
    block: Axis | None
    pixel: Axis
    line: Axis | None
    outer: tuple[Axis, ...]
    steps: tuple[Axis, ...]
    pitch: int

    @property
    def heavy(self) -> bool:
        """Whether weights are more than what they are applied to."""
        return _bytes(self.weight.buffer) > _bytes(self.image.buffer)


@dataclass(frozen=True, slots=True)
class _Cover:
    """How tiles cover an image; the last ones overlap those before, so that all are full.

    Attributes:
        height: Pixels of a tile.
        width: Pixels of a line.
        lines: Lines of the image.
        parts: Tiles of a line.
        together: Lines of a tile, if several fit in one; pixels between them are computed in vain.
    """

    height: int
    width: int
    lines: int
    parts: int
    together: int

    @property
    def tiles(self) -> int:
        """How many there are."""
        return self.parts * -(-self.lines // self.together)


def interleaved(nest: Nest, target: Target) -> Stmt | None:
    """Applies where weights lie in groups that the target multiplies in tiles."""
    nest = collapsed(nest)
    reduction = nest.reduction
    if reduction is None:
        return None
    roles = _roles(nest, reduction)
    if roles is None:
        return None
    if not has_tiles(target, roles.image.dtype, roles.weight.dtype, reduction.value.dtype):
        return None
    return _Writer(nest, reduction, roles, target).stmt()


def _operands(reduction: Reduction) -> tuple[Load, Load] | None:
    match reduction.value:
        case Binary("mul", Cast(_, Load() as a), Cast(_, Load() as b)) if reduction.op == "add":
            plain = a.predicate is None and b.predicate is None
            return (a, b) if plain and a.dtype.bits < 32 else None
        case _:
            return None


def _roles(nest: Nest, reduction: Reduction) -> _Roles | None:
    operands = _operands(reduction)
    if operands is None or len(nest.axes) < 2 or len(reduction.axes) < 2:
        return None
    if any(number(a.extent) is None for a in reduction.axes):
        return None
    known = known_of(all_axes(nest))
    *others, lane = nest.axes
    width = number(lane.extent)
    if width not in (SIDE, 2 * SIDE):
        return None
    if any(step(place(x, known), lane.var) != 1 for x in nest.stores()):
        return None
    for image, weight in (operands, operands[::-1]):
        size = group_of(image.dtype)
        at, there = place(image, known), place(weight, known)
        *_, group = reduction.axes
        depth = next((a for a in reduction.axes if step(there, a.var) == width * size), None)
        if depth is None or number(group.extent) != size or (number(depth.extent) or 1) % SIDE:
            continue
        moves = [(step(at, v.var), step(there, v.var)) for v in (group, depth, lane)]
        if moves != [(1, 1), (size, width * size), (0, size)]:
            continue
        pixel = _last(others, at, there)
        if pixel is None or not step(at, pixel.var):
            continue
        rest = [a for a in others if a is not pixel]
        line = _last(rest, at, there)
        far = None if line is None else step(at, line.var)
        if far is None:
            line = None
        block = _last(rest, there, at)
        near = step(at, pixel.var) or 1
        return _Roles(
            image,
            weight,
            depth,
            group,
            lane,
            block,
            pixel,
            line,
            tuple(a for a in rest if a not in (line, block)),
            tuple(a for a in reduction.axes if a not in (depth, group)),
            far // near if far is not None and far % near == 0 else 0,
        )
    return None


def _last(axes: Sequence[Axis], moves: Poly, stays: Poly) -> Axis | None:
    """The innermost axis of known extent that moves through one operand and not the other."""
    for axis in reversed(axes):
        if mentions(moves, axis.var) and not mentions(stays, axis.var) and number(axis.extent):
            return axis
    return None


def _known(axis: Axis | None) -> int:
    extent = 1 if axis is None else number(axis.extent)
    assert extent is not None
    return extent


def _bytes(buffer: Buffer) -> int:
    """Those of a batch of unknown size counted once."""
    return math.prod(number(e) or 1 for e in buffer.shape) * buffer.dtype.bytes


def _cover(roles: _Roles) -> _Cover:
    """As few tiles as possible, of as few rows."""
    width, lines = _known(roles.pixel), _known(roles.line)
    together = 1
    if roles.pitch >= width:
        together = min(lines, max(1, (SIDE - width) // roles.pitch + 1))
    if together > 1:
        return _Cover((together - 1) * roles.pitch + width, width, lines, 1, together)
    parts = -(-width // SIDE)
    if parts > 1 and parts * lines % 2:
        parts += 1  # tiles go by twos
    return _Cover(-(-width // parts), width, lines, parts, 1)


class _Writer:
    """Carries what all tiles have in common."""

    def __init__(self, nest: Nest, reduction: Reduction, roles: _Roles, target: Target) -> None:
        self.reduction = reduction
        self.roles = roles
        self.target = target
        self.cover = _cover(roles)
        self.finish = with_init(reduction, nest.finish)
        self.lanes = _known(roles.lane)
        self.rows = min(2, self.cover.tiles)
        self.sums = tile_sums(
            roles.image.dtype,
            roles.weight.dtype,
            reduction.value.dtype,
            self.rows,
            self.lanes // SIDE,
            self.cover.height,
        )

    def stmt(self) -> Stmt:
        """The stage: all tiles of all blocks, the larger operand walked through once."""
        roles, cover = self.roles, self.cover
        turns = -(-cover.tiles // self.rows)
        blocks = [] if roles.block is None else [roles.block]
        turn = Axis(PrimVar("turn"), imm(turns))
        outer = [a for a in roles.outer if number(a.extent) != 1]
        slow = [*blocks, *outer] if roles.heavy else [*outer, turn]
        fast = [turn] if roles.heavy else blocks
        tasks = math.prod(number(a.extent) or TASKS * self.target.threads for a in slow)
        if tasks < TASKS * self.target.threads and self.target.threads > 1:
            slow, fast = [*slow, *fast], []
        domain = [(a.var.name.removeprefix("v"), a.extent) for a in slow]
        steps = product([a.extent for a in self.reduction.axes])
        inner = product([a.extent for a in fast])
        work = simplify(
            multiply(steps, multiply(inner, imm(self.rows * cover.height * self.lanes)))
        )

        def body(point: Sequence[PrimExpr]) -> Stmt:
            values: Values = dict(zip((a.var for a in slow), point, strict=True))
            values |= {axis.var: axis.var for axis in fast}
            values |= {axis.var: imm(0) for axis in roles.outer if axis not in outer}
            return loops(fast, self.tiles(values.pop(turn.var), values))

        return configured(self.sums, parallel(domain, work, GRAIN, body))

    def tiles(self, turn: PrimExpr, values: Values) -> Stmt:
        """Some tiles of one block, next to each other."""
        cover, roles = self.cover, self.roles
        buffer = Buffer(
            "acc",
            (imm(self.rows * cover.height * self.lanes),),
            self.reduction.value.dtype,
            scope="local",
        )
        numbers = [add(multiply(turn, imm(self.rows)), imm(i)) for i in range(self.rows)]
        uneven = cover.tiles % self.rows != 0
        places = [
            self.place(Binary("min", t, imm(cover.tiles - 1)) if uneven and i else t)
            for i, t in enumerate(numbers)
        ]

        def target(i: int, j: int) -> Access:
            return lambda x: Load(
                buffer,
                (
                    add(
                        multiply(add(imm(i * cover.height), x[0]), imm(self.lanes)),
                        add(imm(j * SIDE), x[1]),
                    ),
                ),
            )

        depth = Axis(PrimVar("depth"), imm(_known(roles.depth) // SIDE))
        step = self.step(self.sums, places, {**values, roles.depth.var: depth.var})
        stmts: list[Stmt] = [self.sums.zero()]
        stmts.append(loops([*roles.steps, depth], step))
        stmts.append(self.sums.store(target))
        for i, at in enumerate(places):
            done = self.written(buffer, i, at, values)
            if uneven and i:
                done = IfThen(Compare("lt", numbers[i], imm(cover.tiles)), done)
            stmts.append(done)
        return Allocate(buffer, Seq(tuple(stmts)))

    def place(self, tile: PrimExpr) -> _Place:
        """Where a tile begins."""
        cover = self.cover
        if cover.together > 1:
            begin = multiply(tile, imm(cover.together))
            last = cover.lines - cover.together
            line = begin if cover.lines % cover.together == 0 else Binary("min", begin, imm(last))
            return _Place(simplify(line), imm(0), simplify(begin - line))
        line = simplify(Binary("floordiv", tile, imm(cover.parts)))
        begin = multiply(simplify(Binary("floormod", tile, imm(cover.parts))), imm(cover.height))
        pixel: PrimExpr = begin
        if cover.parts * cover.height > cover.width:
            pixel = Binary("min", begin, imm(cover.width - cover.height))
        return _Place(line, simplify(pixel), simplify(begin - pixel))

    def step(self, sums: TileSums, places: Sequence[_Place], values: Values) -> Stmt:
        """One step of depth on all tiles."""
        roles = self.roles

        def left(i: int) -> Access:
            def at(x: Sequence[PrimVar]) -> Load:
                row, k, p = x
                here: Values = {**values, **self.pixel(places[i], row)}
                here[roles.depth.var] = add(multiply(values[roles.depth.var], imm(SIDE)), k)
                here[roles.group.var] = p
                found = _load(roles.image, here)
                return _carried(found, row) if self.cover.together > 1 else found

            return at

        def right(j: int) -> Access:
            def at(x: Sequence[PrimVar]) -> Load:
                k, n, p = x
                here: Values = {**values, roles.lane.var: add(imm(j * SIDE), n)}
                here[roles.depth.var] = add(multiply(values[roles.depth.var], imm(SIDE)), k)
                here[roles.group.var] = p
                return _load(roles.weight, here)

            return at

        return sums.step(left, right)

    def pixel(self, place: _Place, row: PrimExpr) -> Values:
        """The pixel that a row of a tile is; on one of the next lines where it is beyond its."""
        roles = self.roles
        values: Values = {roles.pixel.var: add(place.pixel, row)}
        if roles.line is not None:
            values[roles.line.var] = place.line
        return values

    def written(self, buffer: Buffer, i: int, at: _Place, values: Values) -> Stmt:
        """The pixels of a tile finished and stored, but those that the tile before has."""
        roles, cover = self.roles, self.cover
        row, lane = PrimVar("row"), PrimVar("lane")
        pixel: PrimExpr = row
        along: list[Axis] = []
        if cover.together > 1:
            line = PrimVar("line")
            along = [Axis(row, imm(cover.width))]
            outer, shift = line, imm(cover.together)
            slot: PrimExpr = add(multiply(line, imm(roles.pitch)), row)
            where: Values = {roles.pixel.var: row}
            assert roles.line is not None
            where[roles.line.var] = add(at.line, line)
        else:
            outer, shift = row, imm(cover.height)
            slot = pixel
            where = {roles.pixel.var: add(at.pixel, row)}
            if roles.line is not None:
                where[roles.line.var] = at.line
        slot = add(
            multiply(add(imm(i * cover.height), slot), imm(self.lanes)),
            lane,
        )
        done = finished(
            self.reduction,
            Load(buffer, (slot,)),
            self.finish,
            {**values, **where, roles.lane.var: lane},
        )
        body = loops(along, For(lane, imm(0), imm(self.lanes), done, "vectorized"))
        return For(outer, at.known, simplify(shift - at.known), body)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tile begins.

    Attributes:
        line: The first line.
        pixel: The first pixel of it.
        known: How many lines (pixels, in a tile of one line) the tile before has computed.
    """

    line: PrimExpr
    pixel: PrimExpr
    known: PrimExpr


def _load(of: Load, values: Values) -> Load:
    found = substitute_prim(of, values)
    assert isinstance(found, Load)
    return found


def _carried(of: Load, row: PrimVar) -> Load:
    """A load whose place on a line may lie beyond its end, on the next one: the same element."""
    indices = list(of.indices)
    for at in range(len(indices) - 1, 0, -1):
        if depends(indices[at], row):
            extent, index = of.buffer.shape[at], indices[at]
            indices[at] = Binary("floormod", index, extent)
            indices[at - 1] = add(indices[at - 1], Binary("floordiv", index, extent))
            break
    return replace(of, indices=tuple(indices))
