"""HoistFunctions: functions of numbers that a loop leaves alone are computed once, before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from unity.ir.intrinsics import COSTLY
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, Intrinsic, PrimExpr, PrimVar
from unity.ir.stmt import Allocate, Block, Buffer, For, Let, Seq, Stmt, Store
from unity.ir.visit import (
    bound_in,
    leaves,
    map_stmts,
    prim_children,
    prim_loads,
    rewrite_stmt,
    stmt_exprs,
    variables,
    walk_stmt,
)

from ...blocks.tree import sequence
from ...passes import Context, Pass, Sight
from ..functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class HoistFunctions(Pass):
    """Functions of a number in a register come before the loop that does not change it.

    LLVM sees the instructions that a function takes, and a loop that may have no iterations. Takes
    vectors, of which a number has been made many.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     total = T.alloc((1,), "float32", scope="local")
    ...     total[0] = a[0]
    ...     for i in range(n):
    ...         c[i] = a[i] - T.log(total[0])
    ... ''')
    >>> print(print_module(HoistFunctions()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        total = T.alloc((1,), "float32", scope="local")
        total[0] = a[0]
        log = T.let(T.log(total[0]))
        for i in range(n):
            c[i] = a[i] - log
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _hoisted(f.body)))


def _hoisted(s: Stmt) -> Stmt:
    """With functions before the first of some statements that has them in a loop."""
    if isinstance(s, Block):
        return s
    if not isinstance(s, Seq | For):
        return map_stmts(s, _hoisted)
    stmts = s.stmts if isinstance(s, Seq) else (s,)
    for k, each in enumerate(stmts):
        rest = sequence(stmts[k:])
        found = _to_hoist(each, rest)
        if found:
            moved = rewrite_stmt(rest, None, found.get)
            for function, var in reversed(found.items()):
                moved = Let(var, function, moved)
            return sequence([*(_hoisted(x) for x in stmts[:k]), _hoisted(moved)])
    return map_stmts(s, _hoisted)


def _to_hoist(s: Stmt, rest: Stmt) -> dict[PrimExpr, PrimVar]:
    """Functions in loops of a statement that it and those behind it leave alone."""
    loops = [x for x in walk_stmt(s) if isinstance(x, For) and x.kind == "serial"]
    asked = [
        f for x in loops for y in walk_stmt(x.body) for e in stmt_exprs(y) for f in _functions(e)
    ]
    if not asked:
        return {}
    bound = bound_in(rest)
    stored = {x.buffer for x in walk_stmt(rest) if isinstance(x, Store)}
    stored |= {x.buffer for x in walk_stmt(rest) if isinstance(x, Allocate)}
    return {
        f: PrimVar(f.name, f.dtype)
        for f in dict.fromkeys(asked)
        if not variables(f) & bound and _stays(f, stored)
    }


def _functions(e: PrimExpr) -> Iterator[Intrinsic]:
    """The outermost functions of numbers in an expression."""
    if not leaves(e).calls:
        return
    if isinstance(e, Intrinsic) and e.name in COSTLY and e.dtype.lanes == 1:
        yield e
        return
    for child in prim_children(e):
        yield from _functions(child)


def _stays(e: PrimExpr, stored: set[Buffer]) -> bool:
    """Whether an expression is of registers that nothing is stored to, or of no memory."""
    loads = prim_loads(e)
    return all(
        x.buffer.scope == "local"
        and x.buffer not in stored
        and x.predicate is None
        and all(isinstance(i, Imm) for i in x.indices)
        for x in loads
    )
