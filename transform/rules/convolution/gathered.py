"""Convolution over blocked channels of images of unknown size: pixels gathered for the tiles.

What the pixels of some register tiles read, zeros where there is none, is copied to a panel; then
all blocks of outputs pass over it. Tiles go along all pixels of all images, whatever the lines'
length, and none of them knows of borders or steps. The copy costs a few parts in a hundred where
there are many outputs, and lines that are no longer than a few tiles would cost far more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Compare, Imm, Intrinsic, Load, PrimExpr, PrimVar, Select, imm
from unity.ir.regions import add, multiply
from unity.ir.representative import IMAGE, representative_extent
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.target import Target

from ...blocks.access import all_axes, collapsed, depends, known_of, may_trap, place, step
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest, Reduction
from ...blocks.tree import sequence
from ...roles.blocked import Roles, length_of, roles_of
from ...roles.padding import Edge, unpadded, without_padding
from ...tactics.pieces import RowPart, Runs
from ...tactics.register_tile import Tile, Values, accumulate, fill, finished, loops
from ...tactics.result import with_init
from ...tensor.tails.tail_tiles import halves
from ..rule import Legal, Neighbourhood, Rule
from ..stages import Stages, pair_of
from .parts import UNKNOWN, Part, legal_tiles, parts_of, tile_cost, tile_size

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
    if length_of(inner[-1]) % length_of(lane) or step(place(weight, known), lane.var) != 1:
        return None
    if any(step(place(s, known), lane.var) != 1 for s in nest.stores()):
        return None
    return Gathering(pixels, blocks[0], lane, taps, (*depth, inner[-1]), image, weight)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a stage is whose pixels are gathered.

    Attributes:
        nest: The stage, as it reads what is padded.
        gathering: What is gathered.
        roles: The roles of its axes where nothing is.
        edges: Where there are elements; padding elsewhere.
        stages: How many stages that are.
    """

    nest: Nest
    gathering: Gathering
    roles: Roles
    edges: tuple[Edge, ...]
    stages: int

    def pays(self, target: Target) -> bool:
        """Whether it costs less than tiles along lines, of which a border is done apart."""
        found, machine = self.gathering, target.machine
        columns, rows = tile_size(length_of(found.block), UNKNOWN, self.roles, target)
        width = representative_extent(self.roles.pixel.extent, IMAGE) or 1
        line = sum(n * tile_cost(columns, size, machine) for n, size in self._tiles(width, rows))
        groups = -(-length_of(found.block) // columns)
        each = groups * tile_cost(columns, rows, machine) / rows + COPIED / length_of(found.lane)
        return width * each < groups * line

    def _tiles(self, width: int, rows: int) -> list[tuple[int, int]]:
        """How many tiles of which size a line has: pixels at a border are alone."""
        taps = {a.var: length_of(a) for a in self.roles.steps}
        along = [e for e in self.edges if e.axis is self.roles.pixel.var]

        def sees_all(pixel: int, edge: Edge) -> bool:
            rest = number(edge.rest)
            rest = representative_extent(edge.rest, IMAGE) or 0 if rest is None else rest
            return edge.step * pixel + min(0, edge.pace * (taps[edge.tap] - 1)) + rest >= 0

        pixels = range(width if along else 0)
        alone = sum(not all(sees_all(p, e) for e in along) for p in pixels)
        whole, rest = divmod(width - alone, rows)
        return [(whole, rows), *((1, n) for n in halves(rows) if rest & n), (alone, 1)]


@dataclass(frozen=True, slots=True)
class GatheredTiles:
    """The decisions.

    Attributes:
        columns: Blocks of output channels in a register tile.
        rows: Pixels in a register tile.
    """

    columns: int
    rows: int


def _match(nest: Nest, target: Target) -> Gathered | None:
    """A stage of an unknown number of pixels in short lines."""
    return _gathered(nest, 1, target)


def _match_unpadded(stages: Stages, target: Target) -> Gathered | None:
    """The same, read through the stage before that pads its image."""
    pair = pair_of(stages)
    joined = None if pair is None else unpadded(*pair)
    return None if joined is None else _gathered(joined, 2, target)


def _gathered(nest: Nest, stages: int, target: Target) -> Gathered | None:
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    padded = collapsed(nest)
    bare, gathering = without_padding(padded), gathering_of(padded, target)
    if bare is None or gathering is None or bare[0].reduction is None:
        return None
    inside, edges = bare
    assert inside.reduction is not None
    roles = roles_of(inside, inside.reduction, edges, target)
    if roles is None or any(e.axis in (roles.lane.var, gathering.block.var) for e in edges):
        return None
    if number(roles.pixel.extent) is not None:
        return None
    found = Gathered(padded, gathering, roles, edges, stages)
    return found if found.pays(target) else None


def _decide(found: Gathered, target: Target) -> GatheredTiles:
    return GatheredTiles(*tile_size(length_of(found.gathering.block), UNKNOWN, found.roles, target))


def _legal(found: Gathered, how: GatheredTiles, target: Target) -> Neighbourhood:
    sizes = legal_tiles(length_of(found.gathering.block), UNKNOWN, found.roles, target)
    registers = f"{target.vector_registers} registers hold the sums and what they are made of"
    columns = sorted({c for c, r in sizes if r == how.rows} | {how.columns})
    rows = sorted({r for c, r in sizes if c == how.columns} | {how.rows})
    return {"columns": Legal(columns, registers), "rows": Legal(rows, registers)}


def _write(found: Gathered, how: GatheredTiles, target: Target) -> Stmt:
    return _Writer(found.nest, found.gathering, (how.columns, how.rows), target).stmt()


GATHERED = Rule("gathered", _match, _decide, _legal, _write)
GATHERED_UNPADDED = Rule(
    "gathered_unpadded", _match_unpadded, _decide, _legal, _write, count=lambda f: f.stages
)


class _Writer:
    """Carries the panel and where one is."""

    def __init__(self, nest: Nest, found: Gathering, tile: tuple[int, int], target: Target) -> None:
        assert nest.reduction is not None
        self.nest, self.found, self.target = nest, found, target
        self.reduction: Reduction = nest.reduction
        self.columns, self.rows = tile
        value = self.reduction.value.dtype
        extents = [length_of(a) for a in found.order]
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
        lanes = length_of(found.lane)
        at, lane = PrimVar("at"), PrimVar("lane")
        index = add(multiply(at, imm(lanes)), lane)
        tile = Binary("floordiv", row, imm(self.rows))
        within = Binary("floormod", row, imm(self.rows))
        place = (self.part, tile, *(a.var for a in found.order[:-1]), within, index)
        load = found.image.then if isinstance(found.image, Select) else found.image

        def stored(value: PrimExpr) -> Stmt:
            store = Store(self.panel, place, substitute_prim(value, {inner.var: index}))
            vector = For(lane, imm(0), imm(lanes), store, "vectorized")
            return loops(depth, For(at, imm(0), imm(length_of(inner) // lanes), vector))

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
        for column in parts_of(length_of(self.found.block), self.columns):
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
            lanes=length_of(found.lane),
        )
        which = add(part.turn, turn)
        place = (self.part, which, *(a.var for a in found.order[:-1]), pixel, found.order[-1].var)
        here: Values = {found.lane.var: lane}
        value = Binary("mul", Load(self.panel, place), substitute_prim(found.weight, here))
        inner = found.order[-1]
        most = UNROLL if part.when is None else UNROLL_RARE
        unroll = max(u for u in range(1, most + 1) if length_of(inner) % u == 0)
        some, steps = PrimVar(inner.var.name), PrimVar("step")
        index = add(multiply(some, imm(unroll)), steps)
        acc = Buffer(
            "acc", (imm(part.size * column.size * tile.lanes),), value.dtype, scope="local"
        )
        added = accumulate(tile, reduction, substitute_prim(value, {inner.var: index}), acc)
        body: Stmt = For(steps, imm(0), imm(unroll), added, "unrolled")
        ahead = self.ahead(column, first, which, multiply(some, imm(unroll)), unroll)
        body = For(some, imm(0), imm(length_of(inner) // unroll), Seq((*ahead, body)))
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
        size = math.prod(map(length_of, found.order)) * column.size * length_of(found.lane)
        if (column.tiles or 0) < 2 or size * weight.dtype.bytes * 4 <= self.target.l2_bytes:
            return []
        line = max(1, 8 * LINE // (weight.dtype.bits * length_of(found.lane)))
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
