"""UnrollLoops: loops marked for it are written out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, imm
from unity.ir.stmt import For, Seq, Stmt
from unity.ir.visit import map_stmt, substitute_stmt

from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class UnrollLoops(Pass):
    """A loop of kind ``unrolled`` with a constant extent becomes its iterations, in order.

    One whose extent is unknown or above `limit` becomes serial.

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
        return map_prim_funcs(module, lambda f: with_body(f, self.unroll(f.body)))

    def unroll(self, s: Stmt) -> Stmt:
        """The statement with its marked loops written out, inner ones first."""
        s = map_stmt(s, self.unroll, lambda e: e)
        if not isinstance(s, For) or s.kind != "unrolled":
            return s
        match s.begin, s.extent:
            case Imm(int() as begin), Imm(int() as extent) if extent <= self.limit:
                steps = range(begin, begin + extent)
                return Seq(tuple(substitute_stmt(s.body, {s.var: imm(i)}) for i in steps))
            case _, Imm(int() as extent) if extent <= self.limit:
                first = s.begin
                return Seq(
                    tuple(substitute_stmt(s.body, {s.var: first + i}) for i in range(extent))
                )
            case _:
                return replace(s, kind="serial")
