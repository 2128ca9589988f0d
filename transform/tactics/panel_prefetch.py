"""Weights fetched ahead: while tiles of rows pass over a panel, the next one comes to the cache.

Weights of a large model come from memory at each call, and only the first tile of rows over a panel
would ask for it: the others would find it and ask for nothing. 128 rows by 768 x 3072 floats take
4.2 ms without and 3.5 ms with it on one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from unity.arith import simplify
from unity.ir.aligned import LINE
from unity.ir.prim_expr import Binary, Intrinsic, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Evaluate, For, ForKind, Let, Stmt
from unity.ir.visit import substitute_prim
from unity.machine.target import Target

from ..blocks.extents import ceildiv, number, product
from ..roles.panels import PanelLayout
from .register_tile import Values
from .unrolling import UNROLL

Ahead: TypeAlias = Callable[[PrimExpr, int], Stmt]
"""What goes before steps in a row: from how many times there were as many before, and how many."""

STREAM = 8 << 10
"""Bytes between what is read and what is fetched where each panel is read only once."""
LEAST_ROWS = 4
"""Rows that are worth it: fewer do so little that the memory's own prefetching keeps up."""


@dataclass(frozen=True, slots=True)
class PanelAhead:
    """What tiles fetch.

    Attributes:
        layout: The roles of the axes.
        line: Elements that one fetch brings.
        once: Whether there is one tile of rows only.
        each: Fetches before each few steps.
        share: What `each` is, where it is a variable.
        rows: How many rows there are; where there are less than `LEAST_ROWS`, nothing is fetched.
    """

    layout: PanelLayout
    line: int
    once: bool
    each: PrimExpr
    share: PrimExpr
    rows: PrimExpr

    def around(self, tiles: Stmt) -> Stmt:
        """All tiles of a task."""
        return Let(self.each, self.share, tiles) if isinstance(self.each, PrimVar) else tiles

    def of(self, index: PrimExpr, outer: Values, begin: PrimExpr, steps: int) -> Ahead:
        """What a tile fetches: its share of as many steps as it takes, from those behind them.

        Args:
            index: The tile, counted from the first rows.
            outer: The values of the outer axes and of the panel.
            begin: The first step that the tile takes.
            steps: How many it takes.
        """
        layout, load = self.layout, self.layout.load
        behind = STREAM // load.dtype.bytes if self.once else steps * layout.stride

        def ahead(group: PrimExpr, count: int) -> Stmt:
            share = multiply(self.each, imm(-(-steps // count) * self.line))
            last = simplify(Binary("sub", imm(steps * layout.stride), share))
            first = imm(0) if self.once else Binary("min", multiply(index, share), last)
            nth = PrimVar("line")
            place = multiply(add(multiply(group, self.each), nth), imm(self.line))
            inside = add(add(imm(behind), first), place)
            at: Values = {**outer, layout.depth.var: begin, layout.inside: inside}
            if layout.chunk is not None:
                at[layout.chunk.var] = imm(0)
            fetch = Intrinsic("prefetch", (substitute_prim(load, at),), load.dtype)
            kind: ForKind = "serial" if isinstance(self.each, PrimVar) else "unrolled"
            return For(nth, imm(0), self.each, Evaluate(fetch), kind)

        return ahead


def panel_ahead(
    layout: PanelLayout, panels: int, tiles: PrimExpr, rows: PrimExpr, target: Target
) -> PanelAhead | None:
    """What is to be fetched; None where weights are few, so that they stay in the cache.

    Args:
        layout: The roles of the axes.
        panels: How many panels there are.
        tiles: How many tiles of rows pass over each.
        rows: How many rows those are.
        target: Whose cache it is.
    """
    load, count, known = layout.load, number(tiles), number(rows)
    size = number(product([*load.buffer.shape, imm(load.dtype.bytes)]))
    if size is None or size <= target.l2_bytes // 2:
        return None
    if layout.sums or (panels < 2 and count != 1) or (known is not None and known < LEAST_ROWS):
        return None
    line = max(1, LINE // load.dtype.bytes)
    share = simplify(ceildiv(imm(-(-UNROLL * layout.stride // line)), tiles))
    if count is not None:
        return PanelAhead(layout, line, count == 1, share, share, rows)
    return PanelAhead(layout, line, False, PrimVar("each"), share, rows)
