"""The left operand of a product on tiles: rows of a block, where they lie or copied with zeros."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Compare, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, IfThen, Seq, Stmt, Store
from unity.ir.visit import substitute_prim
from unity.machine.dot_units import SIDE, group_of

from ..blocks.extents import ceildiv, number
from ..blocks.tree import sequence
from ..roles.grouped_panels import GroupedLayout, evenly
from ..schedule.marked import Access
from .register_tile import Values
from .tile_sums import depth_of

TALL = 2
"""Tiles of rows that are done at once."""
Sources = tuple[Access, ...]
"""For each of these tiles, where an element (row, group, place) is."""
KernelOf = Callable[[PrimVar, Sources, PrimExpr, PrimExpr], Stmt]
"""What is done at some tiles: the step, their elements, the first row, how many there are."""


class LeftTiles:
    """Rows in tiles of 16, two at a time.

    Rows that are contiguous in depth are read where they lie, but for those that fill no tile;
    those, and all others, are copied tile by tile, and what is missing of a tile is zero.

    Args:
        layout: The roles of the axes; no other axis than its depth is summed over.
        outer: The values of the outer axes.
        rows: How many rows there are.
        first: The block's first row.
        most: How many rows it has at most.
    """

    def __init__(
        self, layout: GroupedLayout, outer: Values, rows: PrimExpr, first: PrimExpr, most: int
    ) -> None:
        self.layout, self.outer, self.first = layout, outer, first
        known = number(rows)
        whole = known is not None and known % most == 0
        self.count = imm(most) if whole else simplify(Binary("min", imm(most), rows - first))
        dtype = layout.left.dtype
        self.deep = depth_of(dtype)
        self.steps = (number(layout.depth.extent) or 0) // SIDE
        self.in_place = self._in_place()
        tiles = 1 if self.in_place else most // SIDE
        shape = (tiles, self.steps, SIDE, self.deep)
        self.copy = Buffer("left", tuple(map(imm, shape)), dtype, scope="local", align=64)

    def within(self, body: Stmt) -> Stmt:
        """A statement that reads the tiles, behind what makes the copies it needs."""
        count, known = self.count, number(self.count)
        if not self.in_place:
            tile = PrimVar("tile")
            copies: Stmt = For(tile, imm(0), ceildiv(count, imm(SIDE)), self._copied(tile, tile))
        elif known is not None and known % SIDE == 0:
            return body
        else:
            copies = self._copied(imm(0), self._last)
            if known is None:
                copies = IfThen(Compare("gt", count % (TALL * SIDE), imm(0)), copies)
        return Allocate(self.copy, Seq((copies, body)))

    def runs(self, kernel: KernelOf) -> Stmt:
        """All tiles, two at a time, then what is left."""
        tall = TALL * SIDE
        known = number(self.count)
        pair = PrimVar("pair")
        pairs = imm(known // tall) if known is not None else simplify(self.count // tall)
        whole = self._kernel(kernel, multiply(pair, imm(TALL)), (True, True), imm(tall))
        parts: list[Stmt] = [For(pair, imm(0), pairs, whole)]
        at = multiply(pairs, imm(TALL))
        left = simplify(self.count % tall) if known is None else imm(known % tall)
        one = self._kernel(kernel, at, (number(left) == SIDE,), left)
        two = self._kernel(kernel, at, (True, False), left)
        if known is None:
            few = IfThen(Compare("gt", left, imm(0)), one)
            parts.append(IfThen(Compare("gt", left, imm(SIDE)), two, few))
        elif known % tall:
            parts.append(one if known % tall <= SIDE else two)
        return sequence(parts if number(pairs) != 0 else parts[1:])

    def _kernel(
        self, kernel: KernelOf, at: PrimExpr, full: Sequence[bool], count: PrimExpr
    ) -> Stmt:
        """The kernel at tiles from `at` on, of which some have all rows."""
        step = PrimVar("step")
        sources = tuple(self._source(add(at, imm(i)), step, whole) for i, whole in enumerate(full))
        return kernel(step, sources, add(self.first, multiply(at, imm(SIDE))), count)

    def _source(self, tile: PrimExpr, step: PrimVar, full: bool) -> Access:
        group = group_of(self.layout.left.dtype)
        if not self.in_place or not full:
            slot = imm(0) if self.in_place else tile
            return lambda x: Load(
                self.copy, (slot, step, x[0], add(multiply(x[1], imm(group)), x[2]))
            )
        begin = add(self.first, multiply(tile, imm(SIDE)))

        def element(x: Sequence[PrimVar]) -> Load:
            load = self._element(add(begin, x[0]), add(multiply(step, imm(SIDE)), x[1]), x[2])
            assert isinstance(load, Load)
            return load

        return element

    def _element(self, row: PrimExpr, depth: PrimExpr, place: PrimExpr) -> PrimExpr:
        layout = self.layout
        values: Values = {**self.outer, layout.depth.var: depth, layout.place.var: place}
        if layout.row is not None:
            values[layout.row.var] = row
        return substitute_prim(layout.left, values)

    def _in_place(self) -> bool:
        """Whether tiles can be loaded from where the operand lies."""
        if not isinstance(self.layout.left, Load) or self.layout.left.predicate is not None:
            return False
        group = group_of(self.layout.left.dtype)
        row, step, k, p = (PrimVar(x) for x in ("row", "step", "k", "p"))
        load = self._element(add(self.first, row), add(multiply(step, imm(SIDE)), k), p)
        assert isinstance(load, Load)
        return evenly(load, [(row, None), (k, group), (p, 1)])

    @property
    def _last(self) -> PrimExpr:
        """The last tile."""
        known = number(self.count)
        if known is not None:
            return imm((known - 1) // SIDE)
        return simplify((self.count - 1) // SIDE)

    def _copied(self, slot: PrimExpr, tile: PrimExpr) -> Stmt:
        """A tile's rows copied, and zeros for those it lacks."""
        row, zero = PrimVar("row"), PrimVar("row")
        begin = multiply(tile, imm(SIDE))
        some = simplify(Binary("min", imm(SIDE), self.count - begin))
        group = imm(group_of(self.layout.left.dtype))

        def line(r: PrimVar, value: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> Stmt:
            step, lane = PrimVar("step"), PrimVar("lane")
            depth = add(multiply(step, imm(SIDE)), Binary("floordiv", lane, group))
            at = (slot, step, r, lane)
            store = Store(self.copy, at, value(depth, Binary("floormod", lane, group)))
            vector = For(lane, imm(0), imm(self.deep), store, "vectorized")
            return For(step, imm(0), imm(self.steps), vector)

        here = add(self.first, begin)
        copied = line(row, lambda depth, place: self._element(add(here, row), depth, place))
        nothing = line(zero, lambda *_: imm(0, self.layout.left.dtype))
        parts = [For(row, imm(0), some, copied)]
        if number(some) != SIDE:
            parts.append(For(zero, some, simplify(imm(SIDE) - some), nothing))
        return sequence(parts)
