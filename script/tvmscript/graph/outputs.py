"""``R.output``: of what a dataflow block binds, only that is seen behind it; nothing without it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ...parser.source import Source
from ..syntax import path_of


def check_seen(source: Source, block: ast.With, later: Sequence[ast.stmt]) -> None:
    """Refuse what uses a name behind its dataflow block that ``R.output`` does not tell.

    Args:
        source: For errors.
        block: The block, in TVM's spelling.
        later: The statements behind it.

    Raises:
        UnityError: There is such a use.
    """
    told = [
        s.value.args
        for s in block.body
        if isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and path_of(s.value.func) == "R.output"
    ]
    outputs = {path_of(a) for args in told for a in args}
    _check(source, later, _bound(block.body) - outputs)


def _check(source: Source, nodes: Sequence[ast.stmt], hidden: set[str]) -> set[str]:
    """Check statements in order; what is hidden behind them."""
    for node in nodes:
        if not hidden:
            break
        suites = [body for body in _suites(node) if body]
        inner = {id(n) for body in suites for s in body for n in ast.walk(s)}
        for part in ast.walk(node):
            if (
                isinstance(part, ast.Name)
                and isinstance(part.ctx, ast.Load)
                and part.id in hidden
                and id(part) not in inner
                and not isinstance(node, ast.FunctionDef)
            ):
                raise source.error(
                    part,
                    f"{part.id!r} is bound in a dataflow block whose outputs it is none of",
                    f"R.output({part.id}) in the block lets it be seen behind it",
                )
        for body in suites:
            within = hidden - _arguments(node)
            _check(source, body, set(within))
        hidden -= _bound([node])
    return hidden


def _suites(node: ast.stmt) -> list[list[ast.stmt]]:
    match node:
        case ast.If() | ast.For() | ast.While():
            return [node.body, node.orelse]
        case ast.With() | ast.FunctionDef():
            return [node.body]
        case _:
            return []


def _arguments(node: ast.stmt) -> set[str]:
    return {a.arg for a in node.args.args} if isinstance(node, ast.FunctionDef) else set()


def _bound(nodes: Sequence[ast.stmt]) -> set[str]:
    """Names bound to values; symbols, ``n = T.int64()``, are seen everywhere."""
    found: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Assign) and not _is_symbol(part.value):
                found |= {
                    n.id for t in part.targets for n in ast.walk(t) if isinstance(n, ast.Name)
                }
            elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                found.add(part.target.id)
    return found


def _is_symbol(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and path_of(value.func).startswith("T.")
