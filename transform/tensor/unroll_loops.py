"""UnrollLoops: loops marked for it are written out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, imm
from unity.ir.stmt import Allocate, Buffer, For, Let, PrimFunc, Seq, Stmt
from unity.ir.visit import map_stmts, walk_stmt

from ..passes import Context, Pass, Sight
from .copies import copies
from .functions import map_prim_funcs, with_body
from .loaded_once import loaded_once


@dataclass(frozen=True, slots=True)
class UnrollLoops(Pass):
    """A loop of kind ``unrolled`` with a constant extent becomes its iterations, in order.

    One whose extent is unknown or above `limit` becomes serial. What all iterations load is loaded
    once before them.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
    ...     for i in range(n // 2):
    ...         for j in T.unroll(2):
    ...             c[i * 2 + j] = a[i * 2 + j]
    ... ''')
    >>> print(print_module(UnrollLoops()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], c: f32[Buffer, n]) -> None:
        for i in range(n // 2):
            c[i * 2 + 0] = a[i * 2 + 0]
            c[i * 2 + 1] = a[i * 2 + 1]
    """

    sees: ClassVar[Sight] = "kernel"

    limit: int = 256

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, self.written_out)

    def written_out(self, func: PrimFunc) -> PrimFunc:
        """A prim func with its marked loops written out."""
        own = frozenset(s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate))
        return with_body(func, self._stmt(func.body, own))

    def _stmt(self, s: Stmt, own: frozenset[Buffer]) -> Stmt:
        """The statement with its marked loops written out, inner ones first."""
        s = map_stmts(s, lambda x: self._stmt(x, own))
        if not isinstance(s, For) or s.kind != "unrolled":
            return s
        if not isinstance(s.extent, Imm) or int(s.extent.value) > self.limit:
            return replace(s, kind="serial")
        extent = int(s.extent.value)
        loop, loaded = loaded_once(s, own) if extent > 1 else (s, {})
        begin = s.begin
        steps = [
            imm(int(begin.value) + i) if isinstance(begin, Imm) else begin + i
            for i in range(extent)
        ]
        whole: Stmt = Seq(tuple(copies(loop.body, s.var, steps)))
        for value, var in reversed(loaded.items()):
            whole = Let(var, value, whole)
        return whole
