"""Names in syntax: which a piece binds, which it reads, and others put in their place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping

from ..parser.source import Source


def params_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.arg]:
    """All parameters of a definition."""
    given = node.args
    rest = [a for a in (given.vararg, given.kwarg) if a is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    r"""The names that some syntax binds, in whatever suite or inner function.

    >>> sorted(bound_names(ast.parse("for i in r:\n  x = i\ndef f(y): pass").body))
    ['f', 'i', 'x', 'y']
    """
    found: set[str] = set()
    for node in nodes:
        for part in ast.walk(node):
            match part:
                case ast.Name(name, ctx=ast.Store()):
                    found.add(name)
                case ast.FunctionDef():
                    found |= {part.name, *(a.arg for a in params_of(part))}
                case ast.Lambda():
                    found |= {a.arg for a in params_of(part)}
                case _:
                    pass
    return found


def directly_bound(nodes: Iterable[ast.stmt]) -> set[str]:
    """The names that the statements of a suite bind for those of the same suite."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=targets):
                found |= bound_names(targets)
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                found |= bound_names([target])
            case ast.FunctionDef():
                found.add(node.name)
            case _:
                pass
    return found


def read_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that some syntax reads."""
    return {
        part.id
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }


def free_names(node: ast.FunctionDef) -> list[str]:
    """The names that a definition reads and does not bind, those of its defaults among them."""
    defaults = [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
    own = bound_names(node.body) | {a.arg for a in params_of(node)}
    return sorted((read_names(node.body) - own) | read_names(defaults))


class Replacing(ast.NodeTransformer):
    """Puts expressions where parameters stand, and other names where names do; in place.

    Args:
        source: For errors.
        given: What stands for each parameter.
        renamed: The new names of others.
    """

    def __init__(
        self, source: Source, given: Mapping[str, ast.expr], renamed: Mapping[str, str]
    ) -> None:
        self.source = source
        self.given = given
        self.renamed = renamed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A parameter, or a name with another in its place."""
        if node.id in self.given:
            if not isinstance(node.ctx, ast.Load):
                raise self.source.error(
                    node,
                    f"{node.id!r} is a parameter of the macro, which stands for what is given",
                    "give the new value another name",
                )
            return copy.deepcopy(self.given[node.id])
        node.id = self.renamed.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """A parameter of an inner function."""
        self.generic_visit(node)
        node.arg = self.renamed.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """An inner function."""
        node.name = self.renamed.get(node.name, node.name)
        self._inner(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        """An inner function without a name."""
        self._inner(node)
        return node

    def _inner(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """A function's own parameters hide those of the macro."""
        own = {a.arg for a in params_of(node)}
        inner = Replacing(
            self.source, {k: v for k, v in self.given.items() if k not in own}, self.renamed
        )
        inner.generic_visit(node)
