"""VectorizeLoops: loops marked for it become statements on vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from unity.arith import Analyzer
from unity.ir.module import IRModule
from unity.ir.prim_expr import Compare, Imm, Not, imm
from unity.ir.stmt import For, IfThen, Let, Stmt
from unity.ir.visit import map_stmts, stmt_exprs, walk_prim, walk_stmt

from ..passes import Context, Pass, Sight
from .functions import map_prim_funcs, with_body
from .vector_lanes import CannotVectorize, LaneWriter


@dataclass(frozen=True, slots=True)
class VectorizeLoops(Pass):
    """A loop of kind ``vectorized`` with a constant extent becomes one iteration on vectors.

    Takes flat buffers. Each lane is one iteration: the loop's variable becomes a `Ramp`, what does
    not depend on it stays scalar, conditions on it become masks (or a narrower vector), memory
    allocated in it gets a place for each lane. A loop for which this can't be done (a store to one
    element, an inner loop as long as the lane says, a call of a C function) becomes serial, which
    means the same.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ...
    ... @script.prim_func
    ... def main(a: f32[Buffer, n], s: f32[Buffer, 1], c: f32[Buffer, n]) -> None:
    ...     for i in range(n // 8):
    ...         for j in T.vectorized(8):
    ...             c[i * 8 + j] = a[i * 8 + j] * s[0]
    ... ''')
    >>> print(print_module(VectorizeLoops()(before, Context())), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func
    def main(a: f32[Buffer, n], s: f32[Buffer, 1], c: f32[Buffer, n]) -> None:
        for i in range(n // 8):
            c[T.ramp(i * 8, 1, 8)] = a[T.ramp(i * 8, 1, 8)] * T.broadcast(s[0], 8)
    """

    sees: ClassVar[Sight] = "kernel"

    max_lanes: int = 128

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        return map_prim_funcs(module, lambda f: with_body(f, self.rewrite(f.body, Analyzer())))

    def rewrite(self, s: Stmt, known: Analyzer) -> Stmt:
        """The statement without vectorized loops, inner ones first."""
        if isinstance(s, Let):
            body = self.rewrite(s.body, known.with_value(s.var, s.value))
            return s if body is s.body else replace(s, body=body)
        if isinstance(s, IfThen):
            return self._branch(s, known)
        if not isinstance(s, For):
            return map_stmts(s, lambda x: self.rewrite(x, known))
        inside = known.with_extent(s.var, s.begin, s.extent)
        body = self.rewrite(s.body, inside)
        if s.kind != "vectorized":
            return s if body is s.body else replace(s, body=body)
        s, body = _narrowed(s, body)
        match s.extent:
            case Imm(int() as lanes) if 1 < lanes <= self.max_lanes and not _has_vectors(body):
                try:
                    return LaneWriter(s.var, s.begin, lanes, inside).stmt(body)
                except CannotVectorize:
                    pass
            case _:
                pass
        return replace(s, body=body, kind="serial")

    def _branch(self, s: IfThen, known: Analyzer) -> Stmt:
        then = self.rewrite(s.then, known.with_condition(s.condition))
        orelse = s.orelse
        if orelse is not None:
            orelse = self.rewrite(orelse, known.with_condition(Not(s.condition)))
        return s if then is s.then and orelse is s.orelse else replace(s, then=then, orelse=orelse)


def _narrowed(loop: For, body: Stmt) -> tuple[For, Stmt]:
    """A loop of which only the first lanes do anything as one of these, if they fill a register."""
    match body:
        case IfThen(Compare("lt", lane, Imm(int(count))), then, None) if lane == loop.var:
            if loop.begin == imm(0) and count > 0 and not count & (count - 1):
                return replace(loop, extent=imm(count)), then
        case _:
            pass
    return loop, body


def _has_vectors(s: Stmt) -> bool:
    """Whether a loop inside has become vectors already: there are no vectors of vectors."""
    return any(
        e.dtype.lanes > 1
        for stmt in walk_stmt(s)
        for expr in stmt_exprs(stmt)
        for e in walk_prim(expr)
    )
