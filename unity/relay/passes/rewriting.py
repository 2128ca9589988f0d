"""Syntax rewritten from the operands up, without recursion, however long its chains are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from unity.frontend.relay import syntax
from unity.relay.nodes import post_order


def rewritten(
    function: syntax.Function, change: Callable[[syntax.Expr, syntax.Expr], syntax.Expr]
) -> syntax.Function:
    """A function whose expressions were given to `change`, operands first, each once.

    Args:
        function: It.
        change: Is given an expression as it was, and made anew of its changed operands (the same
            object if none changed); gives what takes its place. It never sees the function.
    """
    made: dict[syntax.Expr, syntax.Expr] = {}
    for node in post_order(function.body):
        parts = [made[child] for child in syntax.children(node)]
        made[node] = change(node, with_children(node, parts))
    body = made[function.body]
    return function if body is function.body else replace(function, body=body)


def each(
    module: syntax.Module, change: Callable[[str, syntax.Function], syntax.Function]
) -> syntax.Module:
    """A module whose functions were given to `change`, with their names."""
    functions = {name: change(name, f) for name, f in module.functions.items()}
    same = all(functions[name] is f for name, f in module.functions.items())
    return module if same else replace(module, functions=functions)


def with_children(node: syntax.Expr, parts: Sequence[syntax.Expr]) -> syntax.Expr:
    """An expression with others in the places of those that `syntax.children` lists."""
    if all(a is b for a, b in zip(parts, syntax.children(node), strict=True)):
        return node
    match node:
        case syntax.Tuple():
            return replace(node, fields=tuple(parts))
        case syntax.TupleGetItem():
            return replace(node, tuple=parts[0])
        case syntax.Call():
            return replace(node, callee=parts[0], arguments=tuple(parts[1:]))
        case syntax.Let():
            return replace(node, value=parts[0], body=parts[1])
        case syntax.If():
            return replace(node, condition=parts[0], then=parts[1], otherwise=parts[2])
        case syntax.Match():
            bodies = zip(node.clauses, parts[1:], strict=True)
            clauses = tuple(replace(c, body=body) for c, body in bodies)
            return replace(node, value=parts[0], clauses=clauses)
        case syntax.Function():
            return replace(node, body=parts[0])
        case syntax.RefCreate():
            return replace(node, value=parts[0])
        case syntax.RefRead():
            return replace(node, ref=parts[0])
        case syntax.RefWrite():
            return replace(node, ref=parts[0], value=parts[1])
        case syntax.Var() | syntax.GlobalVar() | syntax.Op():
            return node
        case syntax.Constructor() | syntax.Constant():
            return node
        case _:
            assert_never(node)


def called(node: syntax.Expr) -> str:
    """The operator that an expression calls; nothing if it calls none."""
    if isinstance(node, syntax.Call) and isinstance(node.callee, syntax.Op):
        return node.callee.name
    return ""
