"""How much work a loop body is, over sizes: what a parallel loop is cut into tasks by."""

from __future__ import annotations

from typing import assert_never

from unity.ir.marks import INSTRUCTION
from unity.ir.prim_expr import Binary, Imm, Intrinsic, Load, PrimExpr, PrimVar, SizeVar, imm
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)
from unity.ir.visiting.visit_prim import prim_children

UNKNOWN_TRIPS = 16
"""How often a loop is taken to run whose extent depends on the iteration."""
_INTRINSIC = 8
_LOAD = 2
_INSTRUCTION = 32


def work(s: Stmt) -> PrimExpr:
    """Roughly how many simple operations a statement performs; over sizes and integers only."""
    return _work(s, {})


def _work(s: Stmt, seen: dict[int, int]) -> PrimExpr:
    """The same, given the costs of expressions met before, by their ids: copies share them."""
    match s:
        case For(attrs=attrs) if attrs.get(INSTRUCTION) == "transpose":
            return _turned(s)
        case For() if INSTRUCTION in s.attrs:
            return imm(_INSTRUCTION)
        case For():
            return _times(_trips(s.extent), _plus(_work(s.body, seen), imm(1)))
        case Seq():
            total: PrimExpr = imm(0)
            for child in s.stmts:
                total = _plus(total, _work(child, seen))
            return total
        case Store():
            return imm(2 + _cost(s.value, seen) + sum(_cost(i, seen) for i in s.indices))
        case IfThen():
            then = _plus(_work(s.then, seen), imm(_cost(s.condition, seen)))
            return then if s.orelse is None else _plus(then, _work(s.orelse, seen))
        case Let():
            return _plus(_work(s.body, seen), imm(_cost(s.value, seen)))
        case Allocate():
            return _work(s.body, seen)
        case PrimWhile():
            return _times(imm(UNKNOWN_TRIPS), _work(s.body, seen))
        case Assert():
            return imm(_cost(s.condition, seen))
        case Evaluate():
            return imm(_cost(s.value, seen))
        case Block():
            raise AssertionError("a block in lowered code")
        case _:
            assert_never(s)


def _turned(s: For) -> PrimExpr:
    """A rectangle turned in registers: each 16 bytes are loaded, shuffled and stored."""
    match s.extent, s.body:
        case Imm(int() as height), For(extent=Imm(int() as lanes), body=Store(buffer=to)):
            return imm(3 * lanes * -(-height * to.dtype.bytes // 16))
        case _:
            return imm(_INSTRUCTION)


def _cost(e: PrimExpr, seen: dict[int, int]) -> int:
    found = seen.get(id(e))
    if found is None:
        found = _INTRINSIC if isinstance(e, Intrinsic) else _LOAD if isinstance(e, Load) else 1
        for c in prim_children(e):
            found += _cost(c, seen)
        seen[id(e)] = found
    return found


def _trips(extent: PrimExpr) -> PrimExpr:
    """How often a loop runs: what it is bounded by, where that is known."""
    most = _most(extent)
    return imm(UNKNOWN_TRIPS) if most is None else most


def _most(e: PrimExpr) -> PrimExpr | None:
    """What a count is, or is bounded by; None where that is not known."""
    if _is_known(e):
        return e
    match e:
        case Binary("max", Imm(), a) | Binary("max", a, Imm()):
            return _most(a)
        case Binary("min", a, b):
            known = (a, b) if _is_known(a) else (b, a)
            return next((most for x in known if (most := _most(x)) is not None), None)
        case Binary("add" | "sub" | "floordiv" as op, a, Imm() as by):
            most = _most(a)
            return None if most is None else Binary(op, most, by)
        case _:
            return None


def _is_known(e: PrimExpr) -> bool:
    match e:
        case Imm() | SizeVar():
            return True
        case PrimVar() | Load():
            return False
        case _:
            return all(_is_known(c) for c in prim_children(e))


def _plus(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if isinstance(a, Imm) and isinstance(b, Imm):
        return imm(int(a.value) + int(b.value))
    return Binary("add", a, b)


def _times(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if isinstance(a, Imm) and isinstance(b, Imm):
        return imm(int(a.value) * int(b.value))
    return Binary("mul", a, b)
