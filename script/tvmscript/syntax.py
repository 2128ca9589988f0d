"""Syntax trees of TVMScript: names, literals, and new nodes at the place of others."""

from __future__ import annotations

import ast
from typing import TypeGuard, TypeVar

N = TypeVar("N", bound=ast.AST)


def path_of(node: ast.expr | None) -> str:
    """A dotted name, or the empty string."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            base = path_of(node.value)
            return f"{base}.{node.attr}" if base else ""
        case _:
            return ""


def constant(node: ast.expr | None) -> object:
    """The value of a literal; the node itself if it is none."""
    if isinstance(node, ast.Call) and path_of(node.func).startswith("T.") and len(node.args) == 1:
        return constant(node.args[0])  # T.int32(0), T.bool(True)
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return node


def said(node: ast.expr | None) -> TypeGuard[ast.expr]:
    """Whether something is given, and not as None."""
    return node is not None and constant(node) is not None


def keyword(name: str, value: ast.expr) -> ast.keyword:
    """An argument by name, at the place of its value."""
    return ast.copy_location(ast.keyword(name, value), value)


def dotted(path: str) -> ast.expr:
    """A dotted name, ``T.axis.remap``."""
    first, *rest = path.split(".")
    found: ast.expr = ast.Name(first, ast.Load())
    for part in rest:
        found = ast.Attribute(found, part, ast.Load())
    return found


def at_place(node: N, like: ast.AST) -> N:
    """The node and what was made for it, at the place of another."""
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt | ast.keyword) and not hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return node
