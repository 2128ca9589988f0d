"""Sums of products on matrix tiles: two by two tiles of sums at a time, over all steps, to memory.

What rules build such kernels of. The registers of a kernel are all taken together, once a task
(`configured`), because that costs as much as some steps; blocks of sums that need fewer use the
first ones. All are full: rows or depth that do not fill a tile are zeros in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from unity.ir.dtype import DType
from unity.ir.stmt import Buffer, For, Stmt
from unity.machine.dot_units import SIDE, group_of

from ..blocks.tree import sequence
from ..schedule.marked import (
    Access,
    accumulator,
    operand,
    tile_dot,
    tile_load,
    tile_store,
    tile_zero,
    within,
)


def depth_of(dtype: DType) -> int:
    """Elements of depth that a step takes."""
    return SIDE * group_of(dtype)


@dataclass(frozen=True, slots=True)
class TileSums:
    """A block of sums in tile registers, `rows` by `columns` tiles, and the operands of a step.

    Attributes:
        sums: The accumulators, by row and column.
        lefts: An operand for each row of tiles: ``(16, 16, group)``, rows and depth.
        rights: One for each column: ``(16, 16, group)``, depth and columns.
    """

    sums: tuple[tuple[Buffer, ...], ...]
    lefts: tuple[Buffer, ...]
    rights: tuple[Buffer, ...]

    @property
    def registers(self) -> tuple[Buffer, ...]:
        """All of them."""
        return (*(t for row in self.sums for t in row), *self.lefts, *self.rights)

    def part(self, rows: int, columns: int) -> TileSums:
        """The first rows and columns of the block."""
        sums = tuple(row[:columns] for row in self.sums[:rows])
        return TileSums(sums, self.lefts[:rows], self.rights[:columns])

    def zero(self) -> Stmt:
        """All sums zero."""
        return sequence([tile_zero(t) for row in self.sums for t in row])

    def step(self, left: Callable[[int], Access], right: Callable[[int], Access]) -> Stmt:
        """Operands loaded, products added; each product as soon as it can be.

        Args:
            left: For a row of tiles, where an element (row, group, place in the group) is.
            right: For a column of tiles, where an element (group, column, place) is.
        """
        stmts: list[Stmt] = []
        for i, a in enumerate(self.lefts):
            stmts.append(tile_load(a, left(i)))
            for j, b in enumerate(self.rights):
                if i == 0:
                    stmts.append(tile_load(b, right(j)))
                stmts.append(tile_dot(self.sums[i][j], a, b))
        return sequence(stmts)

    def store(self, target: Callable[[int, int], Access]) -> Stmt:
        """The sums to memory.

        Args:
            target: For a tile, by row and column of tiles, where an element (row, column) goes.
        """
        return sequence(
            [
                tile_store(t, target(i, j))
                for i, row in enumerate(self.sums)
                for j, t in enumerate(row)
            ]
        )


def tile_sums(
    left: DType, right: DType, out: DType, rows: int = 2, columns: int = 2, height: int = SIDE
) -> TileSums:
    """Registers for so many tiles of sums; ``rows * columns + rows + columns`` are 8 at most.

    Args:
        left: The dtype of the left operand.
        right: That of the right one.
        out: That of the sums.
        rows: Tiles below each other.
        columns: Tiles beside each other.
        height: Rows of each tile, 16 at most.
    """
    return TileSums(
        tuple(
            tuple(accumulator(f"c{i}{j}", height, out) for j in range(columns)) for i in range(rows)
        ),
        tuple(operand(f"a{i}", height, left) for i in range(rows)),
        tuple(operand(f"b{j}", SIDE, right) for j in range(columns)),
    )


def configured(sums: TileSums, body: Stmt) -> Stmt:
    """A statement with the registers; where it is a parallel loop, each task has its own."""
    if isinstance(body, For) and body.kind == "parallel":
        return replace(body, body=within(sums.registers, body.body))
    return within(sums.registers, body)
