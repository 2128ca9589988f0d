"""Everything else with axes: threads share the spatial points, each runs the block as it stands.

But where a block calls a C function: whether threads may call it at once, its author knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.foreign import symbols_in
from unity.ir.prim_expr import Binary, PrimExpr, PrimVar, imm
from unity.ir.stmt import Block, BlockAxis, For, Stmt
from unity.ir.visit import walk_prim
from unity.machine.target import Target

from ..blocks.extents import product
from ..tactics.threads import parallel


def fallback(s: Stmt, target: Target) -> Stmt:
    """A nest around one block whose spatial axes are driven by a loop each; others stay."""
    loops: dict[PrimVar, For] = {}
    inner = s
    while isinstance(inner, For) and inner.kind == "serial":
        loops[inner.var] = inner
        inner = inner.body
    if not isinstance(inner, Block) or inner.predicate is not None or symbols_in(inner):
        return s
    block, axes = inner, inner.axes
    values = [a.value for a in axes]
    if any(a.kind == "O" for a in axes) or any(v not in loops for v in values):
        return s
    if len(set(values)) != len(loops) or not _rectangular(loops):
        return s
    spatial = [a for a in axes if a.kind == "S"]
    reduced = [a for a in axes if a.kind == "R"]

    def body(point: Sequence[PrimExpr]) -> Stmt:
        at = {
            a.var: Binary("add", p, loops[_loop(a)].begin)
            for a, p in zip(spatial, point, strict=True)
        }
        bound = tuple(replace(a, value=at.get(a.var, a.value)) for a in axes)
        result: Stmt = replace(block, axes=bound)
        for axis in reversed(reduced):
            result = replace(loops[_loop(axis)], body=result)
        return result

    domain = [(_loop(a).name, loops[_loop(a)].extent) for a in spatial]
    work = product([loops[_loop(a)].extent for a in reduced] or [imm(1)])
    return parallel(domain, Binary("mul", work, imm(4)), target.machine.grain("statements"), body)


def _loop(axis: BlockAxis) -> PrimVar:
    assert isinstance(axis.value, PrimVar)
    return axis.value


def _rectangular(loops: dict[PrimVar, For]) -> bool:
    return not any(
        e in loops
        for loop in loops.values()
        for bound in (loop.begin, loop.extent)
        for e in walk_prim(bound)
        if isinstance(e, PrimVar)
    )
