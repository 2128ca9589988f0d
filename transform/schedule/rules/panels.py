"""Products whose vector operand lies in panels: weights packed at compile time.

A task takes a panel and some rows: the panel stays in the second cache while tiles of rows pass
over it, each tile reading it once from its first step to its last. No tile has less than its share
of rows where they are known; of unknown ones, a last tile of fitting size takes what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, PrimExpr, imm
from unity.ir.regions import add
from unity.ir.stmt import Stmt
from unity.ir.target import Target

from ..access import collapsed, may_trap
from ..loops import number, parallel, product, sequence
from ..nest import Nest
from ..panel_layout import PanelLayout, panel_layout
from ..panel_tile import micro_kernel
from ..row_blocks import row_blocks
from ..tile import Values
from .result import GRAIN, with_init

MOST_ROWS = 14
"""Rows of a tile, at most."""

MANY = 99
"""What an unknown extent is taken for."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some panels of one kind.

    Attributes:
        begin: The first.
        count: How many.
        vectors: How many of a panel's vectors hold columns.
        masked: Whether the last one does so only in part.
    """

    begin: int
    count: int
    vectors: int
    masked: bool = False


def panels(nest: Nest, target: Target) -> Stmt | None:
    """Applies where the one operand that moves along the columns lies in panels."""
    if nest.reduction is None or may_trap(nest.reduction.value):
        return None
    nest = collapsed(nest)
    reduction = nest.reduction
    assert reduction is not None
    layout = panel_layout(nest, reduction, target)
    if layout is None:
        return None
    moved = replace(reduction, value=layout.value, init=layout.init)
    finish = with_init(moved, layout.finish)

    def part(some: _Part) -> Stmt:
        most = min((target.vector_registers - 1 - some.vectors) // some.vectors, MOST_ROWS)

        def tile(outer: Values, rows: Sequence[PrimExpr]) -> Stmt:
            return micro_kernel(layout, moved, finish, outer, rows, some.vectors, some.masked)

        return _tasks(layout, some, most, target, tile)

    return sequence([part(p) for p in _parts(layout)])


def _parts(layout: PanelLayout) -> list[_Part]:
    """Whole panels, then the last one where it is not."""
    whole, rest = divmod(layout.columns, layout.width)
    parts = [_Part(0, whole, layout.width // layout.lanes)] if whole else []
    if rest:
        parts.append(_Part(whole, 1, -(-rest // layout.lanes), rest % layout.lanes != 0))
    return parts


def _tasks(
    layout: PanelLayout,
    part: _Part,
    most: int,
    target: Target,
    tile: Callable[[Values, Sequence[PrimExpr]], Stmt],
) -> Stmt:
    """The tiles of some panels, shared among threads by panel and block of rows."""
    extent = imm(1) if layout.row is None else layout.row.extent
    others = part.count * math.prod(number(a.extent) or MANY for a in layout.outer)
    blocks = row_blocks(extent, most, others, target.threads)
    names = [a.var.name.removeprefix("v") for a in layout.outer]
    extents = [a.extent for a in layout.outer]
    domain = [
        *zip(names, extents, strict=True),
        ("panel", imm(part.count)),
        ("block", blocks.count),
    ]
    domain = [(name, extent) for name, extent in domain if number(extent) != 1]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = iter(point)

        def coordinate(extent: PrimExpr) -> PrimExpr:
            return imm(0) if number(extent) == 1 else next(at)

        outer: Values = {a.var: coordinate(a.extent) for a in layout.outer}
        outer[layout.panel] = add(imm(part.begin), coordinate(imm(part.count)))

        def rows(first: PrimExpr, size: int) -> Stmt:
            return tile(outer, [add(first, imm(r)) for r in range(size)])

        return blocks.at(coordinate(blocks.count), rows)

    height = simplify(Binary("min", extent, imm(blocks.tiles * most)))
    steps = [a.extent for a in (*layout.sums, layout.depth)]
    work = product([*steps, height, imm(part.vectors * layout.lanes)])
    return parallel(domain, work, GRAIN, body)
