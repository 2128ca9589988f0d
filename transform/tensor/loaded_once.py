"""What all iterations of a loop that is written out load, loaded once before it."""

from __future__ import annotations

from collections.abc import Iterator

from unity.ir.foreign import ADDRESS_OF, CALL_EXTERN
from unity.ir.prim_expr import Broadcast, Intrinsic, Load, PrimExpr, PrimVar, Select
from unity.ir.stmt import Allocate, Buffer, Evaluate, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.visit import (
    bound_in,
    leaves,
    map_prim,
    map_stmt,
    prim_children,
    prim_loads,
    stmt_exprs,
    variables,
    walk_stmt,
)

Loads = dict[PrimExpr, PrimVar]
"""Variables of what is loaded; a vector of one loaded value counts as loaded."""


def loaded_once(loop: For, own: frozenset[Buffer]) -> tuple[For, Loads]:
    """A loop that is to be written out, and what is to be loaded before it.

    The copies of a tile's body load the same weights and the same pixels. Each of these loads would
    be simplified, and addressed, by itself.

    Args:
        loop: One of at least one iteration.
        own: The buffers that the kernel allocates; others may share their memory.
    """
    stmts = list(walk_stmt(loop.body))
    if not all(isinstance(s, _UNDERSTOOD) and not _acts(s) for s in stmts):
        return loop, {}
    written = {s.buffer for s in stmts if isinstance(s, Store)}
    moving = {s.buffer for s in stmts if isinstance(s, Allocate)} | written
    bound, shares = bound_in(loop), not written <= own

    def stays(e: Load) -> bool:
        if e.buffer in moving or (shares and e.buffer not in own):
            return False
        return not variables(e) & bound and len(prim_loads(e)) == 1

    found: Loads = {}
    for each in _always(loop.body):
        for e in _performed(each):
            load = e.value if isinstance(e, Broadcast) else e
            if isinstance(load, Load) and e not in found and stays(load):
                found[e] = PrimVar(load.buffer.name, e.dtype)
    return (_without(loop, found), found) if found else (loop, found)


_UNDERSTOOD = (Allocate, Evaluate, For, IfThen, Let, Seq, Store)


def _acts(s: Stmt) -> bool:
    """Whether a statement may do more than store what it says."""
    if isinstance(s, Evaluate):
        return not (isinstance(s.value, Intrinsic) and s.value.name == "prefetch")
    calls = (x for e in stmt_exprs(s) for x in leaves(e).calls)
    return any(x.name in (ADDRESS_OF, CALL_EXTERN) for x in calls)


def _always(s: Stmt) -> Iterator[PrimExpr]:
    """The expressions that are computed whenever a statement is met."""
    match s:
        case Seq():
            for x in s.stmts:
                yield from _always(x)
        case Let():
            yield s.value
            yield from _always(s.body)
        case Allocate():
            yield from _always(s.body)
        case Store(predicate=None):
            yield s.value
        case _:
            pass


def _performed(e: PrimExpr) -> Iterator[PrimExpr]:
    """Loads and what spreads them, outside first, that no condition keeps from happening."""
    match e:
        case Load(predicate=None) | Broadcast(value=Load(predicate=None)):
            yield e
        case Select():
            yield from _performed(e.condition)
        case _:
            for x in prim_children(e):
                yield from _performed(x)


def _without(loop: For, found: Loads) -> For:
    """The loop that reads variables instead."""

    def on_expr(e: PrimExpr) -> PrimExpr:
        var = found.get(e) if isinstance(e, Load | Broadcast) else None
        return map_prim(e, on_expr) if var is None else var

    def on_stmt(s: Stmt) -> Stmt:
        return s if isinstance(s, Evaluate) else map_stmt(s, on_stmt, on_expr)

    done = on_stmt(loop)
    assert isinstance(done, For)
    return done
