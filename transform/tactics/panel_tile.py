"""The register tile of a product over panels: some rows by the vectors of one panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.machine import MACHINE

from ..blocks.extents import number
from ..blocks.nest import Reduction
from ..blocks.tree import sequence
from ..roles.panels import PanelLayout
from .panel_prefetch import Ahead
from .register_tile import Tile, Values, accumulate, fill, loops
from .unrolling import UNROLL

IN_FLIGHT = MACHINE.fma_in_flight
"""Accumulators that keep the multipliers busy: two a cycle, each takes four."""


@dataclass(frozen=True, slots=True)
class Run:
    """Some steps of all, where a tile takes them in several runs with other tiles between.

    Attributes:
        index: Which run.
        count: How many there are.
        steps: How many steps each has.
        kept: Where accumulators are between runs.
        place: Where those of the tile begin.
    """

    index: PrimExpr
    count: int
    steps: int
    kept: Buffer
    place: PrimExpr

    @property
    def begin(self) -> PrimExpr:
        """The first step."""
        return multiply(self.index, imm(self.steps))


@dataclass(frozen=True, slots=True)
class PanelTile:
    """Where a tile is.

    Attributes:
        outer: The values of the outer axes' variables and of the panel's.
        rows: The values of the row axis.
        vectors: How many vectors of the panel there are to compute, of each chunk.
        masked: Whether the last one (of each) reaches past the last column.
        ahead: What goes before each few steps.
        run: The steps it takes, None for all.
    """

    outer: Values
    rows: Sequence[PrimExpr]
    vectors: int
    masked: bool
    ahead: Ahead | None = None
    run: Run | None = None


def micro_kernel(layout: PanelLayout, reduction: Reduction, finish: Stmt, at: PanelTile) -> Stmt:
    """One tile: accumulators in registers over all its steps, then the stores.

    Few accumulators are had several times, each for every so many-th step, and added up.

    Args:
        layout: The roles of the axes.
        reduction: What is reduced, over the layout's variables.
        finish: The stores, over the layout's variables.
        at: The tile.
    """
    lane = PrimVar("lane")
    panel = at.outer[layout.panel]
    inside = [add(imm(v * layout.lanes), lane) for v in range(at.vectors)]
    columns: list[tuple[PrimExpr, ...]] = [(j,) for j in inside]
    if layout.chunk is not None:
        columns = [(j, imm(i)) for i in range(layout.chunks) for j in inside]
    tile = Tile(
        row=None if layout.row is None else layout.row.var,
        rows=tuple(at.rows),
        column=(layout.inside,) if layout.chunk is None else (layout.inside, layout.chunk.var),
        columns=tuple(columns),
        lane=lane,
        lanes=layout.lanes,
        limit=add(imm(layout.columns), multiply(panel, imm(-layout.width))),
        masked=frozenset(range(at.vectors - 1, len(columns), at.vectors) if at.masked else ()),
    )
    size = len(at.rows) * len(columns)
    steps = number(layout.depth.extent) if at.run is None else at.run.steps
    copies = max(1, min(UNROLL, IN_FLIGHT // size, steps or UNROLL))
    dtype = reduction.value.dtype
    first, *others = (
        Buffer("acc", (imm(size * layout.lanes),), dtype, scope="local") for _ in range(copies)
    )
    start = fill(tile, reduction.identity, first)
    done = _write_back(tile, layout.results, substitute_stmt(finish, at.outer), first)
    if at.run is not None:
        kept, place, last = at.run.kept, at.run.place, imm(at.run.count - 1)
        resumed = _moved(tile, first, imm(0), kept, place)
        start = IfThen(Compare("eq", at.run.index, imm(0)), start, resumed)
        left = _moved(tile, kept, place, first, imm(0))
        done = IfThen(Compare("eq", at.run.index, last), done, left)
    result: Stmt = Seq(
        (
            start,
            *(fill(tile, reduction.identity, b) for b in others),
            loops(layout.sums, _steps(layout, reduction, tile, (first, *others), at)),
            *_summed(reduction, tile, (first, *others)),
            done,
        )
    )
    for buffer in reversed((first, *others)):
        result = Allocate(buffer, result)
    return result


def _write_back(tile: Tile, results: Sequence[PrimVar], finish: Stmt, buffer: Buffer) -> Stmt:
    """The stores for every lane, of every row and vector; all chunks' sums are at hand there."""
    stmts: list[Stmt] = []
    vectors = len(tile.columns) // len(results)
    for r in range(len(tile.rows)):
        for c in range(vectors):
            sums = [PrimVar(v.name, v.dtype) for v in results]
            values: Values = {**tile.values(r, c), **dict(zip(results, sums, strict=True))}
            stmt = substitute_stmt(finish, values)
            for i, var in enumerate(sums):
                stmt = Let(var, Load(buffer, (tile.slot(r, i * vectors + c),)), stmt)
            if c in tile.masked:
                stmt = IfThen(Compare("lt", tile.columns[c][0], tile.limit), stmt)
            stmts.append(stmt)
    return tile.vectorized(sequence(stmts))


def _moved(tile: Tile, to: Buffer, there: PrimExpr, source: Buffer, here: PrimExpr) -> Stmt:
    """The accumulators copied from one place to another."""
    slots = [tile.slot(r, c) for r in range(len(tile.rows)) for c in range(len(tile.columns))]
    copies = [Store(to, (add(there, s),), Load(source, (add(here, s),))) for s in slots]
    return tile.vectorized(sequence(copies))


def _steps(
    layout: PanelLayout,
    reduction: Reduction,
    tile: Tile,
    buffers: Sequence[Buffer],
    at: PanelTile,
) -> Stmt:
    """All steps of the innermost loop: some in a row, then those left."""
    reading = Tile(tile.row, tile.rows, tile.column, tile.columns, tile.lane, tile.lanes)
    value = substitute_prim(reduction.value, at.outer)
    depth, extent = layout.depth.var, layout.depth.extent
    begin: PrimExpr = imm(0)
    if at.run is not None:
        begin, extent = at.run.begin, imm(at.run.steps)
    known = number(extent)

    def step(index: PrimExpr, buffer: Buffer) -> Stmt:
        there = substitute_prim(value, {depth: add(begin, index)})
        return accumulate(reading, reduction, there, buffer)

    copies = len(buffers)
    count = UNROLL if known is None else max(1, min(UNROLL, known) // copies * copies)
    whole = extent // count if known is None else imm(known // count)
    outer, inner = PrimVar(depth.name), PrimVar(f"{depth.name}_step")
    first = add(multiply(outer, imm(count)), multiply(inner, imm(copies)))
    group = sequence([step(add(first, imm(i)), b) for i, b in enumerate(buffers)])
    few: Stmt = For(inner, imm(0), imm(count // copies), group, "unrolled")
    if at.ahead is not None:
        few = Seq((at.ahead(outer, count), few))
    parts: list[Stmt] = [For(outer, imm(0), whole, few)]
    if known is None or known % count:
        left = extent % count if known is None else imm(known % count)
        rest = PrimVar(f"{depth.name}_rest")
        index = add(multiply(whole, imm(count)), rest)
        parts.append(For(rest, imm(0), left, step(index, buffers[0])))
    return sequence(parts)


def _summed(reduction: Reduction, tile: Tile, buffers: Sequence[Buffer]) -> list[Stmt]:
    """The copies of the accumulators joined in the first ones."""
    total, *others = buffers
    stmts: list[Stmt] = []
    for r in range(len(tile.rows)):
        for c in range(len(tile.columns)):
            slot = tile.slot(r, c)
            value: PrimExpr = Load(total, (slot,))
            for buffer in others:
                value = Binary(reduction.op, value, Load(buffer, (slot,)))
            stmts.append(Store(total, (slot,), value))
    return [tile.vectorized(sequence(stmts))] if others else []
