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
from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Compare, Intrinsic, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, IfThen, Seq, Stmt
from unity.ir.visit import substitute_prim
from unity.machine.dot_units import SIDE, TILE_ROW_BYTES, group_of, has_dot
from unity.machine.target import Target

from ...blocks.access import collapsed, depends
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.interleaved import Roles, length_of, roles_of
from ...schedule.marked import Access
from ...tactics.register_tile import Values, finished, loops
from ...tactics.result import with_init
from ...tactics.threads import parallel
from ...tactics.tile_sums import TileSums, configured, tile_sums
from ..rule import Neighbourhood, Rule, worth


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


@dataclass(frozen=True, slots=True)
class Grouped:
    """A sum over groups of inputs, in tiles of a matrix.

    Attributes:
        nest: The stage.
        reduction: Its reduction.
        roles: The roles of its axes.
    """

    nest: Nest
    reduction: Reduction
    roles: Roles


@dataclass(frozen=True, slots=True)
class GroupedTiles:
    """The decisions.

    Attributes:
        grain: Multiply-adds that a task has at least.
    """

    grain: int


def _match(nest: Nest, target: Target) -> Grouped | None:
    """A stage whose weights lie in groups that the target multiplies in tiles."""
    nest = collapsed(nest)
    reduction = nest.reduction
    roles = None if reduction is None else roles_of(nest, reduction)
    if reduction is None or roles is None:
        return None
    if not has_dot(target, "tile", roles.image.dtype, roles.weight.dtype, reduction.value.dtype):
        return None
    return Grouped(nest, reduction, roles)


def _decide(_found: Grouped, target: Target) -> GroupedTiles:
    return GroupedTiles(target.machine.grain("tile_convolutions"))


def _legal(_found: Grouped, _decisions: GroupedTiles, _target: Target) -> Neighbourhood:
    return {"grain": worth("multiply-adds")}


def _write(found: Grouped, how: GroupedTiles, target: Target) -> Stmt:
    return _Writer(found.nest, found.reduction, found.roles, how.grain, target).stmt()


INTERLEAVED = Rule("interleaved", _match, _decide, _legal, _write)


def _cover(roles: Roles) -> _Cover:
    """As few tiles as possible, of as few rows."""
    width, lines = length_of(roles.pixel), length_of(roles.line)
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

    def __init__(
        self, nest: Nest, reduction: Reduction, roles: Roles, grain: int, target: Target
    ) -> None:
        self.reduction = reduction
        self.grain = grain
        self.roles = roles
        self.target = target
        self.cover = _cover(roles)
        self.finish = with_init(reduction, nest.finish)
        self.lanes = length_of(roles.lane)
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
        """The stage: all tiles of all blocks, the larger operand walked through once.

        Where that are pixels, each thread has a run of them, the same at every stage.
        """
        roles, cover = self.roles, self.cover
        turns = -(-cover.tiles // self.rows)
        blocks = [] if roles.block is None else [roles.block]
        turn = Axis(PrimVar("turn"), imm(turns))
        outer = [a for a in roles.outer if number(a.extent) != 1]
        slow = [*blocks, *outer] if roles.heavy else [*outer, turn]
        fast = [turn] if roles.heavy else blocks
        tasks = math.prod(number(a.extent) or self.target.tasks for a in slow)
        if tasks < self.target.tasks and self.target.threads > 1:
            slow, fast = [*slow, *fast], []
        domain = [(a.var.name.removeprefix("v"), a.extent) for a in slow]
        steps = product([a.extent for a in self.reduction.axes])
        inner = product([a.extent for a in fast])
        work = simplify(
            multiply(steps, multiply(inner, imm(self.rows * cover.height * self.lanes)))
        )

        grain = self.grain
        if not roles.heavy:
            points = math.prod(number(a.extent) or 1 for a in slow)
            grain = max(grain, (number(work) or 0) * -(-points // self.target.threads))

        def body(point: Sequence[PrimExpr]) -> Stmt:
            values: Values = dict(zip((a.var for a in slow), point, strict=True))
            values |= {axis.var: axis.var for axis in fast}
            values |= {axis.var: imm(0) for axis in roles.outer if axis not in outer}
            return loops(fast, self.tiles(values.pop(turn.var), values))

        return configured(self.sums, parallel(domain, work, grain, body))

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

        depth = Axis(PrimVar("depth"), imm(length_of(roles.depth) // SIDE))
        step = self.step(self.sums, places, {**values, roles.depth.var: depth.var})
        if roles.heavy and roles.block is not None:
            step = sequence([*self.ahead(turn, {**values, roles.depth.var: depth.var}), step])
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

    def ahead(self, turn: PrimExpr, values: Values) -> list[Stmt]:
        """Fetches for a step of a block to come, each turn some of the lines of its weights.

        They come from far and would be waited for in the first turn.
        """
        roles = self.roles
        assert roles.block is not None
        turns = -(-self.cover.tiles // self.rows)
        blocks, threads = length_of(roles.block), self.target.threads
        row = self.lanes * TILE_ROW_BYTES // SIDE
        lines = SIDE * row // LINE
        each = -(-lines // turns)
        first = multiply(Binary("floormod", turn, imm(-(-lines // each))), imm(each))
        later = Binary("min", add(values[roles.block.var], imm(threads)), imm(blocks - 1))
        stmts: list[Stmt] = []
        for i in range(each):
            place = multiply(add(first, imm(i)), imm(LINE // roles.weight.dtype.bytes))
            width = row // roles.weight.dtype.bytes
            here: Values = {**values, roles.block.var: later, roles.group.var: imm(0)}
            group = group_of(roles.weight.dtype)
            depth = multiply(values[roles.depth.var], imm(SIDE))
            here[roles.depth.var] = add(depth, Binary("floordiv", place, imm(width)))
            here[roles.lane.var] = Binary(
                "floordiv", Binary("floormod", place, imm(width)), imm(group)
            )
            load = _load(roles.weight, here)
            stmts.append(Evaluate(Intrinsic("prefetch", (load,), load.dtype)))
        return stmts

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
