"""Variables and buffers of expressions and statements replaced by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from unity.ir.leaves import leaves
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Allocate, Block, Buffer, Stmt
from unity.ir.visiting.visit_graph import map_all
from unity.ir.visiting.visit_prim import ExprFn, map_prim
from unity.ir.visiting.visit_stmt import map_stmt

NO_BUFFERS: Mapping[Buffer, Buffer] = {}
VarMap: TypeAlias = Mapping[PrimVar | SizeVar, PrimExpr]


def substitute_prim(
    e: PrimExpr,
    vars: VarMap,
    buffers: Mapping[Buffer, Buffer] = NO_BUFFERS,
) -> PrimExpr:
    """The expression with variables and buffers replaced, all at once."""
    return _Substitution(vars, dict(buffers)).expr(e)


def with_shape(buffer: Buffer, expr_fn: ExprFn) -> Buffer:
    """The buffer with a function applied to its shape and strides; itself if nothing changes."""
    shape = map_all(buffer.shape, expr_fn)
    strides = None if buffer.strides is None else map_all(buffer.strides, expr_fn)
    same = shape is buffer.shape and strides is buffer.strides
    return buffer if same else replace(buffer, shape=shape, strides=strides)


def substitute_stmt(
    s: Stmt,
    vars: VarMap,
    buffers: Mapping[Buffer, Buffer] = NO_BUFFERS,
) -> Stmt:
    """The statement with variables and buffers replaced.

    Bound variables are replaced only by variables. Buffers allocated within whose shape mentions a
    replaced variable become new ones.
    """
    return _Substitution(vars, dict(buffers)).stmt(s)


@dataclass(frozen=True, slots=True)
class _Substitution:
    """What is replaced; `buffers` takes those that are allocated anew on the way."""

    vars: VarMap
    buffers: dict[Buffer, Buffer]

    def expr(self, e: PrimExpr) -> PrimExpr:
        if isinstance(e, PrimVar | SizeVar):
            return self.vars.get(e, e)
        if not self._touches(e):
            return e
        y = map_prim(e, self.expr)
        if isinstance(y, Load) and y.buffer in self.buffers:
            return replace(y, buffer=self.buffers[y.buffer])
        return y

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case Allocate():
                self._define(s.buffer)
            case Block():
                for b in s.allocations:
                    self._define(b)
            case _:
                pass
        return map_stmt(s, self.stmt, self.expr, self._var, self._buffer)

    def _touches(self, e: PrimExpr) -> bool:
        """Whether anything in an expression is replaced."""
        held, keys = leaves(e), self.vars.keys()
        if not keys.isdisjoint(held.variables) or not keys.isdisjoint(held.sizes):
            return True
        return bool(self.buffers) and any(x.buffer in self.buffers for x in held.loads)

    def _var(self, v: PrimVar) -> PrimVar:
        new = self.vars.get(v, v)
        return new if isinstance(new, PrimVar) else v

    def _buffer(self, b: Buffer) -> Buffer:
        return self.buffers.get(b, b)

    def _define(self, b: Buffer) -> None:
        moved = b if b in self.buffers else with_shape(b, self.expr)
        if moved is not b:
            self.buffers[b] = moved
