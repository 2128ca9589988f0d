"""Scalar constants as literals inside a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.ir.dtype import Array
from unity.ir.prim_expr import Imm, Load, PrimExpr, imm
from unity.ir.stmt import Block, Buffer, PrimFunc, Region, Stmt
from unity.ir.visit import rewrite_stmt


def inline_scalars(func: PrimFunc, values: Mapping[int, Array]) -> PrimFunc:
    """The kernel with one-element inputs replaced by what they hold.

    Args:
        func: A prim func that only reads those inputs.
        values: By index of the input, arrays of one element.
    """
    if not values:
        return func
    literals = {func.buffers[i]: _literal(func.buffers[i], a) for i, a in values.items()}

    def on_expr(e: PrimExpr) -> PrimExpr | None:
        return literals.get(e.buffer) if isinstance(e, Load) else None

    def on_stmt(s: Stmt) -> Stmt | None:
        if not isinstance(s, Block) or not any(r.buffer in literals for r in s.reads):
            return None
        return replace(s, reads=_others(s.reads, literals))

    params = tuple(p for p in func.params if not (isinstance(p, Buffer) and p in literals))
    return replace(func, params=params, body=rewrite_stmt(func.body, on_stmt, on_expr))


def _literal(buffer: Buffer, value: Array) -> Imm:
    return imm(value.item(), buffer.dtype)


def _others(reads: tuple[Region, ...], gone: Mapping[Buffer, Imm]) -> tuple[Region, ...]:
    return tuple(r for r in reads if r.buffer not in gone)
