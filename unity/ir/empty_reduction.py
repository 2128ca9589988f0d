"""What a reduction over nothing leaves behind: the init, once for each point of the spatial axes.

A loop that only drives reduce axes may turn out to have no iterations (a symbolic extent that is 0
at run time). No step of it runs then, yet the output must hold the init. The interpreter and the
lowering of blocks both take the statement made here for that case. What such a loop only fetches
ahead takes no part in it.
"""

from __future__ import annotations

from dataclasses import replace

from unity.ir.leaves import leaves

from .prim_expr import Binary, Intrinsic, PrimExpr, PrimVar
from .stmt import Block, Evaluate, For, IfThen, Seq, Stmt


def init_of_empty(loop: For) -> Stmt | None:
    """What to run in place of `loop` where its extent is 0; None if it is no such reduction.

    >>> from unity import te
    >>> a = te.placeholder((4, 8), "float32", "a")
    >>> k = te.reduce_axis(8, "k")
    >>> func = te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], [k]), "b")])
    >>> outer = func.body
    >>> init_of_empty(outer) is None, type(init_of_empty(outer.body)).__name__
    (True, 'Block')
    """
    return _only_init(loop.body, {loop.var}) if _reduces(loop.body, loop.var) else None


def conjuncts(e: PrimExpr) -> tuple[PrimExpr, ...]:
    """The conditions that a predicate joins by ``and``."""
    if isinstance(e, Binary) and e.op == "and":
        return conjuncts(e.a) + conjuncts(e.b)
    return (e,)


def _mentions(e: PrimExpr, variables: set[PrimVar]) -> bool:
    return not variables.isdisjoint(leaves(e).variables)


def _is_of_sizes(condition: PrimExpr) -> bool:
    """Whether a condition says something of sizes, the same in every iteration."""
    held = leaves(condition)
    return not held.variables and not held.loads


def _reduces(s: Stmt, var: PrimVar) -> bool:
    """Whether below are only loops and blocks with an init, and `var` drives only reduce axes.

    Versions of them by sizes (``if m == 2``) count as what they are versions of.
    """
    match s:
        case For():
            return _reduces(s.body, var)
        case Seq():
            stmts = _doing(s)
            return bool(stmts) and all(_reduces(each, var) for each in stmts)
        case IfThen(condition, then, orelse):
            ways = (then,) if orelse is None else (then, orelse)
            return _is_of_sizes(condition) and all(_reduces(each, var) for each in ways)
        case Block():
            driven = {axis.kind for axis in s.axes if _mentions(axis.value, {var})}
            return s.init is not None and driven == {"R"}
        case _:
            return False


def _doing(s: Seq) -> tuple[Stmt, ...]:
    """The statements but those that only fetch ahead."""
    return tuple(each for each in s.stmts if not _fetches(each))


def _fetches(s: Stmt) -> bool:
    """Whether a statement only asks for what is read later."""
    match s:
        case For():
            return _fetches(s.body)
        case Seq(stmts):
            return all(map(_fetches, stmts))
        case IfThen(_, then, orelse):
            return _fetches(then) and (orelse is None or _fetches(orelse))
        case Block():
            return s.init is None and _fetches(s.body)
        case Evaluate(Intrinsic(name="prefetch")):
            return True
        case _:
            return False


def _only_init(s: Stmt, gone: set[PrimVar]) -> Stmt:
    match s:
        case For():
            if _reduces(s.body, s.var):
                return _only_init(s.body, gone | {s.var})
            body = _only_init(s.body, gone)
            return For(s.var, s.begin, s.extent, body, s.kind, s.thread, s.attrs, s.span)
        case Seq():
            return Seq(tuple(_only_init(each, gone) for each in _doing(s)))
        case IfThen(_, then, orelse):
            otherwise = None if orelse is None else _only_init(orelse, gone)
            return replace(s, then=_only_init(then, gone), orelse=otherwise)
        case Block():
            assert s.init is not None
            axes = tuple(axis for axis in s.axes if axis.kind != "R")
            predicate: PrimExpr | None = None
            for part in () if s.predicate is None else conjuncts(s.predicate):
                if not _mentions(part, gone):
                    predicate = part if predicate is None else Binary("and", predicate, part)
            return Block(f"{s.name}_init", axes, (), s.writes, s.init, None, predicate)
        case _:
            raise AssertionError(s)
