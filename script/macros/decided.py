"""What of a macro is decided while it is put in place: conditions on numbers and texts."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from unity.errors import UnityError

from ..parser.evaluate import Evaluator
from ..parser.scope import MISSING, Scope
from ..parser.source import Source
from .names import read_names

_KINDS = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Known:
    """The values of conditions, as far as they are known.

    Attributes:
        source: For errors.
        names: What names mean, innermost first.
        bound: Names of the program's own values, which are not known.
    """

    source: Source
    names: Sequence[Mapping[str, object]]
    bound: Collection[str]

    def condition(self, node: ast.expr) -> bool | None:
        """The value of a condition; None if it is not known here."""
        match node:
            case ast.BoolOp(op, values):
                parts = [self.condition(v) for v in values]
                ends = isinstance(op, ast.Or)
                if ends in parts:
                    return ends
                return None if None in parts else not ends
            case ast.UnaryOp(ast.Not(), operand):
                inner = self.condition(operand)
                return None if inner is None else not inner
            case _:
                pass
        scope = Scope(self.names)
        for name in read_names([node]):
            found = MISSING if name in self.bound else scope.lookup(name)
            if not isinstance(found, _KINDS):
                return None
        try:
            value = Evaluator(self.source, scope).value(node)
        except UnityError:
            return None
        return bool(value) if isinstance(value, _KINDS) else None


def decided(nodes: Sequence[ast.stmt], known: Known) -> list[ast.stmt]:
    """The statements of a macro, without branches that are known not to be taken."""
    choosing = _Choosing(known)
    return _without([choosing.visit(node) for node in nodes], known)


def _without(nodes: Sequence[ast.stmt], known: Known) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in nodes:
        chosen = known.condition(node.test) if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and chosen is not None:
            found += _without(node.body if chosen else node.orelse, known)
            continue
        if isinstance(node, ast.For | ast.While | ast.If | ast.With):
            node.body = _without(node.body, known) or [ast.copy_location(ast.Pass(), node)]
        if isinstance(node, ast.For | ast.While | ast.If):
            node.orelse = _without(node.orelse, known)
        found.append(node)
    return found


class _Choosing(ast.NodeTransformer):
    """Takes the branch of ``a if known else b`` that is known to be taken."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        chosen = self._known.condition(node.test)
        return node if chosen is None else node.body if chosen else node.orelse
