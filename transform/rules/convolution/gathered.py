"""Convolution over blocked channels of images of unknown size: pixels gathered for the tiles.

What the pixels of some register tiles read, zeros where there is none, is copied to a panel; then
all blocks of outputs pass over it. Tiles go along all pixels of all images, whatever the lines'
length, and none of them knows of borders or steps. The copy costs a few parts in a hundred where
there are many outputs, and lines that are no longer than a few tiles would cost far more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Compare, Imm, Intrinsic, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.representative import IMAGE, representative_extent
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.machine import Machine
from unity.machine.target import Target

from ...blocks.access import all_axes, depends, known_of, place, step
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...tactics.pieces import RowPart, Runs
from ...tactics.register_tile import Tile, Values, accumulate, fill, finished, loops
from ...tactics.result import with_init
from .parts import Part, parts_of, tile_cost

PARTS_A_THREAD = 2
"""Pieces of work for each thread, each with a panel of its own."""
MOST_TILES = 16
"""Register tiles of a panel, at most."""
UNROLL, UNROLL_RARE = 8, 2
"""Steps of the innermost loop in a row, at most; where a tile comes once in a run."""
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
        case Binary("mul", a, b) if reduction.op == "add":
            pass
        case _:
            return None
    *outer, lane = nest.axes
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
    if _length(inner[-1]) % _length(lane) or step(place(weight, known), lane.var) != 1:
        return None
    if any(step(place(s, known), lane.var) != 1 for s in nest.stores()):
        return None
    return Gathering(pixels, blocks[0], lane, taps, (*depth, inner[-1]), image, weight)


def pays(
    found: Gathering, parts: Sequence[Part], columns: int, rows: int, machine: Machine
) -> bool:
    """Whether gathering costs less than tiles along lines, whose border is done pixel by pixel.

    Args:
        found: What is gathered.
        parts: The tiles of a line where nothing is.
        columns: Blocks of a register tile.
        rows: Pixels of a register tile.
        machine: What steps take.
    """
    width = representative_extent(found.pixels[-1].extent, IMAGE) or 1
    line = sum(
        (representative_extent(p.count, IMAGE) or 0) * tile_cost(columns, p.size, machine)
        for p in parts
    )
    groups = -(-_length(found.block) // columns)
    each = groups * tile_cost(columns, rows, machine) / rows + COPIED / _length(found.lane)
    return width * each < groups * line


def gathered(nest: Nest, found: Gathering, tile: tuple[int, int], target: Target) -> Stmt:
    """The stage laid out.

    Args:
        nest: The stage.
        found: What it gathers.
        tile: Blocks and pixels of a register tile.
        target: Tells the caches and the threads.
    """
    return _Writer(nest, found, tile, target).stmt()


class _Writer:
    """Carries the panel and where one is."""

    def __init__(self, nest: Nest, found: Gathering, tile: tuple[int, int], target: Target) -> None:
        assert nest.reduction is not None
        self.nest, self.found, self.target = nest, found, target
        self.reduction: Reduction = nest.reduction
        self.columns, self.rows = tile
        value = self.reduction.value.dtype
        extents = [_length(a) for a in found.order]
        size = self.rows * math.prod(extents) * value.bytes
        self.tiles = max(1, min(MOST_TILES, target.l2_bytes // 2 // size))
        total = product([a.extent for a in found.pixels])
        self.runs = Runs(total, self.tiles * self.rows, self.rows, target.threads)
        self.parts = 1 if target.threads == 1 else target.threads * PARTS_A_THREAD
        shape = (self.parts, self.tiles, *extents[:-1], self.rows, extents[-1])
        self.panel = Buffer("gathered", tuple(map(imm, shape)), value)
        self.part, self.run = PrimVar("part"), PrimVar("run")
        self.sizes = {a: PrimVar(a.var.name.removeprefix("v")) for a in found.pixels}

    def stmt(self) -> Stmt:
        """All runs, shared among threads."""
        parts, count = imm(self.parts), self.runs.count
        begin = Binary("floordiv", multiply(self.part, count), parts)
        end = Binary("floordiv", multiply(add(self.part, imm(1)), count), parts)
        body = self.runs.within(self.run, Seq((self.copy(), *self.products())))
        each = For(self.run, begin, Binary("sub", end, begin), body)
        every = self.runs.around(For(self.part, imm(0), parts, each, "parallel"))
        for axis, size in self.sizes.items():
            every = Let(size, axis.extent, every)
        return Allocate(self.panel, every)

    def pixel(self, row: PrimExpr) -> Values:
        """Which pixel a row of the run is."""
        rest = add(multiply(self.run, self.runs.length), row)
        values: Values = {}
        for axis in reversed(self.found.pixels[1:]):
            values[axis.var] = Binary("floormod", rest, self.sizes[axis])
            rest = Binary("floordiv", rest, self.sizes[axis])
        return {self.found.pixels[0].var: rest, **values}

    def copy(self) -> Stmt:
        """What each pixel of the run reads, brought to the panel."""
        found, row = self.found, PrimVar("row")
        *depth, inner = found.depth
        lanes = _length(found.lane)
        at, lane = PrimVar("at"), PrimVar("lane")
        index = add(multiply(at, imm(lanes)), lane)
        tile = Binary("floordiv", row, imm(self.rows))
        within = Binary("floormod", row, imm(self.rows))
        place = (self.part, tile, *(a.var for a in found.order[:-1]), within, index)
        load = found.image.then if isinstance(found.image, Select) else found.image

        def stored(value: PrimExpr) -> Stmt:
            store = Store(self.panel, place, substitute_prim(value, {inner.var: index}))
            vector = For(lane, imm(0), imm(lanes), store, "vectorized")
            return loops(depth, For(at, imm(0), imm(_length(inner) // lanes), vector))

        body = stored(load)
        if isinstance(found.image, Select):
            body = IfThen(found.image.condition, body, stored(found.image.orelse))
        body = loops(found.taps, body)
        for var, value in self.pixel(row).items():
            assert isinstance(var, PrimVar)
            body = Let(var, value, body)
        return For(row, imm(0), self.runs.here, body)

    def products(self) -> list[Stmt]:
        """All blocks, over each of which all tiles of the run pass."""
        stmts: list[Stmt] = []
        for column in parts_of(_length(self.found.block), self.columns):
            at = PrimVar("column")
            kernels = [self.micro_kernel(column, at, p) for p in self.runs.parts()]
            stmts.append(For(at, imm(0), column.count, sequence(kernels)))
        return stmts

    def micro_kernel(self, column: Part, at: PrimVar, part: RowPart) -> Stmt:
        """Register tiles of one size along the run."""
        found, reduction = self.found, self.reduction
        turn, lane, pixel = PrimVar("tile"), PrimVar("lane"), PrimVar("pixel")
        first = add(column.begin, multiply(at, imm(column.size)))
        tile = Tile(
            row=found.block.var,
            rows=tuple(add(first, imm(i)) for i in range(column.size)),
            column=(pixel,),
            columns=tuple((imm(i),) for i in range(part.size)),
            lane=lane,
            lanes=_length(found.lane),
        )
        which = add(part.turn, turn)
        place = (self.part, which, *(a.var for a in found.order[:-1]), pixel, found.order[-1].var)
        here: Values = {found.lane.var: lane}
        value = Binary("mul", Load(self.panel, place), substitute_prim(found.weight, here))
        inner = found.order[-1]
        most = UNROLL if part.when is None else UNROLL_RARE
        unroll = max(u for u in range(1, most + 1) if _length(inner) % u == 0)
        some, steps = PrimVar(inner.var.name), PrimVar("step")
        index = add(multiply(some, imm(unroll)), steps)
        acc = Buffer(
            "acc", (imm(part.size * column.size * tile.lanes),), value.dtype, scope="local"
        )
        added = accumulate(tile, reduction, substitute_prim(value, {inner.var: index}), acc)
        body: Stmt = For(steps, imm(0), imm(unroll), added, "unrolled")
        ahead = self.ahead(column, first, which, multiply(some, imm(unroll)), unroll)
        body = For(some, imm(0), imm(_length(inner) // unroll), Seq((*ahead, body)))
        body = loops(found.order[:-1], body)
        begin = add(part.begin, multiply(turn, imm(part.size)))
        done = self.done(tile, begin, acc)
        kernel = Allocate(acc, Seq((fill(tile, reduction.identity, acc), body, done)))
        every = For(turn, imm(0), part.count, kernel)
        return every if part.when is None else IfThen(part.when, every)

    def done(self, tile: Tile, begin: PrimExpr, acc: Buffer) -> Stmt:
        """The sums stored, pixel by pixel: the last tile may have room for more than there are."""
        finish = with_init(self.reduction, self.nest.finish)
        finish = substitute_stmt(finish, {self.found.lane.var: tile.lane})
        stmts: list[Stmt] = []
        for c in range(len(tile.columns)):
            row = add(begin, imm(c))
            stores: list[Stmt] = []
            for r, block in enumerate(tile.rows):
                sums = Load(acc, (tile.slot(r, c),))
                at: Values = {self.found.block.var: block}
                stores.append(tile.vectorized(finished(self.reduction, sums, finish, at)))
            body = sequence(stores)
            for var, value in self.pixel(row).items():
                assert isinstance(var, PrimVar)
                named = PrimVar(var.name)
                body = Let(named, value, substitute_stmt(body, {var: named}))
            stmts.append(IfThen(Compare("lt", row, self.runs.here), body))
        return sequence(stmts)

    def ahead(
        self, column: Part, first: PrimExpr, turn: PrimExpr, begin: PrimExpr, steps: int
    ) -> list[Stmt]:
        """The next blocks' weights asked for: those of some steps, shared out among the tiles."""
        found, weight = self.found, self.found.weight
        size = math.prod(map(_length, found.order)) * column.size * _length(found.lane)
        if (column.tiles or 0) < 2 or size * weight.dtype.bytes * 4 <= self.target.l2_bytes:
            return []
        line = max(1, 8 * LINE // (weight.dtype.bits * _length(found.lane)))
        stmts: list[Stmt] = []
        for block in range(column.size):
            for i in range(-(-steps // (line * self.tiles))):
                nth = add(imm(i * self.tiles), turn)
                nth = Binary("floormod", nth, imm(max(1, steps // line)))
                nth = add(begin, multiply(nth, imm(line)))
                at: Values = {
                    found.block.var: add(first, imm(column.size + block)),
                    found.order[-1].var: nth,
                    found.lane.var: imm(0),
                }
                fetched = substitute_prim(weight, at)
                stmts.append(Evaluate(Intrinsic("prefetch", (fetched,), weight.dtype)))
        return stmts


def _length(axis: Axis) -> int:
    found = number(axis.extent)
    assert found is not None
    return found
