"""Products on matrix tiles: panels in groups of depth, two by two tiles of sums at a time.

A task takes some panels and a block of rows. Tiles of rows pass over a panel, which stays in a
cache; what the task reads next is fetched meanwhile. Sums go through a little memory, from which
the stores of the stage are done row by row. The left operand is read where it lies if its rows are
contiguous in depth and fill whole steps; else, and where rows fill no tile, from a copy with zeros.
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
from unity.machine.dot_units import SIDE, group_of, has_dot
from unity.machine.target import Target

from ...blocks.access import collapsed, may_trap
from ...blocks.extents import ceildiv, number, product
from ...blocks.nest import Nest, Reduction
from ...blocks.tree import sequence
from ...roles.grouped_panels import GroupedLayout, grouped_layout
from ...schedule.marked import Access
from ...tactics.left_tiles import TALL, LeftTiles, Sources
from ...tactics.register_tile import Values, finished
from ...tactics.result import with_init
from ...tactics.threads import parallel
from ...tactics.tile_sums import configured, depth_of, tile_sums
from ..rule import Legal, Neighbourhood, Rule, worth

MOST_BLOCK = 1024
"""Rows of a block, at most."""
PASSES = 4
"""Tiles of rows, two at a time, among which fetching the next panel is shared at most."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product on tiles: the roles of its axes, and what is reduced."""

    layout: GroupedLayout
    reduction: Reduction


@dataclass(frozen=True, slots=True)
class TileBlocks:
    """The decisions.

    Attributes:
        rows: Rows of a block, which a task takes.
        tasks: Tasks that panels are cut in runs for, where blocks of rows are fewer.
        grain: Multiply-adds that a task has at least.
    """

    rows: int
    tasks: int
    grain: int


def _match(nest: Nest, target: Target) -> Product | None:
    """A product whose right operand lies in panels of groups, the target multiplying tiles."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = grouped_layout(nest, reduction)
    if layout is None or layout.sums or layout.width not in (SIDE, 2 * SIDE):
        return None
    steps = number(layout.depth.extent)
    dtypes = (layout.left.dtype, layout.right.dtype, reduction.value.dtype)
    if not steps or steps % SIDE or not has_dot(target, "tile", *dtypes):
        return None
    return Product(layout, replace(reduction, init=layout.init))


def _rows(layout: GroupedLayout) -> PrimExpr:
    return imm(1) if layout.row is None else layout.row.extent


def _decide(product: Product, target: Target) -> TileBlocks:
    """Blocks of rows of the left operand such as half of the second cache holds."""
    layout, tall = product.layout, TALL * SIDE
    steps, dtype = (number(layout.depth.extent) or 0) // SIDE, layout.left.dtype
    depth = steps * depth_of(dtype) * dtype.bits // 8
    most = max(1, (target.l2_bytes or 1 << 19) // 2 // (depth * tall)) * tall
    known = number(_rows(layout))
    if known is None:
        rows = min(most, 8 * tall)
    else:
        rows = -(-known // -(-known // most) // tall) * tall if known else tall
    tasks = target.tasks if target.threads > 1 else 1
    return TileBlocks(rows, tasks, target.machine.grain("tile_multiply_adds"))


def _legal(_product: Product, decisions: TileBlocks, _target: Target) -> Neighbourhood:
    tall = TALL * SIDE
    most = max(MOST_BLOCK, decisions.rows)
    return {
        "rows": Legal(range(tall, most + 1, tall), f"{TALL} tiles of {SIDE} rows go together"),
        "tasks": Legal(range(1, 1025), "panels are cut in up to 1024 runs"),
        "grain": worth("multiply-adds"),
    }


def _write(product: Product, decisions: TileBlocks, target: Target) -> Stmt:
    return _Plan(product, decisions, target).stmt()


MATRIX_TILES = Rule("matrix_tiles", _match, _decide, _legal, _write)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some panels of one kind: the first, how many, tiles that hold columns, and of the last."""

    begin: int
    count: int
    tiles: int
    masked: bool = False


class _Plan:
    """Writes the stage.

    Args:
        of: The product.
        how: The decisions.
        target: What for.
    """

    def __init__(self, of: Product, how: TileBlocks, target: Target) -> None:
        layout, reduction = of.layout, of.reduction
        self.layout, self.reduction, self.how, self.target = layout, reduction, how, target
        self.finish = with_init(reduction, layout.finish)
        self.rows = _rows(layout)
        left, right = layout.left.dtype, layout.right.dtype
        self.registers = tile_sums(left, right, reduction.value.dtype, TALL)
        self.steps = (number(layout.depth.extent) or 0) // SIDE
        self.lanes = min(SIDE, target.vector_bits // reduction.value.dtype.bits)
        self.sums = Buffer(
            "sums",
            (imm(TALL * SIDE), imm(layout.width)),
            reduction.value.dtype,
            scope="local",
            align=LINE,
        )

    def stmt(self) -> Stmt:
        """All parts, each in parallel."""
        return sequence([self._tasks(p) for p in self._parts()])

    def _parts(self) -> list[_Part]:
        """Whole panels, then the last one where it is not."""
        layout = self.layout
        whole, rest = divmod(layout.columns, layout.width)
        parts = [_Part(0, whole, layout.width // SIDE)] if whole else []
        if rest:
            parts.append(_Part(whole, 1, -(-rest // SIDE), rest % SIDE != 0))
        return parts

    def _tasks(self, part: _Part) -> Stmt:
        """The panels of a part, shared among threads by block of rows and run of panels."""
        layout = self.layout
        block = self.how.rows
        blocks = ceildiv(self.rows, imm(block))
        others = math.prod(number(a.extent) or 1 for a in layout.outer) * (number(blocks) or 1)
        runs = min(part.count, max(1, -(-self.how.tasks // others)))
        run = -(-part.count // runs)
        runs = -(-part.count // run)
        names = [a.var.name.removeprefix("v") for a in layout.outer]
        domain = [
            *zip(names, (a.extent for a in layout.outer), strict=True),
            ("block", blocks),
            ("run", imm(runs)),
        ]
        domain = [(name, extent) for name, extent in domain if number(extent) != 1]

        def body(point: Sequence[PrimExpr]) -> Stmt:
            at = iter(point)

            def coordinate(extent: PrimExpr) -> PrimExpr:
                return imm(0) if number(extent) == 1 else next(at)

            outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
            first = multiply(coordinate(blocks), imm(block))
            begin = multiply(coordinate(imm(runs)), imm(run))
            left = simplify(Binary("min", imm(run), imm(part.count) - begin))
            return self._task(part, outer, (first, block), (add(imm(part.begin), begin), left))

        height = simplify(Binary("min", self.rows, imm(block)))
        depth = [a.extent for a in (layout.depth, layout.place)]
        work = product([*depth, height, imm(run * layout.width)])
        return configured(
            self.registers,
            parallel(domain, work, self.how.grain, body),
        )

    def _task(
        self,
        part: _Part,
        outer: Values,
        rows: tuple[PrimExpr, int],
        panels: tuple[PrimExpr, PrimExpr],
    ) -> Stmt:
        """Some panels by a block of rows."""
        layout = self.layout
        first, most = rows
        begin, count = panels
        left = LeftTiles(layout, outer, self.rows, first, most)
        panel = PrimVar("panel")
        here: Values = {**outer, layout.panel: panel}

        def kernel(step: PrimVar, sources: Sources, row: PrimExpr, count: PrimExpr) -> Stmt:
            return self._kernel(part, here, step, sources, (row, count))

        return left.within(For(panel, begin, count, left.runs(kernel)))

    def _kernel(
        self,
        part: _Part,
        outer: Values,
        step: PrimVar,
        sources: Sources,
        rows: tuple[PrimExpr, PrimExpr],
    ) -> Stmt:
        """One block of sums: zero, all steps, the stores."""
        sums = self.registers.part(len(sources), part.tiles)
        body = sums.step(lambda i: sources[i], lambda j: self._right(outer, step, j))
        if len(sources) == TALL and not self.layout.right.buffer.scope.startswith("local"):
            body = sequence([*self._ahead(part, outer, step, rows[0]), body])
        steps = For(step, imm(0), imm(self.steps), body)
        stored = sums.store(self._slot)
        stmts = (sums.zero(), steps, stored, self._write_back(part, outer, rows))
        return Allocate(self.sums, Seq(stmts))

    def _right(self, outer: Values, step: PrimVar, tile: int) -> Access:
        """Elements (group, column, place) of a tile of the right operand."""
        layout = self.layout

        def element(x: Sequence[PrimVar]) -> Load:
            depth, column, place = x
            values: Values = {
                **outer,
                layout.depth.var: add(multiply(step, imm(SIDE)), depth),
                layout.inside: add(imm(tile * SIDE), column),
                layout.place.var: place,
            }
            load = substitute_prim(layout.right, values)
            assert isinstance(load, Load)
            return load

        return element

    def _ahead(self, part: _Part, outer: Values, step: PrimVar, row: PrimExpr) -> list[Stmt]:
        """Fetches of the next panel, shared among the first tiles of rows that pass over this."""
        layout = self.layout
        tall = TALL * SIDE
        passes = min(PASSES, max(1, (number(self.rows) or PASSES * tall) // tall))
        depths = -(-SIDE // passes)
        line = LINE // layout.right.dtype.bytes
        lines = layout.width * group_of(layout.right.dtype) // line
        turn = Binary("floormod", Binary("floordiv", row, imm(tall)), imm(passes))
        last = part.begin + part.count - 1
        panel = simplify(Binary("min", add(outer[layout.panel], imm(1)), imm(last)))
        begin = add(multiply(step, imm(SIDE)), multiply(turn, imm(depths)))
        stmts: list[Stmt] = []
        for d in range(depths):
            for at in range(lines):
                values: Values = {
                    **outer,
                    layout.panel: panel,
                    layout.depth.var: add(begin, imm(d)),
                    layout.inside: imm(at * SIDE),
                    layout.place.var: imm(0),
                }
                there = substitute_prim(layout.right, values)
                stmts.append(Evaluate(Intrinsic("prefetch", (there,), there.dtype)))
        return stmts

    def _slot(self, i: int, j: int) -> Access:
        """Where sums are kept for a moment."""
        return lambda x: Load(self.sums, (add(imm(i * SIDE), x[0]), add(imm(j * SIDE), x[1])))

    def _write_back(self, part: _Part, outer: Values, rows: tuple[PrimExpr, PrimExpr]) -> Stmt:
        """The stage's stores, row by row."""
        layout, lanes = self.layout, self.lanes
        first, count = rows
        row, lane = PrimVar("row"), PrimVar("lane")
        stmts: list[Stmt] = []
        vectors = part.tiles * SIDE // lanes
        for v in range(vectors):
            column = add(imm(v * lanes), lane)
            values: Values = {**outer, layout.inside: column}
            if layout.row is not None:
                values[layout.row.var] = add(first, row)
            stmt = finished(self.reduction, Load(self.sums, (row, column)), self.finish, values)
            if part.masked and v >= vectors - SIDE // lanes:
                limit = imm(layout.columns - part.begin * layout.width)
                stmt = IfThen(Compare("lt", column, limit), stmt)
            stmts.append(stmt)
        vector = For(lane, imm(0), imm(lanes), sequence(stmts), "vectorized")
        return For(row, imm(0), count, vector)
