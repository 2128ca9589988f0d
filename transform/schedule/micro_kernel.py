"""The micro-kernel of a contraction: a register tile filled, summed over all steps, written back.

A few steps of the innermost loop stand in a row: the loop's own arithmetic then costs a fraction,
and loads of the next step overlap with the multiplications of this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from unity.ir.prim_expr import PrimExpr, PrimVar, imm
from unity.ir.regions import add, multiply
from unity.ir.stmt import Allocate, Buffer, For, Seq, Stmt
from unity.ir.visit import substitute_prim

from .access import known_of, place, step
from .loops import number, sequence
from .nest import Axis, Reduction
from .tile import Tile, accumulate, fill, loops, write_back

Before: TypeAlias = Callable[[PrimExpr], Stmt]
"""What goes before a step, from the value of the innermost reduced axis."""

UNROLL = 4
"""Steps in a row."""
SHORT = 16
"""Steps below which a loop is left as it is: the windows of convolutions, among others."""


def micro_kernel(
    reduction: Reduction,
    finish: Stmt,
    tile: Tile,
    reading: Tile,
    steps_in_row: int,
    before: Before | None = None,
) -> Stmt:
    """One register tile from start to end.

    Args:
        reduction: What is summed; its value is over the tile's axes and the reduced ones.
        finish: The stores of the result.
        tile: The accumulators.
        reading: The same for loads, where other columns are masked.
        steps_in_row: As `steps_in_row` tells.
        before: What goes before each step.
    """
    size = len(tile.rows) * len(tile.columns) * tile.lanes
    buffer = Buffer("acc", (imm(size),), reduction.value.dtype, scope="local")
    start = fill(tile, reduction.identity, buffer)
    steps = all_steps(reduction, reading, buffer, steps_in_row, before)
    return Allocate(buffer, Seq((start, steps, write_back(tile, reduction, finish, buffer))))


def all_steps(
    reduction: Reduction, tile: Tile, buffer: Buffer, count: int, before: Before | None = None
) -> Stmt:
    """The loops over the reduced axes, `count` steps of the innermost in a row."""
    *others, last = reduction.axes
    each = accumulate(tile, reduction, reduction.value, buffer)
    each = each if before is None else Seq((before(last.var), each))
    if count == 1:
        return loops(reduction.axes, each)
    return loops(others, unrolled(last, each, count, tile, reduction, buffer, before))


def unrolled(
    axis: Axis,
    each: Stmt,
    count: int,
    tile: Tile,
    reduction: Reduction,
    buffer: Buffer,
    before: Before | None = None,
) -> Stmt:
    """A loop over an axis, `count` steps in a row, the rest one by one."""
    at, inner = PrimVar(axis.var.name), PrimVar(f"{axis.var.name}_step")
    extent = number(axis.extent)
    whole = axis.extent // count if extent is None else imm(extent // count)
    parts: list[Stmt] = []
    if extent is None or extent >= count:
        index = add(multiply(at, imm(count)), inner)
        value = substitute_prim(reduction.value, {axis.var: index})
        body = accumulate(tile, reduction, value, buffer)
        body = body if before is None else Seq((before(index), body))
        # Marked, not written out: the passes in between see one step, not all of them.
        parts.append(For(at, imm(0), whole, For(inner, imm(0), imm(count), body, "unrolled")))
    if extent is None:
        done = multiply(whole, imm(count))
        parts.append(For(axis.var, done, axis.extent % count, each))
    elif extent % count:
        parts.append(For(axis.var, imm(extent - extent % count), imm(extent % count), each))
    return sequence(parts)


def steps_in_row(reduction: Reduction, axes: tuple[Axis, ...]) -> int:
    """How many steps of the innermost reduced axis to put in a row.

    One where two steps read the same element for different places of the tile, as neighbouring
    taps of a window do: it would be kept in a register, of which there are none left.
    """
    last = reduction.axes[-1]
    extent = number(last.extent)
    if extent is not None and extent < SHORT:
        return 1
    known = known_of((*axes, *reduction.axes))
    for load in reduction.loads():
        index = place(load, known)
        along = step(index, last.var)
        for axis in axes:
            across = step(index, axis.var)
            if along and across and _meet(abs(along), abs(across)):
                return 1
    if extent is None:
        return UNROLL
    return next((u for u in (4, 5, 3) if extent % u == 0), UNROLL)


def _meet(along: int, across: int) -> bool:
    """Whether two steps in a row read one element for different rows."""
    return any(across * r == along * u for u in range(1, UNROLL) for r in range(1, 8))
