"""Products in vector registers: panels in groups of depth, where dot products are instructions.

A task takes a panel and some rows, as `panels` does; the sums of a tile are kept in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.regions import add
from unity.ir.representative import LENGTH, representative_extent
from unity.ir.stmt import Stmt
from unity.machine.dot_units import has_dot
from unity.machine.target import Target

from ...blocks.access import collapsed, may_trap
from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import sequence
from ...roles.grouped_panels import GroupedLayout, grouped_layout
from ...tactics.lane_sums import LaneSums
from ...tactics.register_tile import Values
from ...tactics.result import with_init
from ...tactics.row_blocks import row_blocks
from ...tactics.threads import parallel
from ..rule import Legal, Neighbourhood, Rule, worth

MOST_ROWS = 12
"""Rows of a tile, at most."""


@dataclass(frozen=True, slots=True)
class LaneTiles:
    """The decisions.

    Attributes:
        rows: Rows of a register tile, at most.
        grain: Multiply-adds that a task has at least.
    """

    rows: int
    grain: int


def _match(nest: Nest, target: Target) -> LaneSums | None:
    """A product whose right operand lies in panels of groups, the target multiplying lanes."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = grouped_layout(nest, reduction)
    if layout is None or layout.sums or not number(layout.depth.extent):
        return None
    dtypes = (layout.left.dtype, layout.right.dtype, reduction.value.dtype)
    lanes = target.vector_bits // reduction.value.dtype.bits
    if layout.width % lanes or not has_dot(target, "lanes", *dtypes):
        return None
    reduction = replace(reduction, init=layout.init)
    return LaneSums(layout, reduction, with_init(reduction, layout.finish), lanes)


def _decide(_sums: LaneSums, target: Target) -> LaneTiles:
    return LaneTiles(MOST_ROWS, target.machine.grain("multiply_adds"))


def _legal(_sums: LaneSums, _decisions: LaneTiles, _target: Target) -> Neighbourhood:
    why = f"a tile has up to {MOST_ROWS} rows, fewer where registers hold fewer sums"
    return {"rows": Legal(range(1, MOST_ROWS + 1), why), "grain": worth("multiply-adds")}


def _write(sums: LaneSums, how: LaneTiles, target: Target) -> Stmt:
    layout: GroupedLayout = sums.layout
    whole, rest = divmod(layout.columns, layout.width)
    lanes = sums.lanes
    stmts: list[Stmt] = []
    if whole:
        stmts.append(_tasks(sums, how, (0, whole), layout.width // lanes, False, target))
    if rest:
        masked = rest % lanes != 0
        stmts.append(_tasks(sums, how, (whole, 1), -(-rest // lanes), masked, target))
    return sequence(stmts)


LANE_DOTS = Rule("lane_dots", _match, _decide, _legal, _write)


def _tasks(
    sums: LaneSums,
    how: LaneTiles,
    panels: tuple[int, int],
    vectors: int,
    masked: bool,
    target: Target,
) -> Stmt:
    """The tiles of some panels, shared among threads by panel and block of rows."""
    layout: GroupedLayout = sums.layout
    begin, count = panels
    extent = imm(1) if layout.row is None else layout.row.extent
    most = min((target.vector_registers - 1 - vectors) // vectors, how.rows)
    others = count * math.prod(representative_extent(a.extent) or LENGTH for a in layout.outer)
    blocks = row_blocks(extent, most, others, target.threads)
    names = [a.var.name.removeprefix("v") for a in layout.outer]
    domain = [
        *zip(names, (a.extent for a in layout.outer), strict=True),
        ("panel", imm(count)),
        ("block", blocks.count),
    ]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        outer[layout.panel] = add(imm(begin), coordinate(imm(count)))

        def rows(first: PrimExpr, size: int, _: PrimExpr) -> Stmt:
            return sums.tile(outer, [add(first, imm(r)) for r in range(size)], vectors, masked)

        return blocks.at(coordinate(blocks.count), rows)

    height = simplify(Binary("min", extent, imm(blocks.tiles * blocks.size)))
    work = product([layout.depth.extent, height, imm(vectors * sums.lanes)])
    return parallel(domain, work, how.grain, body)
