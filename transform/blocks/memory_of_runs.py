"""Memory of iterations that run at once: a run of them shares what is too large for a stack."""

from __future__ import annotations

from dataclasses import replace

from unity.arith import simplify
from unity.ir.prim_expr import Binary, Imm, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Allocate, Block, Buffer, For, PrimFunc, Stmt, Store
from unity.ir.visit import map_prim, map_stmt, variables, walk_stmt

from .compaction import is_large
from .tree import is_zero, replaced, with_regions

RUNS_A_THREAD = 2
"""Runs of iterations for each thread, so that none waits long for another."""


def in_runs(func: PrimFunc, threads: int) -> PrimFunc:
    """The prim func without large temporaries in loops on threads, of what sizes the call has.

    Each iteration would have to ask for memory. Instead, the iterations are taken in a few runs of
    about as many each, and each run has its part of one buffer, which is there before.

    Args:
        func: The prim func.
        threads: How many share a loop.
    """
    runs = 1 if threads == 1 else threads * RUNS_A_THREAD
    loops = [s for s in walk_stmt(func.body) if isinstance(s, For) and s.kind == "parallel"]
    for loop in loops:
        large, body = _large(loop.body)
        if large:
            shared = _runs(replace(loop, body=body), runs)
            run = shared.var if is_zero(shared.begin) else shared.var - shared.begin
            inside: Stmt = shared
            for buffer in large:
                room = _of_all(buffer, shared.extent)
                inside = Allocate(room, _in_part(inside, buffer, room, run))
            func = replaced(func, [(loop, inside)])
    return func


def _of_all(buffer: Buffer, runs: PrimExpr) -> Buffer:
    """A buffer with a part for each run."""
    shape, strides = (runs, *buffer.shape), buffer.strides
    if strides:
        strides = (simplify(Binary("mul", strides[0], buffer.shape[0])), *strides)
    return replace(buffer, shape=shape, strides=strides)


def _large(body: Stmt) -> tuple[list[Buffer], Stmt]:
    """The large temporaries of an iteration, and what is left."""
    if not isinstance(body, Allocate):
        return [], body
    found, inner = _large(body.body)
    known = not any(isinstance(x, PrimVar) for n in body.buffer.shape for x in variables(n))
    if known and body.buffer.scope == "global" and is_large(body.buffer):
        return [body.buffer, *found], inner
    return found, replace(body, body=inner)


def _runs(loop: For, runs: int) -> For:
    """A loop on threads as runs of about as many iterations each, in each of which it is serial."""
    if isinstance(loop.extent, Imm) and int(loop.extent.value) <= runs:
        return loop
    run = PrimVar("run")

    def upto(n: PrimExpr) -> PrimExpr:
        return Binary("floordiv", Binary("mul", n, loop.extent), imm(runs))

    begin = Binary("add", loop.begin, upto(run))
    count = Binary("sub", upto(Binary("add", run, imm(1))), upto(run))
    inner = replace(loop, begin=begin, extent=count, kind="serial")
    return For(run, imm(0), imm(runs), inner, "parallel")


def _in_part(s: Stmt, old: Buffer, new: Buffer, run: PrimExpr) -> Stmt:
    """A statement with the accesses of a buffer in the part of a run."""

    def on_expr(e: PrimExpr) -> PrimExpr:
        e = map_prim(e, on_expr)
        if isinstance(e, Load) and e.buffer is old:
            return replace(e, buffer=new, indices=(run, *e.indices))
        return e

    def on_stmt(x: Stmt) -> Stmt:
        made = map_stmt(x, on_stmt, on_expr)
        if isinstance(made, Store) and made.buffer is old:
            return replace(made, buffer=new, indices=(run, *made.indices))
        touches = isinstance(made, Block) and any(
            r.buffer is old for r in (*made.reads, *made.writes)
        )
        return with_regions(made) if touches and isinstance(made, Block) else made

    return on_stmt(s)
