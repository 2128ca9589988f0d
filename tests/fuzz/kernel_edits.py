"""Kernels with one thing less: a statement, a loop, a branch, a part of a formula, an extent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unity.ir.prim_expr import Imm, Load, PrimExpr, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, IfThen, Let, PrimFunc, Seq, Stmt
from unity.ir.visit import (
    map_prim,
    map_stmt,
    map_stmts,
    prim_children,
    rewrite_prim,
    stmt_children,
    stmt_exprs,
    substitute_stmt,
    walk_prim,
    walk_stmt,
)


def smaller_kernels(func: PrimFunc) -> Iterator[PrimFunc]:
    """Kernels that do less; not all of them are well formed."""
    for body in _without_a_statement(func.body):
        yield replace(func, body=body)
    for n in sorted({n for b in _buffers(func) for n in _numbers(b)}, reverse=True):
        for less in dict.fromkeys((1, n // 2, n - 1)):
            if 0 < less < n:
                yield _with_extent(func, n, less)
    for body in _with_a_simpler_value(func.body):
        yield replace(func, body=body)


def size_of(func: PrimFunc) -> tuple[int, int, int]:
    """How large a kernel is: statements, parts of formulas, extents."""
    stmts = [*walk_stmt(func.body)]
    exprs = [x for s in stmts for e in stmt_exprs(s) for x in walk_prim(e)]
    return len(stmts), len(exprs), sum(n for b in _buffers(func) for n in _numbers(b))


def _instead(s: Stmt) -> Iterator[Stmt]:
    """What may stand in a statement's place."""
    match s:
        case Seq(stmts):
            for k in range(len(stmts)):
                rest = (*stmts[:k], *stmts[k + 1 :])
                yield rest[0] if len(rest) == 1 else Seq(rest)
        case For():
            yield substitute_stmt(s.body, {s.var: s.begin})
        case IfThen():
            yield s.then
            yield from () if s.orelse is None else (s.orelse,)
        case Let():
            yield substitute_stmt(s.body, {s.var: s.value})
        case Allocate():
            yield s.body
        case Block() if s.predicate is not None:
            yield replace(s, predicate=None)
        case _:
            return


def _without_a_statement(s: Stmt) -> Iterator[Stmt]:
    yield from _instead(s)
    for k, child in enumerate(stmt_children(s)):
        for less in _without_a_statement(child):
            yield _with_child(s, k, less)


def _with_child(s: Stmt, k: int, new: Stmt) -> Stmt:
    """The statement with another k-th child."""
    count = -1

    def go(child: Stmt) -> Stmt:
        nonlocal count
        count += 1
        return new if count == k else child

    return map_stmts(s, go)


def _with_a_simpler_value(s: Stmt) -> Iterator[Stmt]:
    """Each formula's parts replaced by an operand of theirs, or by one."""
    for k, e in enumerate(stmt_exprs(s)):
        for less in _simpler(e):
            yield _with_expr(s, k, less)
    for k, child in enumerate(stmt_children(s)):
        for changed in _with_a_simpler_value(child):
            yield _with_child(s, k, changed)


def _with_expr(s: Stmt, k: int, new: PrimExpr) -> Stmt:
    old = stmt_exprs(s)[k]
    return map_stmt(s, lambda child: child, lambda e: new if e is old else e)


def _simpler(e: PrimExpr) -> Iterator[PrimExpr]:
    if isinstance(e, Imm):
        return
    for operand in prim_children(e):
        if operand.dtype == e.dtype:
            yield operand
    if prim_children(e):
        yield imm(1, e.dtype)
    for k, operand in enumerate(prim_children(e)):
        for less in _simpler(operand):
            yield _with_operand(e, k, less)


def _with_operand(e: PrimExpr, k: int, new: PrimExpr) -> PrimExpr:
    count = -1

    def go(operand: PrimExpr) -> PrimExpr:
        nonlocal count
        count += 1
        return new if count == k else operand

    return map_prim(e, go)


def _buffers(func: PrimFunc) -> Iterator[Buffer]:
    yield from func.buffers
    for s in walk_stmt(func.body):
        if isinstance(s, Allocate):
            yield s.buffer


def _numbers(buffer: Buffer) -> Iterator[int]:
    yield from (int(n.value) for n in buffer.shape if isinstance(n, Imm) and int(n.value) > 1)


def _with_extent(func: PrimFunc, n: int, less: int) -> PrimFunc:
    """The kernel with another extent in place of one, in shapes, loops and axes."""
    known: dict[Buffer, Buffer] = {}

    def number(e: PrimExpr) -> PrimExpr:
        if isinstance(e, Load):
            return replace(e, buffer=buffer(e.buffer))
        return imm(less, e.dtype) if isinstance(e, Imm) and e.value == n and e.dtype.is_int else e

    def buffer(b: Buffer) -> Buffer:
        return known.setdefault(b, replace(b, shape=tuple(map(number, b.shape))))

    def expr(e: PrimExpr) -> PrimExpr:
        return rewrite_prim(e, number)

    def stmt(s: Stmt) -> Stmt:
        return map_stmt(s, stmt, expr, buffer_fn=buffer)

    params = tuple(buffer(p) if isinstance(p, Buffer) else p for p in func.params)
    return PrimFunc(params, stmt(func.body), func.attrs)
