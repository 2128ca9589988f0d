"""Syntax trees of TVMScript: names, literals, and new nodes at the place of others."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
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


def distance(first: ast.expr, last: ast.expr | None) -> int | None:
    """How far two bounds are apart: two numbers, or an expression and the same plus a number.

    >>> a, b = (ast.parse(text, mode="eval").body for text in ("4 * i", "4 * i + 3"))
    >>> distance(a, b), distance(b, a)
    (3, None)
    """
    low, high = constant(first), constant(last)
    if isinstance(low, int) and isinstance(high, int):
        return high - low
    match last:
        case ast.BinOp(left, ast.Add(), right) if ast.dump(left) == ast.dump(first):
            added = constant(right)
            return added if isinstance(added, int) else None
        case _:
            return None


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


def written(text: str, like: ast.AST, **parts: ast.expr) -> ast.expr:
    """An expression from its text, at the place of a node; names in it stand for other nodes.

    >>> ast.unparse(written("T.ramp(a, 1, 4)", ast.Pass(), a=ast.Name("i")))
    'T.ramp(i, 1, 4)'
    """
    return _filled(ast.parse(text, mode="eval").body, like, parts)


def statements(text: str, like: ast.AST, **parts: ast.expr) -> list[ast.stmt]:
    """Statements from their text, as `written`."""
    return [_filled(node, like, parts) for node in ast.parse(text).body]


def _filled(node: N, like: ast.AST, parts: Mapping[str, ast.expr]) -> N:
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt | ast.keyword):
            ast.copy_location(part, like)
    filled: N = _Filling(parts).visit(node)
    return filled


class _Filling(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.parts:
            return node
        return copy.deepcopy(self.parts[node.id])
