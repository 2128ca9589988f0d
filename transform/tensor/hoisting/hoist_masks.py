"""HoistMasks: which lanes take part is asked before the loops that do not change it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from unity.arith.divisors import never_traps
from unity.ir.module import IRModule
from unity.ir.prim_expr import Broadcast, Compare, PrimExpr, PrimVar, Ramp
from unity.ir.stmt import Block, For, Let, Stmt
from unity.ir.visit import (
    bound_in,
    leaves,
    map_stmts,
    prim_children,
    rewrite_stmt,
    stmt_exprs,
    variables,
    walk_stmt,
)

from ...passes import Context, Pass, Sight
from ..functions import map_prim_funcs, with_body

MOST = 6
"""Masks that a loop keeps: there are seven registers of them, and what is compared takes one."""


@dataclass(frozen=True, slots=True)
class HoistMasks(Pass):
    """Masks of lanes before an end come before the loops that do not change them.

    Where a machine has registers of masks (AVX-512); elsewhere a mask is a vector, of which there
    are few enough. What runs on threads makes its own.

    >>> from unity.machine.target import Target
    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, 99 * n], c: f32[Buffer, 16]) -> None:
    ...     for i in range(99):
    ...         mask = T.let(T.ramp(0, 1, 16) < T.broadcast(n, 16))
    ...         T.store(c, (T.ramp(0, 1, 16),), T.load(a, (T.ramp(i * n, 1, 16),), mask), mask)
    ... ''')
    >>> wide = Target("cpu", "x86_64-linux", "skylake-avx512", ("avx512f", "avx512vl"), 512, 32)
    >>> print(print_module(HoistMasks()(before, Context(wide))), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, 99 * n], c: f32[Buffer, 16]) -> None:
        mask = T.let(T.ramp(0, 1, 16) < T.broadcast(n, 16))
        for i in range(99):
            mask_1 = T.let(mask)
            T.store(c, (T.ramp(0, 1, 16),), T.load(a, (T.ramp(i * n, 1, 16),), mask_1), mask_1)
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        if not ctx.target.masked:
            return module
        return map_prim_funcs(module, lambda f: with_body(f, _hoisted(f.body)))


def _hoisted(s: Stmt) -> Stmt:
    """With masks before the outermost loops that leave them alone."""
    if isinstance(s, Block):
        return s
    if not isinstance(s, For) or s.kind == "parallel" or not _is_plain(s):
        return map_stmts(s, _hoisted)
    found = _to_hoist(s)
    if not 0 < len(found) <= MOST:
        return map_stmts(s, _hoisted)
    made = map_stmts(rewrite_stmt(s, None, found.get), _hoisted)
    for mask, var in reversed(found.items()):
        made = Let(var, mask, made)
    return made


def _is_plain(loop: For) -> bool:
    return not any(isinstance(x, Block) or _is_parallel(x) for x in walk_stmt(loop))


def _is_parallel(s: Stmt) -> bool:
    return isinstance(s, For) and s.kind == "parallel"


def _to_hoist(loop: For) -> dict[PrimExpr, PrimVar]:
    """The masks of a loop that it does not change."""
    bound = bound_in(loop)
    asked = dict.fromkeys(m for s in walk_stmt(loop) for e in stmt_exprs(s) for m in _masks(e))
    return {m: PrimVar("mask", m.dtype) for m in asked if not variables(m) & bound}


def _masks(e: PrimExpr) -> Iterator[Compare]:
    match e:
        case Compare(_, Ramp(), Broadcast()) | Compare(_, Broadcast(), Ramp()):
            if _may_be_made_earlier(e):
                yield e
        case _:
            for child in prim_children(e):
                yield from _masks(child)


def _may_be_made_earlier(mask: PrimExpr) -> bool:
    """Whether it reads and calls nothing, and stops no program where no iteration needs it."""
    found = leaves(mask)
    quiet = not found.loads and not found.calls
    return quiet and all(never_traps(d.b) for d in found.divisions)
