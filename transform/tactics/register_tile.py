"""Which loads the rows and columns of a register tile share; loops around sums, written at once."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Binary, Load, PrimExpr, PrimVar, Select, SizeVar, imm
from unity.ir.regions import add
from unity.ir.stmt import Buffer, For, ForKind, Let, Stmt, Store
from unity.ir.visit import prim_children, substitute_stmt

from ..blocks.access import depends
from ..blocks.nest import Axis, Reduction

Values = dict[PrimVar | SizeVar, PrimExpr]


def finished(reduction: Reduction, value: PrimExpr, finish: Stmt, values: Values) -> Stmt:
    """The stage's stores, once its reduction has a value."""
    result = PrimVar("result", reduction.result.dtype)
    return Let(result, value, substitute_stmt(finish, {**values, reduction.result: result}))


def loads_on(
    value: PrimExpr, row: PrimVar | None, column: Sequence[PrimVar], on: tuple[bool, bool]
) -> list[Load]:
    """The outermost loads that depend (or not) on row and on column as `on` says.

    Only those that are done in any case.
    """
    found: dict[Load, None] = {}

    def note(e: PrimExpr) -> None:
        match e:
            case Load():
                on_row = row is not None and depends(e, row)
                on_column = any(depends(e, var) for var in column)
                if (on_row, on_column) == on:
                    found[e] = None
            case Select():  # a branch's loads are done only where it is taken
                note(e.condition)
            case _:
                for child in prim_children(e):
                    note(child)

    note(value)
    return list(found)


def loops(axes: Sequence[Axis], body: Stmt) -> Stmt:
    """Serial loops around a statement, on the axes' own variables."""
    for axis in reversed(axes):
        body = For(axis.var, imm(0), axis.extent, body)
    return body


def joined(reduction: Reduction, buffer: Buffer, first: PrimExpr, lanes: int) -> list[Stmt]:
    """The lanes of an accumulator joined in its first one, by halves."""
    stmts: list[Stmt] = []
    half = lanes // 2
    while half:
        lane = PrimVar("lane")
        here = add(first, lane)
        there = add(here, imm(half))
        both = Binary(reduction.op, Load(buffer, (here,)), Load(buffer, (there,)))
        kind: ForKind = "vectorized" if half > 1 else "serial"
        store = Store(buffer, (here,), both)
        stmts.append(For(lane, imm(0), imm(half), store, kind))
        half //= 2
    return stmts
