"""OpenBlocks: a block that other blocks are in is lowered before them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unity.ir.module import IRModule
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Allocate, Block, Stmt
from unity.ir.visit import map_stmts, substitute_stmt

from ..blocks.legality import INTRINSIC
from ..blocks.tree import blocks_below
from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class OpenBlocks(Pass):
    """A block around others gives way to what is in it, over the loops that its axes are bound to.

    What `blockize_body` left: passes behind this one see loops and blocks of one scope. A block
    with an init, under a predicate or of an intrinsic stays.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.prim_func
    ... def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
    ...     for i in range(4):
    ...         with T.block("row"):
    ...             vi = T.axis.spatial(4, i)
    ...             for j in range(8):
    ...                 with T.block("double"):
    ...                     vj = T.axis.spatial(8, j)
    ...                     c[vi, vj] = a[vi, vj] * 2.0
    ... ''')
    >>> print(print_module(OpenBlocks()(before, Context())), end="")
    @script.prim_func
    def main(a: f32[Buffer, 4, 8], c: f32[Buffer, 4, 8]) -> None:
        for i, j in T.grid(4, 8):
            with T.block("double"):
                vj = T.axis.remap("S", j)
                T.reads(a[i, vj])
                T.writes(c[i, vj])
                c[i, vj] = a[i, vj] * 2.0
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _opened(f.body)))


def _opened(s: Stmt) -> Stmt:
    match s:
        case Block() if _is_around_others(s):
            values: dict[PrimVar | SizeVar, PrimExpr] = {a.var: a.value for a in s.axes}
            body = _opened(substitute_stmt(s.body, values))
            for buffer in reversed(s.allocations):
                body = Allocate(buffer, body)
            return body
        case Block():
            return s
        case _:
            return map_stmts(s, _opened)


def _is_around_others(block: Block) -> bool:
    if block.init is not None or block.predicate is not None or INTRINSIC in block.attrs:
        return False
    return bool(blocks_below(block.body))
