"""The register tile of a product over panels: some rows by the vectors of one panel."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt

from .loops import number, sequence
from .nest import Reduction
from .panel_layout import PanelLayout
from .tile import Tile, Values, accumulate, fill, loops, write_back

UNROLL = 4
"""Steps in a row."""
IN_FLIGHT = 8
"""Accumulators that keep the multipliers busy: two a cycle, each takes four."""


def micro_kernel(
    layout: PanelLayout,
    reduction: Reduction,
    finish: Stmt,
    outer: Values,
    rows: Sequence[PrimExpr],
    vectors: int,
    masked: bool,
) -> Stmt:
    """One tile: accumulators in registers over all steps, then the stores.

    Few accumulators are had several times, each for every so many-th step, and added up.

    Args:
        layout: The roles of the axes.
        reduction: What is reduced, over the layout's variables.
        finish: The stores, over the layout's variables.
        outer: The values of the outer axes' variables and of the panel's.
        rows: The values of the row axis.
        vectors: How many vectors of the panel there are to compute.
        masked: Whether the last one reaches past the last column.
    """
    lane = PrimVar("lane")
    panel = outer[layout.panel]
    tile = Tile(
        row=None if layout.row is None else layout.row.var,
        rows=tuple(rows),
        column=(layout.inside,),
        columns=tuple((add(imm(v * layout.lanes), lane),) for v in range(vectors)),
        lane=lane,
        lanes=layout.lanes,
        limit=add(imm(layout.columns), multiply(panel, imm(-layout.width))),
        masked=frozenset({vectors - 1} if masked else ()),
    )
    size = len(rows) * vectors
    copies = max(1, min(UNROLL, IN_FLIGHT // size, number(layout.depth.extent) or UNROLL))
    dtype = reduction.value.dtype
    buffers = [
        Buffer("acc", (imm(size * layout.lanes),), dtype, scope="local") for _ in range(copies)
    ]
    value = substitute_prim(reduction.value, outer)
    steps = _steps(layout, reduction, value, tile, buffers)
    done = write_back(tile, reduction, substitute_stmt(finish, outer), buffers[0])
    stmts = [fill(tile, reduction.identity, b) for b in buffers]
    result: Stmt = Seq(
        (*stmts, loops(layout.sums, steps), *_summed(reduction, tile, buffers), done)
    )
    for buffer in reversed(buffers):
        result = Allocate(buffer, result)
    return result


def _steps(
    layout: PanelLayout,
    reduction: Reduction,
    value: PrimExpr,
    tile: Tile,
    buffers: Sequence[Buffer],
) -> Stmt:
    """All steps of the innermost loop: some in a row, then those left."""
    reading = Tile(tile.row, tile.rows, tile.column, tile.columns, tile.lane, tile.lanes)
    depth, extent = layout.depth.var, layout.depth.extent
    known = number(extent)

    def at(index: PrimExpr, buffer: Buffer) -> Stmt:
        return accumulate(reading, reduction, substitute_prim(value, {depth: index}), buffer)

    copies = len(buffers)
    count = UNROLL if known is None else max(1, min(UNROLL, known) // copies * copies)
    whole = extent // count if known is None else imm(known // count)
    outer, inner = PrimVar(depth.name), PrimVar(f"{depth.name}_step")
    first = add(multiply(outer, imm(count)), multiply(inner, imm(copies)))
    group = sequence([at(add(first, imm(i)), b) for i, b in enumerate(buffers)])
    parts: list[Stmt] = [
        For(outer, imm(0), whole, For(inner, imm(0), imm(count // copies), group, "unrolled"))
    ]
    if known is None or known % count:
        left = extent % count if known is None else imm(known % count)
        rest = PrimVar(f"{depth.name}_rest")
        index = add(multiply(whole, imm(count)), rest)
        parts.append(For(rest, imm(0), left, at(index, buffers[0])))
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
