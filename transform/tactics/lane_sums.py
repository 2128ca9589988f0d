"""Sums of products of narrow numbers in vector registers: some rows by the vectors of a panel.

Each step takes a group of neighbours in depth of a row, broadcast, and those of a register of
columns: one instruction adds the group's products to 16 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.dot_units import group_of

from ..blocks.extents import number
from ..blocks.nest import Reduction
from ..blocks.tree import sequence
from ..roles.grouped_panels import GroupedLayout, evenly
from ..schedule.marked import Access, lane_dot
from .register_tile import Tile, Values, fill, write_back

Element = Callable[[PrimExpr, PrimExpr], PrimExpr]
"""The left operand of a row, at a step and a place in its group."""


class LaneSums:
    """Writes register tiles of a product.

    Args:
        layout: The roles of the axes; no other axis than its depth is summed over.
        reduction: What is summed up.
        finish: The stores, over the layout's variables.
        lanes: Elements of a register.
    """

    def __init__(
        self, layout: GroupedLayout, reduction: Reduction, finish: Stmt, lanes: int
    ) -> None:
        self.layout, self.reduction, self.finish, self.lanes = layout, reduction, finish, lanes
        self.steps = number(layout.depth.extent) or 0

    def tile(self, outer: Values, rows: Sequence[PrimExpr], vectors: int, masked: bool) -> Stmt:
        """One tile from start to end.

        Args:
            outer: The values of the outer axes' variables and of the panel's.
            rows: The values of the row axis.
            vectors: How many vectors of the panel there are to compute.
            masked: Whether the last one reaches past the last column.
        """
        layout, lanes = self.layout, self.lanes
        lane, depth = PrimVar("lane"), PrimVar("step")
        panel = outer[layout.panel]
        tile = Tile(
            row=None if layout.row is None else layout.row.var,
            rows=tuple(rows),
            column=(layout.inside,),
            columns=tuple((add(imm(v * lanes), lane),) for v in range(vectors)),
            lane=lane,
            lanes=lanes,
            limit=add(imm(layout.columns), multiply(panel, imm(-layout.width))),
            masked=frozenset({vectors - 1} if masked else ()),
        )
        sums = Buffer(
            "acc", (imm(len(rows) * vectors * lanes),), self.reduction.value.dtype, scope="local"
        )
        elements = [self._element(outer, row) for row in rows]
        copy = None if all(map(self._in_place, elements)) else self._room(len(rows))
        lefts = [self._left(e, r, depth, copy) for r, e in enumerate(elements)]
        dots = [
            lane_dot(
                self._sum(tile, sums, r, v), left, self._right(outer, depth, v),
                lanes, group_of(layout.right.dtype),
            )
            for r, left in enumerate(lefts)  # a row's group is read once, columns stay
            for v in range(vectors)
        ]  # fmt: skip
        body = sequence(
            [
                fill(tile, self.reduction.identity, sums),
                For(depth, imm(0), imm(self.steps), sequence(dots)),
                write_back(tile, self.reduction, substitute_stmt(self.finish, outer), sums),
            ]
        )
        result: Stmt = Allocate(sums, body)
        if copy is None:
            return result
        return Allocate(copy, Seq((self._copied(copy, elements), result)))

    def _sum(self, tile: Tile, sums: Buffer, row: int, vector: int) -> Access:
        """Where the sums of a row and a vector of columns are."""
        first = imm((row * len(tile.columns) + vector) * self.lanes)
        return lambda x: Load(sums, (add(first, x[0]),))

    def _right(self, outer: Values, depth: PrimVar, vector: int) -> Access:
        """Elements (column, place) of a vector of the right operand."""
        layout = self.layout

        def element(x: Sequence[PrimVar]) -> Load:
            column = add(imm(vector * self.lanes), x[0])
            values: Values = {
                **outer, layout.depth.var: depth, layout.inside: column, layout.place.var: x[1]
            }  # fmt: skip
            load = substitute_prim(layout.right, values)
            assert isinstance(load, Load)
            return load

        return element

    def _element(self, outer: Values, row: PrimExpr) -> Element:
        """The left operand of a row, at a step and a place."""
        layout = self.layout

        def element(depth: PrimExpr, place: PrimExpr) -> PrimExpr:
            values: Values = {**outer, layout.depth.var: depth, layout.place.var: place}
            if layout.row is not None:
                values[layout.row.var] = row
            return substitute_prim(layout.left, values)

        return element

    def _in_place(self, element: Element) -> bool:
        """Whether groups can be loaded from where the operand lies."""
        depth, place = PrimVar("k"), PrimVar("p")
        load = element(depth, place)
        if not isinstance(load, Load) or load.predicate is not None:
            return False
        return evenly(load, [(depth, group_of(load.buffer.dtype)), (place, 1)])

    def _left(self, element: Element, row: int, depth: PrimVar, copy: Buffer | None) -> Access:
        """Elements (place) of a row at a step, where they lie or in the copy."""
        group = imm(group_of(self.layout.left.dtype))

        def access(x: Sequence[PrimVar]) -> Load:
            if copy is not None:
                return Load(copy, (imm(row), add(multiply(depth, group), x[0])))
            load = element(depth, x[0])
            assert isinstance(load, Load)
            return load

        return access

    def _room(self, rows: int) -> Buffer:
        dtype = self.layout.left.dtype
        shape = (imm(rows), imm(self.steps * group_of(dtype)))
        return Buffer("left", shape, dtype, scope="local", align=64)

    def _copied(self, copy: Buffer, elements: Sequence[Element]) -> Stmt:
        """The rows copied, registers of columns at a time."""
        dtype = self.layout.left.dtype
        group, size = imm(group_of(dtype)), self.steps * group_of(dtype)
        lanes = next(n for n in (32, 16, 8, 4, 2, 1) if size % n == 0)
        stmts: list[Stmt] = []
        for row, element in enumerate(elements):
            at, lane = PrimVar("at"), PrimVar("lane")
            place = add(multiply(at, imm(lanes)), lane)
            value = element(Binary("floordiv", place, group), Binary("floormod", place, group))
            vector = For(
                lane, imm(0), imm(lanes), Store(copy, (imm(row), place), value), "vectorized"
            )
            stmts.append(For(at, imm(0), imm(size // lanes), vector))
        return sequence(stmts)
