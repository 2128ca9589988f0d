"""Walking and rewriting prim expressions and statements; the same object when nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
)
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    BlockAxis,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visit_graph import map_all

ExprFn: TypeAlias = Callable[[PrimExpr], PrimExpr]
NO_BUFFERS: Mapping[Buffer, Buffer] = {}


def prim_children(e: PrimExpr) -> tuple[PrimExpr, ...]:
    """The direct operands."""
    match e:
        case Binary() | Compare():
            return (e.a, e.b)
        case PrimVar() | SizeVar() | Imm():
            return ()
        case Not():
            return (e.a,)
        case Select():
            return (e.condition, e.then, e.orelse)
        case Cast() | Broadcast():
            return (e.value,)
        case Load():
            return e.indices if e.predicate is None else (*e.indices, e.predicate)
        case Intrinsic():
            return e.args
        case Ramp():
            return (e.base, e.stride)
        case _:
            assert_never(e)


def map_prim(e: PrimExpr, fn: ExprFn) -> PrimExpr:
    """The expression with `fn` applied to each direct operand."""
    match e:
        case Binary():  # first, being the most frequent: this function is where compiling spends
            a, b = fn(e.a), fn(e.b)
            return e if a is e.a and b is e.b else Binary(e.op, a, b)
        case PrimVar() | SizeVar() | Imm():
            return e
        case Compare():
            a, b = fn(e.a), fn(e.b)
            return e if a is e.a and b is e.b else Compare(e.op, a, b)
        case Not():
            a = fn(e.a)
            return e if a is e.a else Not(a)
        case Select():
            c, a, b = fn(e.condition), fn(e.then), fn(e.orelse)
            same = c is e.condition and a is e.then and b is e.orelse
            return e if same else Select(c, a, b)
        case Cast():
            a = fn(e.value)
            return e if a is e.value else Cast(e.dtype, a)
        case Load():
            indices = map_all(e.indices, fn)
            predicate = None if e.predicate is None else fn(e.predicate)
            same = indices is e.indices and predicate is e.predicate
            return e if same else Load(e.buffer, indices, predicate)
        case Intrinsic():
            args = map_all(e.args, fn)
            return e if args is e.args else replace(e, args=args)
        case Ramp():
            a, b = fn(e.base), fn(e.stride)
            return e if a is e.base and b is e.stride else Ramp(a, b, e.lanes)
        case Broadcast():
            a = fn(e.value)
            return e if a is e.value else Broadcast(a, e.lanes)
        case _:
            assert_never(e)


def rewrite_prim(e: PrimExpr, fn: Callable[[PrimExpr], PrimExpr | None]) -> PrimExpr:
    """Bottom-up: `fn` sees each node after its operands; None leaves the node."""
    return _Rewriting(fn).expr(e)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """What `rewrite_prim` does.

    A function that calls itself from within another one is a cycle, which nobody collects while a
    program compiles (`unity.collection`); a method is not.
    """

    fn: Callable[[PrimExpr], PrimExpr | None]

    def expr(self, e: PrimExpr) -> PrimExpr:
        y = map_prim(e, self.expr)
        z = self.fn(y)
        return y if z is None else z


def walk_prim(e: PrimExpr) -> Iterator[PrimExpr]:
    """The expression and everything in it, outside first."""
    left = [e]
    while left:
        found = left.pop()
        yield found
        children = prim_children(found)
        if children:
            left.extend(reversed(children))


def stmt_children(s: Stmt) -> tuple[Stmt, ...]:
    """The statements directly within; a block's init before its body."""
    match s:
        case Block():
            return (s.body,) if s.init is None else (s.init, s.body)
        case For() | Let() | Allocate() | PrimWhile():
            return (s.body,)
        case IfThen():
            return (s.then,) if s.orelse is None else (s.then, s.orelse)
        case Seq():
            return s.stmts
        case Store() | Assert() | Evaluate():
            return ()
        case _:
            assert_never(s)


def walk_stmt(s: Stmt) -> Iterator[Stmt]:
    """The statement and everything in it, outside first."""
    left = [s]
    while left:
        found = left.pop()
        yield found
        left.extend(reversed(stmt_children(found)))


def stmt_exprs(s: Stmt) -> tuple[PrimExpr, ...]:
    """The expressions a statement holds itself (regions, domains and shapes included)."""
    found: list[PrimExpr] = []

    def note(e: PrimExpr) -> PrimExpr:
        found.append(e)
        return e

    map_stmt(s, lambda x: x, note)
    return tuple(found)


def prim_loads(e: PrimExpr) -> list[Load]:
    """The loads in an expression, outside first."""
    return [x for x in walk_prim(e) if isinstance(x, Load)]


def stmt_loads(s: Stmt) -> list[Load]:
    """The loads in the expressions that a statement holds itself."""
    return [x for e in stmt_exprs(s) for x in prim_loads(e)]


def map_stmt(
    s: Stmt,
    stmt_fn: Callable[[Stmt], Stmt],
    expr_fn: ExprFn,
    var_fn: Callable[[PrimVar], PrimVar] = lambda v: v,
    buffer_fn: Callable[[Buffer], Buffer] = lambda b: b,
) -> Stmt:
    """The statement with the functions applied to what it holds directly.

    `expr_fn` meets bounds, values, predicates, regions, domains; `var_fn` the variables it binds;
    `buffer_fn` the buffers it names (not those inside expressions).
    """
    match s:
        case Block():
            axes = map_all(s.axes, lambda a: _map_axis(a, expr_fn, var_fn))
            reads = map_all(s.reads, lambda r: _map_region(r, expr_fn, buffer_fn))
            writes = map_all(s.writes, lambda r: _map_region(r, expr_fn, buffer_fn))
            predicate = None if s.predicate is None else expr_fn(s.predicate)
            allocations = map_all(s.allocations, buffer_fn)
            init = None if s.init is None else stmt_fn(s.init)
            body = stmt_fn(s.body)
            same = (
                axes is s.axes
                and reads is s.reads
                and writes is s.writes
                and predicate is s.predicate
                and allocations is s.allocations
                and init is s.init
                and body is s.body
            )
            if same:
                return s
            return Block(
                s.name, axes, reads, writes, body, init, predicate, allocations, s.attrs, s.span
            )
        case For():
            var, begin, extent = var_fn(s.var), expr_fn(s.begin), expr_fn(s.extent)
            body = stmt_fn(s.body)
            same = var is s.var and begin is s.begin and extent is s.extent and body is s.body
            return s if same else replace(s, var=var, begin=begin, extent=extent, body=body)
        case Store():
            buffer, indices, value = (
                buffer_fn(s.buffer),
                map_all(s.indices, expr_fn),
                expr_fn(s.value),
            )
            predicate = None if s.predicate is None else expr_fn(s.predicate)
            same = (
                buffer is s.buffer
                and indices is s.indices
                and value is s.value
                and predicate is s.predicate
            )
            return s if same else Store(buffer, indices, value, predicate, s.span)
        case IfThen():
            condition, then = expr_fn(s.condition), stmt_fn(s.then)
            orelse = None if s.orelse is None else stmt_fn(s.orelse)
            same = condition is s.condition and then is s.then and orelse is s.orelse
            return s if same else IfThen(condition, then, orelse, s.span)
        case Let():
            var, value, body = var_fn(s.var), expr_fn(s.value), stmt_fn(s.body)
            same = var is s.var and value is s.value and body is s.body
            return s if same else Let(var, value, body, s.span)
        case Allocate():
            buffer, body = buffer_fn(s.buffer), stmt_fn(s.body)
            same = buffer is s.buffer and body is s.body
            return s if same else Allocate(buffer, body, s.span)
        case PrimWhile():
            condition, body = expr_fn(s.condition), stmt_fn(s.body)
            same = condition is s.condition and body is s.body
            return s if same else PrimWhile(condition, body, s.span)
        case Assert():
            condition = expr_fn(s.condition)
            return s if condition is s.condition else replace(s, condition=condition)
        case Evaluate():
            value = expr_fn(s.value)
            return s if value is s.value else replace(s, value=value)
        case Seq():
            stmts = map_all(s.stmts, stmt_fn)
            return s if stmts is s.stmts else Seq(stmts)
        case _:
            assert_never(s)


def _map_range(r: Range, expr_fn: ExprFn) -> Range:
    begin, extent = expr_fn(r.begin), expr_fn(r.extent)
    return r if begin is r.begin and extent is r.extent else Range(begin, extent)


def _map_region(r: Region, expr_fn: ExprFn, buffer_fn: Callable[[Buffer], Buffer]) -> Region:
    buffer, ranges = buffer_fn(r.buffer), map_all(r.ranges, lambda x: _map_range(x, expr_fn))
    return r if buffer is r.buffer and ranges is r.ranges else Region(buffer, ranges)


def _map_axis(a: BlockAxis, expr_fn: ExprFn, var_fn: Callable[[PrimVar], PrimVar]) -> BlockAxis:
    var, domain, value = var_fn(a.var), _map_range(a.domain, expr_fn), expr_fn(a.value)
    same = var is a.var and domain is a.domain and value is a.value
    return a if same else BlockAxis(var, a.kind, domain, value)


def rewrite_stmt(
    s: Stmt,
    stmt_fn: Callable[[Stmt], Stmt | None] | None,
    expr_fn: Callable[[PrimExpr], PrimExpr | None] | None = None,
) -> Stmt:
    """Bottom-up over statements and, with `expr_fn`, over every expression in them."""

    def on_expr(e: PrimExpr) -> PrimExpr:
        return e if expr_fn is None else rewrite_prim(e, expr_fn)

    def go(x: Stmt) -> Stmt:
        y = map_stmt(x, go, on_expr)
        z = None if stmt_fn is None else stmt_fn(y)
        return y if z is None else z

    return go(s)


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

    def _var(self, v: PrimVar) -> PrimVar:
        new = self.vars.get(v, v)
        return new if isinstance(new, PrimVar) else v

    def _buffer(self, b: Buffer) -> Buffer:
        return self.buffers.get(b, b)

    def _define(self, b: Buffer) -> None:
        moved = b if b in self.buffers else with_shape(b, self.expr)
        if moved is not b:
            self.buffers[b] = moved
