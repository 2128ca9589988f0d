"""Any other reduction: threads share the points, each one sums in a scalar."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Binary, Load, PrimExpr, imm
from unity.ir.stmt import Allocate, Buffer, Seq, Stmt, Store
from unity.ir.visit import substitute_prim, substitute_stmt
from unity.machine.target import Target

from ...blocks.extents import product
from ...blocks.nest import Nest
from ...tactics.register_tile import Values, finished, loops
from ...tactics.threads import parallel


def plain(nest: Nest, target: Target) -> Stmt | None:
    """Applies to every reduction."""
    reduction = nest.reduction
    if reduction is None:
        return None
    buffer = Buffer("acc", (imm(1),), reduction.value.dtype, scope="local")
    at = (imm(0),)

    def body(point: Sequence[PrimExpr]) -> Stmt:
        values: Values = {a.var: p for a, p in zip(nest.axes, point, strict=True)}
        value = substitute_prim(reduction.value, values)
        start = Store(buffer, at, substitute_prim(reduction.init, values))
        step = Store(buffer, at, Binary(reduction.op, Load(buffer, at), value))
        finish = substitute_stmt(nest.finish, values)
        end = finished(reduction, Load(buffer, at), finish, {})
        return Allocate(buffer, Seq((start, loops(reduction.axes, step), end)))

    domain = [(a.var.name.removeprefix("v"), a.extent) for a in nest.axes]
    work = product([a.extent for a in reduction.axes])
    return parallel(domain, work, target.machine.grain("statements"), body)
