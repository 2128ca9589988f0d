"""Steps of sums: what they add, and those that lanes leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unity.ir.empty_reduction import conjuncts
from unity.ir.prim_expr import Binary, BinaryOp, Compare, Load, PrimExpr, Select
from unity.ir.stmt import Block, Stmt, Store
from unity.ir.visit import map_stmts, prim_loads, substitute_prim, variables

from ..blocks.combine import neutral, step_of
from ..blocks.tree import Values, conjunction


def by_pairs(op: BinaryOp, parts: Sequence[PrimExpr]) -> PrimExpr:
    """Several joined, none of which waits for all the others."""
    left = list(parts)
    while len(left) > 1:
        pairs = zip(left[::2], left[1::2], strict=False)
        rest = left[-1:] if len(left) % 2 else []
        left = [*(Binary(op, a, b) for a, b in pairs), *rest]
    return left[0]


def with_predicates(s: Stmt) -> Stmt:
    """Steps of sums in registers that a choice leaves out, left out by their block's predicate.

    Loops are parted by predicates; `MaskLanes` chooses anew what lanes are to add where one is
    left.
    """
    if isinstance(s, Block):
        return _left_out(s)
    return map_stmts(s, with_predicates)


def _left_out(block: Block) -> Block:
    store = block.body
    if block.init is not None or not isinstance(store, Store) or store.predicate is not None:
        return block
    if store.buffer.scope != "local" or not any(a.kind == "R" for a in block.axes):
        return block
    match step_of(store):
        case op, Select(condition, value, orelse) if orelse == neutral(op, value.dtype):
            pass
        case _:
            return block
    parts = conjuncts(condition)
    if not all(isinstance(p, Compare) and p.op == "lt" for p in parts):
        return block
    if prim_loads(condition):
        return block
    values: Values = {a.var: a.value for a in block.axes}
    asked = [substitute_prim(p, values) for p in parts]
    if not all(variables(p) for p in asked):
        return block
    kept = () if block.predicate is None else conjuncts(block.predicate)
    step = Binary(op, Load(store.buffer, store.indices), value)
    return replace(block, body=replace(store, value=step), predicate=conjunction([*kept, *asked]))
