"""Operators of TVM's that are several of ours: what each means, in our language.

Comes in: a call of one, its arguments bound to TVM's signature. Goes out: the expression that
computes the same. What a text asks of sizes and attributes is decided while it is read.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import dataclass

from unity.arguments import Named, Signature

from ...parser.source import Source
from ..syntax import at_place
from .before import Naming


@dataclass(frozen=True, slots=True)
class Composed:
    """An operator of TVM's in terms of ours.

    Attributes:
        signature: What it takes.
        text: What it means, an expression of its parameters.
        without: What it means where an optional operand is left out, by that operand.
    """

    signature: Signature
    text: str
    without: Mapping[str, str]


def _row(signature: str, text: str, **without: str) -> Composed:
    return Composed(Signature.parse(signature), text, without)


_ROWS = (
    _row("R.builtin.stop_lift_params(x)", "x"),
    _row("R.wrap_param(data, dtype='float32')", "R.astype(data, dtype)"),
)
COMPOSED: Mapping[str, Composed] = {row.signature.name: row for row in _ROWS}


def composed(source: Source, call: ast.Call, row: Composed, named: Naming) -> ast.expr:
    """A call in terms of our operators, at its place.

    Args:
        source: For errors.
        call: The call.
        row: What it means.
        named: Gives an operand that is used several times a name before the statement.

    Raises:
        UnityError: It does not fit the signature.
    """
    keywords = [Named(k.arg, k.value, source.span(k)) for k in call.keywords]
    given = dict(row.signature.bind(call.args, keywords, source.span(call)).named)
    text = row.text
    for param in row.signature.params:
        value = given.get(param.name)
        absent = value is None or (isinstance(value, ast.Constant) and value.value is None)
        if absent and param.name in row.without:
            text = row.without[param.name]
        default = param.default
        if value is None and (default is None or isinstance(default, int | float | str)):
            given[param.name] = ast.Constant(default)
    made = ast.parse(text, mode="eval").body
    used = [n.id for n in ast.walk(made) if isinstance(n, ast.Name)]
    for name, value in given.items():
        calls = any(isinstance(part, ast.Call) for part in ast.walk(value))
        if calls and used.count(name) > 1 and not _is_literal(value):
            given[name] = named(value, name)
    filled: ast.expr = _Filled(given).visit(made)
    return at_place(filled, call)


def _is_literal(value: ast.expr) -> bool:
    """Whether it is a constant in a call, ``R.const(0)``: nothing that is computed."""
    return isinstance(value, ast.Call) and all(isinstance(a, ast.Constant) for a in value.args)


class _Filled(ast.NodeTransformer):
    """Puts arguments in place of parameters; what is made so far has no place in the text."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.given.get(node.id)
        if value is None:
            bare: ast.expr = ast.Name(node.id, ast.Load())
            return bare
        return copy.deepcopy(value)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for place in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if isinstance(node, ast.expr | ast.keyword) and hasattr(node, place):
                delattr(node, place)
        return super().generic_visit(node)
