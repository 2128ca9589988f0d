"""Walking and rewriting prim expressions; the same object when nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from unity.ir.leaves import prim_loads
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

from .visit_graph import map_all

ExprFn: TypeAlias = Callable[[PrimExpr], PrimExpr]


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


def rewrite_loads(e: PrimExpr, fn: Callable[[Load], PrimExpr | None]) -> PrimExpr:
    """Bottom-up over the loads of an expression alone; None leaves one."""
    return _RewritingLoads(fn).expr(e)


@dataclass(frozen=True, slots=True)
class _RewritingLoads:
    """What `rewrite_loads` does; see `_Rewriting`."""

    fn: Callable[[Load], PrimExpr | None]

    def expr(self, e: PrimExpr) -> PrimExpr:
        if not prim_loads(e):
            return e
        y = map_prim(e, self.expr)
        z = self.fn(y) if isinstance(y, Load) else None
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
