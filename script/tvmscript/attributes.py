"""Prim values that operators of TVMScript are given: attributes are numbers, operands constants."""

from __future__ import annotations

import ast

from unity.op.registry import OpDef

from .spellings import SHORT
from .syntax import at_place, constant, dotted, path_of


def unwrap_attributes(node: ast.Call, row: OpDef) -> None:
    """Values that operators have as attributes are Python's: ``R.prim_value(1)`` is 1."""
    kinds = [p.kind for p in row.params]
    names = {p.name for p in row.params if p.kind == "attr"}
    node.args = [
        unwrapped(a) if k < len(kinds) and kinds[k] == "attr" else constant_of(a)
        for k, a in enumerate(node.args)
    ]
    for given in node.keywords:
        given.value = unwrapped(given.value) if given.arg in names else constant_of(given.value)


def unwrapped(value: ast.expr) -> ast.expr:
    """The number in ``R.prim_value(1)``, or in each part of a tuple of such."""
    match value:
        case ast.Call(args=[inner], keywords=[]) if path_of(value.func) == "R.prim_value":
            return inner
        case ast.Tuple(elts) | ast.List(elts):
            value.elts = [unwrapped(e) for e in elts]
            return value
        case _:
            return value


def constant_of(value: ast.expr) -> ast.expr:
    """``R.prim_value(T.float32(1))`` in place of a tensor is a constant of that dtype.

    Without a dtype it is TVM's own: float64 for a float, int64 for an integer.
    """
    match value:
        case ast.Call(args=[ast.Call(args=[number], keywords=[]) as typed], keywords=[]) if (
            path_of(value.func) == "R.prim_value"
        ):
            name = path_of(typed.func).removeprefix("T.")
            if name in SHORT and isinstance(constant(number), int | float):
                made = [number, ast.Constant(name)]
                return at_place(ast.Call(dotted("R.const"), made, []), value)
        case ast.Call(args=[number], keywords=[]) if path_of(value.func) == "R.prim_value":
            name = {float: "float64", int: "int64"}.get(type(constant(number)), "")
            if name:
                made = [number, ast.Constant(name)]
                return at_place(ast.Call(dotted("R.const"), made, []), value)
        case _:
            pass
    return value
