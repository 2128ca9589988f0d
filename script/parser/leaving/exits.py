"""Where control leaves statements other than at their end: return, break, continue, by syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence


def exits(nodes: Iterable[ast.stmt]) -> Iterator[ast.Return | ast.Break | ast.Continue]:
    r"""What leaves a suite: every return, and break and continue of a loop around it.

    >>> text = "while a:\n  if b: break\n  for i in r: continue\n  return c"
    >>> (loop,) = ast.parse(text).body
    >>> [type(e).__name__ for e in exits([loop])], [type(e).__name__ for e in exits(loop.body)]
    (['Return'], ['Break', 'Return'])
    """
    for node in nodes:
        match node:
            case ast.Return() | ast.Break() | ast.Continue():
                yield node
            case ast.While() | ast.For():
                inner = exits([*node.body, *node.orelse])
                yield from (e for e in inner if isinstance(e, ast.Return))
            case ast.If():
                yield from exits([*node.body, *node.orelse])
            case ast.With():
                yield from exits(node.body)
            case _:
                pass


def needs_rest(node: ast.stmt) -> bool:
    """Whether what stands behind a statement is reached by some of the ways through it only.

    So is what stands behind a loop that is written out and that something leaves.
    """
    match node:
        case ast.If():
            inner = [*node.body, *node.orelse]
            return any(True for _ in exits(inner)) or any(map(needs_rest, inner))
        case ast.For():
            return any(True for _ in exits(node.body)) or any(map(needs_rest, node.body))
        case ast.While():
            return any(isinstance(e, ast.Return) for e in exits(node.body))
        case _:
            return False


def read(nodes: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that some statements read."""
    return frozenset(
        part.id
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    )


def assigned(nodes: Sequence[ast.stmt]) -> list[str]:
    """The names that some statements assign, in order."""
    found: dict[str, None] = {}
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found[part.id] = None
    return list(found)
