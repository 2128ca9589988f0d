"""ParallelOutermost: no parallel loop stands inside another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith import simplify
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Imm, PrimVar
from unity.ir.stmt import For, Stmt
from unity.ir.visit import map_stmts, substitute_stmt, variables

from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body


@dataclass(frozen=True, slots=True)
class ParallelOutermost(Pass):
    """Parallel loops directly in one another are fused to one; others inside become serial.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
    ...     for i in T.parallel(n):
    ...         for j in T.parallel(8):
    ...             c[i, j] = a[i, j]
    ... ''')
    >>> print(print_module(ParallelOutermost()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n, 8], c: f32[Buffer, n, 8]) -> None:
        for i_j in T.parallel(n * 8):
            c[i_j // 8, i_j % 8] = a[i_j // 8, i_j % 8]
    """

    sees: ClassVar[Sight] = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, _outermost(f.body)))


def _outermost(s: Stmt) -> Stmt:
    if isinstance(s, For) and s.kind == "parallel":
        while isinstance(s.body, For) and s.body.kind == "parallel" and _fusible(s, s.body):
            s = _fused(s, s.body)
        body = _serial(s.body)
        return s if body is s.body else replace(s, body=body)
    return map_stmts(s, _outermost)


def _serial(s: Stmt) -> Stmt:
    s = map_stmts(s, _serial)
    return replace(s, kind="serial") if isinstance(s, For) and s.kind == "parallel" else s


def _fusible(outer: For, inner: For) -> bool:
    """Whether both start at 0 and neither bound of the inner one depends on the outer one."""
    starts = (outer.begin, inner.begin)
    if any(not (isinstance(b, Imm) and b.value == 0) for b in starts):
        return False
    return outer.var not in variables(inner.extent)


def _fused(outer: For, inner: For) -> For:
    var = PrimVar(f"{outer.var.name}_{inner.var.name}", outer.var.dtype)
    body = substitute_stmt(
        inner.body,
        {
            outer.var: Binary("floordiv", var, inner.extent),
            inner.var: Binary("floormod", var, inner.extent),
        },
    )
    extent = simplify(Binary("mul", outer.extent, inner.extent))
    return For(var, outer.begin, extent, body, "parallel", attrs=outer.attrs, span=outer.span)
