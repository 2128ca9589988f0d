"""Walking and rewriting statements; the same object when nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from unity.ir.leaves import prim_loads
from unity.ir.prim_expr import Load, PrimExpr, PrimVar
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

from .visit_graph import map_all
from .visit_prim import ExprFn, rewrite_loads, rewrite_prim


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
    """The expressions a statement holds itself (regions and domains included)."""
    match s:
        case Store():
            own = (*s.indices, s.value)
            return own if s.predicate is None else (*own, s.predicate)
        case For():
            return (s.begin, s.extent)
        case Block():
            found: list[PrimExpr] = []
            for axis in s.axes:
                found += (axis.domain.begin, axis.domain.extent, axis.value)
            for region in (*s.reads, *s.writes):
                for r in region.ranges:
                    found += (r.begin, r.extent)
            if s.predicate is not None:
                found.append(s.predicate)
            return tuple(found)
        case IfThen() | PrimWhile() | Assert():
            return (s.condition,)
        case Let() | Evaluate():
            return (s.value,)
        case Allocate() | Seq():
            return ()
        case _:
            assert_never(s)


def stmt_loads(s: Stmt) -> list[Load]:
    """The loads in the expressions that a statement holds itself."""
    return [x for e in stmt_exprs(s) for x in prim_loads(e)]


def binds(s: Stmt) -> tuple[PrimVar, ...]:
    """The variables that a statement binds itself."""
    match s:
        case For() | Let():
            return (s.var,)
        case Block():
            return tuple(axis.var for axis in s.axes)
        case _:
            return ()


def bound_in(s: Stmt) -> set[PrimVar]:
    """The variables that a statement binds, anywhere below it, too."""
    return {v for x in walk_stmt(s) for v in binds(x)}


def allocates(s: Stmt) -> tuple[Buffer, ...]:
    """The buffers that a statement allocates itself."""
    match s:
        case Allocate():
            return (s.buffer,)
        case Block():
            return s.allocations
        case _:
            return ()


def temporaries(s: Stmt) -> Iterator[Buffer]:
    """The buffers that a statement allocates, anywhere below it, too."""
    for x in walk_stmt(s):
        yield from allocates(x)


def map_stmts(s: Stmt, fn: Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with `fn` applied to each statement directly within."""
    match s:
        case Store() | Evaluate() | Assert():
            return s
        case For():
            body = fn(s.body)
            return s if body is s.body else with_loop_body(s, body)
        case Seq():
            stmts = map_all(s.stmts, fn)
            return s if stmts is s.stmts else Seq(stmts)
        case Block():
            init = None if s.init is None else fn(s.init)
            body = fn(s.body)
            same = init is s.init and body is s.body
            return s if same else replace(s, init=init, body=body)
        case IfThen():
            then = fn(s.then)
            orelse = None if s.orelse is None else fn(s.orelse)
            same = then is s.then and orelse is s.orelse
            return s if same else IfThen(s.condition, then, orelse, s.span)
        case Let():
            body = fn(s.body)
            return s if body is s.body else Let(s.var, s.value, body, s.span)
        case Allocate():
            body = fn(s.body)
            return s if body is s.body else Allocate(s.buffer, body, s.span)
        case PrimWhile():
            body = fn(s.body)
            return s if body is s.body else PrimWhile(s.condition, body, s.span)
        case _:
            assert_never(s)


def with_loop_body(s: For, body: Stmt) -> For:
    """A loop around another body."""
    return For(s.var, s.begin, s.extent, body, s.kind, s.thread, s.attrs, s.span)


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
            return s if same else For(var, begin, extent, body, s.kind, s.thread, s.attrs, s.span)
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
    load_fn: Callable[[Load], PrimExpr | None] | None = None,
) -> Stmt:
    """Bottom-up over statements and what they hold; None leaves a statement or an expression.

    Args:
        s: The statement.
        stmt_fn: Sees each statement.
        expr_fn: Sees each expression.
        load_fn: Where that is left out: sees each load.
    """
    return _Rewriting(stmt_fn, expr_fn, load_fn).stmt(s)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """What `rewrite_stmt` does; a method, as in `unity.ir.visiting.visit_prim`."""

    stmt_fn: Callable[[Stmt], Stmt | None] | None
    expr_fn: Callable[[PrimExpr], PrimExpr | None] | None
    load_fn: Callable[[Load], PrimExpr | None] | None

    def expr(self, e: PrimExpr) -> PrimExpr:
        if self.expr_fn is not None:
            return rewrite_prim(e, self.expr_fn)
        return e if self.load_fn is None else rewrite_loads(e, self.load_fn)

    def stmt(self, s: Stmt) -> Stmt:
        plain = self.expr_fn is None and self.load_fn is None
        y = map_stmts(s, self.stmt) if plain else map_stmt(s, self.stmt, self.expr)
        z = None if self.stmt_fn is None else self.stmt_fn(y)
        return y if z is None else z
