"""LowerBlocks: blocks become the statements they hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.empty_reduction import conjuncts, init_of_empty
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Compare, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import Allocate, Block, For, IfThen, Seq, Stmt, Store
from unity.ir.visit import (
    map_stmts,
    stmt_loads,
    substitute_prim,
    substitute_stmt,
    variables,
    walk_stmt,
)

from ..blocks.legality import late_init
from ..blocks.site import Site
from ..blocks.tree import known_at, loops_of
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class LowerBlocks(Pass):
    """Axes are replaced by the expressions bound to them, predicates become conditions.

    The init of a reduction moves out of it: a nest of its own before the outermost loop that only
    drives reduce axes, so that no condition is left in the hot loop, and an empty reduction leaves
    the init. Where that would change what is computed, the init stays, under the condition that
    every reduce axis is at its begin.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 8], c: f32[Buffer, n]) -> None:
    ...     for i, k in T.grid(n, 8):
    ...         with T.block("sum"):
    ...             vi, vk = T.axis.remap("SR", i, k)
    ...             with T.init():
    ...                 c[vi] = 0.0
    ...             c[vi] += a[vi, vk]
    ... ''')
    >>> print(print_module(LowerBlocks()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n, 8], c: f32[Buffer, n]) -> None:
        for i in range(n):
            c[i] = 0.0
            for k in range(8):
                c[i] += a[i, k]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, lower(f.body)))


def lower(s: Stmt) -> Stmt:
    """The statement without blocks."""
    match s:
        case For():
            instead = init_of_empty(s)
            if instead is None:
                return _descend(s)
            block = _only_block(s)
            if block is not None and _init_moves(block, s):
                first = _fresh_loops(lower(instead), {})
                return Seq((first, _descend(_without_init(s))))
            nothing = Compare("le", s.extent, imm(0))
            return Seq((IfThen(nothing, lower(instead)), _descend(s)))
        case Block():
            return _lower_block(s)
        case _:
            return _descend(s)


def _descend(s: Stmt) -> Stmt:
    return map_stmts(s, lower)


def _lower_block(block: Block) -> Stmt:
    values: dict[PrimVar | SizeVar, PrimExpr] = {a.var: a.value for a in block.axes}
    body = block.body
    if block.init is not None:
        body = Seq((_guarded_init(block), body))
    result = lower(substitute_stmt(body, values))
    for buffer in reversed(block.allocations):
        result = Allocate(buffer, result)
    return result if block.predicate is None else IfThen(block.predicate, result)


def _guarded_init(block: Block) -> Stmt:
    """The init where every reduce axis is at its begin."""
    assert block.init is not None
    condition: PrimExpr | None = None
    for axis in block.axes:
        if axis.kind == "R":
            here = Compare("eq", axis.var, axis.domain.begin)
            condition = here if condition is None else Binary("and", condition, here)
    return block.init if condition is None else IfThen(condition, block.init)


def _only_block(s: Stmt) -> Block | None:
    """The block below loops that hold nothing else."""
    while isinstance(s, For):
        s = s.body
    return s if isinstance(s, Block) else None


def _init_moves(block: Block, loop: For) -> bool:
    """Whether all inits may run before all of the body.

    The body may read what the init writes at the very same element only, and the init nothing of
    it; and the init must reach the same elements without the loops that are gone.
    """
    assert block.init is not None
    stores = [s for s in walk_stmt(block.init) if isinstance(s, Store)]
    places = {(s.buffer, s.indices) for s in stores}
    accumulators = {s.buffer for s in stores}
    for stmt in walk_stmt(block.init):
        if any(e.buffer in accumulators for e in stmt_loads(stmt)):
            return False
    for stmt in walk_stmt(block.body):
        for load in stmt_loads(stmt):
            if load.buffer in accumulators and (load.buffer, load.indices) not in places:
                return False
    inner = {s.var for s in walk_stmt(loop) if isinstance(s, For)}
    if any(not variables(a.value) <= inner for a in block.axes if a.kind == "R"):
        return False  # a loop further out, which also drives others, has begun to reduce
    spatial = {v for axis in block.axes if axis.kind != "R" for v in variables(axis.value)}
    gone = inner - spatial
    parts = () if block.predicate is None else conjuncts(block.predicate)
    names = [variables(part) & inner for part in parts]
    if not all(used <= gone or not used & gone for used in names):
        return False
    return _init_is_first(block, loop)


def _init_is_first(block: Block, loop: For) -> bool:
    """Whether the step with the init is taken, once and before the others, or none is taken."""
    above: list[Stmt] = []
    s: Stmt = loop
    while isinstance(s, For):
        above.append(s)
        s = s.body
    path = tuple(above)
    return late_init(Site(block, path, loops_of(path), known_at(path))) is None


def _without_init(s: Stmt) -> Stmt:
    if isinstance(s, Block):
        return replace(s, init=None)
    return map_stmts(s, _without_init)


def _fresh_loops(s: Stmt, renamed: dict[PrimVar | SizeVar, PrimExpr]) -> Stmt:
    """With loop variables of its own, since the loops it was copied from stay."""
    if isinstance(s, For):
        var = PrimVar(s.var.name, s.var.dtype)
        begin, extent = substitute_prim(s.begin, renamed), substitute_prim(s.extent, renamed)
        body = _fresh_loops(s.body, {**renamed, s.var: var})
        return replace(s, var=var, begin=begin, extent=extent, body=body)
    return substitute_stmt(s, renamed)
