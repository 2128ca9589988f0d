"""Dims to prim expressions and back: the one place where sympy and index arithmetic meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from unity.ir.dims import (
    Dim,
    Symbol,
    as_dim,
    dim_max,
    dim_min,
    floordiv,
    floormod,
    symbol_of_facts,
)
from unity.ir.prim_expr import Binary, BinaryOp, Imm, PrimExpr, SizeVar, imm
from unity.lazy import Deferred

if TYPE_CHECKING:
    import sympy

    from . import sympy_nodes as nodes
else:
    sympy, nodes = Deferred("sympy"), Deferred("unity.ir.symbols.sympy_nodes")

_FUNCTIONS: dict[str, BinaryOp] = {
    "FloorDiv": "floordiv",
    "FloorMod": "floormod",
    "DimMin": "min",
    "DimMax": "max",
}
"""By the names of our nodes."""


def size_var(symbol: Symbol) -> SizeVar:
    """The prim expression of a symbol."""
    return SizeVar(symbol.name, symbol.facts)


def symbol_of(var: SizeVar) -> Symbol:
    """The symbol of a size."""
    return symbol_of_facts(var.name, var.facts)


def to_prim_expr(value: Dim) -> PrimExpr:
    """The int64 prim expression of a dim."""
    if isinstance(value, int):
        return imm(value)
    return _to_prim(cast("sympy.Expr", value))


def _to_prim(e: sympy.Expr) -> PrimExpr:
    match e:
        case sympy.Integer():
            return imm(int(e))
        case nodes.Symbol():
            return SizeVar(e.name, e.facts)
        case sympy.Add():
            return _chain("add", [_to_prim(a) for a in e.args])
        case sympy.Mul():
            return _chain("mul", [_to_prim(a) for a in e.args])
        case sympy.Pow():
            return _chain("mul", [_to_prim(e.base)] * int(e.exp))
        case nodes.FloorDiv() | nodes.FloorMod() | nodes.DimMin() | nodes.DimMax():
            return Binary(_FUNCTIONS[type(e).__name__], _to_prim(e.args[0]), _to_prim(e.args[1]))
        case _:
            raise TypeError(f"no prim expression for the dim {e!r}")


def _chain(op: BinaryOp, parts: list[PrimExpr]) -> PrimExpr:
    result = parts[0]
    for part in parts[1:]:
        result = Binary(op, result, part)
    return result


def to_dim(value: PrimExpr) -> Dim | None:
    """The dim of a prim expression over sizes and integers; None if it holds anything else."""
    match value:
        case Imm(int() as number):
            return number
        case SizeVar():
            return symbol_of(value)
        case Binary(op, a, b):
            left, right = to_dim(a), to_dim(b)
            if left is None or right is None:
                return None
            return _combine(op, left, right)
        case _:
            return None


def _combine(op: BinaryOp, a: Dim, b: Dim) -> Dim | None:
    match op:
        case "add":
            return as_dim(a + b)
        case "sub":
            return as_dim(a - b)
        case "mul":
            return as_dim(a * b)
        case "floordiv":
            return floordiv(a, b)
        case "floormod":
            return floormod(a, b)
        case "min":
            return dim_min(a, b)
        case "max":
            return dim_max(a, b)
        case _:
            return None
