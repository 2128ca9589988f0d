"""Index 0 along a dim of extent 1, written as the block's axis that runs over it.

Broadcasting reads extent 1 at 0. Where the result has extent 1 too, as with a batch of one, that
hides that an op goes element by element; fusion, schedules and memory planning look for just that.
"""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import Imm, Load, PrimExpr, PrimVar
from unity.ir.regions import block_regions
from unity.ir.stmt import Block, PrimFunc, Stmt, Store
from unity.ir.visit import rewrite_prim, rewrite_stmt


def with_unit_axes(func: PrimFunc) -> PrimFunc:
    """The kernel with such indices replaced in every block around one store."""
    body = rewrite_stmt(func.body, _block)
    return func if body is func.body else replace(func, body=body)


def _block(s: Stmt) -> Stmt | None:
    if not isinstance(s, Block) or not isinstance(s.body, Store):
        return None
    unit = {a.var for a in s.axes if a.kind == "S" and a.domain.extent == Imm(1, a.var.dtype)}
    if not unit:
        return None
    points = s.body.indices

    def on_load(e: PrimExpr) -> PrimExpr | None:
        if not isinstance(e, Load):
            return None
        new = list(e.indices)
        for i, (index, extent) in enumerate(zip(e.indices, e.buffer.shape, strict=True)):
            place = i + len(points) - len(new)
            axis = points[place] if place >= 0 else None
            zero = isinstance(index, Imm) and index.value == 0
            if zero and extent == Imm(1, index.dtype) and isinstance(axis, PrimVar):
                new[i] = axis if axis in unit else index
        same = all(a is b for a, b in zip(new, e.indices, strict=True))
        return None if same else replace(e, indices=tuple(new))

    value = rewrite_prim(s.body.value, on_load)
    if value is s.body.value:
        return None
    body = replace(s.body, value=value)
    reads, writes = block_regions(body, s.init, [a.var for a in s.axes])
    return replace(s, body=body, reads=reads, writes=writes)
