"""Operators of TVM's that are several of ours: what each means, in our language.

Comes in: a call of one, its arguments bound to TVM's signature. Goes out: the expression that
computes the same. What a text asks of sizes and attributes is decided while it is read.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unity.arguments import Named, Signature

from ..parser.source import Source
from .syntax import at_place

_KEPT = "R.not_equal(targets, ignore_index)"
_PICKED = (
    "(R.squeeze(R.gather_elements(predictions, R.expand_dims(targets, 1), axis=1), 1)"
    " if predictions.ndim > 1 else R.take(predictions, targets, axis=0))"
)


def _likelihood(weight: str) -> str:
    """The negative log likelihood of each target that is not ignored, times its weight."""
    losses = f"R.where({_KEPT}, -{_PICKED} * {weight}, 0.0)"
    total = f"R.sum(R.where({_KEPT}, {weight}, 0.0))"
    return (
        f'{losses} if reduction == "none" else R.sum({losses}) if reduction == "sum"'
        f" else R.sum({losses}) / {total}"
    )


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
    _row("R.nn.relu6(data)", "R.clip(data, 0, 6)"),
    _row("R.ewise_fma(x1, x2, x3)", "x1 * x2 + x3"),
    _row("R.nn.batch_flatten(data)", "R.reshape(data, (data.shape[0], -1))"),
    _row("R.outer(x1, x2)", "R.expand_dims(x1, 1) * R.expand_dims(x2, 0)"),
    _row("R.size(x)", "R.prod(R.shape_to_tensor(R.shape_of(x)))"),
    _row(
        "R.std(x, axis=None, keepdims=False)",
        "R.sqrt(R.variance(x, axis=axis, keepdims=keepdims))",
    ),
    _row("R.wrap_param(data, dtype='float32')", "R.astype(data, dtype)"),
    _row(
        "R.nn.cross_entropy_with_logits(predictions, labels)",
        "-R.sum(predictions * labels) / R.dims(predictions.shape[0], dtype=predictions.dtype)"
        " if predictions.ndim > 1 else -R.sum(predictions * labels)",
    ),
    _row(
        "R.nn.nll_loss(predictions, targets, weights=None, reduction='mean', ignore_index=-100)",
        _likelihood("R.take(weights, targets, axis=0)"),
        weights=_likelihood(f"R.astype({_KEPT}, predictions.dtype)"),
    ),
)
COMPOSED: Mapping[str, Composed] = {row.signature.name: row for row in _ROWS}


def composed(source: Source, call: ast.Call, row: Composed) -> ast.expr:
    """A call in terms of our operators, at its place.

    Args:
        source: For errors.
        call: The call.
        row: What it means.

    Raises:
        UnityError: It does not fit the signature; or an operand that is used several times is
            itself a call.
    """
    named = [Named(k.arg, k.value, source.span(k)) for k in call.keywords]
    given = dict(row.signature.bind(call.args, named, source.span(call)).named)
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
    _check_uses(source, made, given)
    filled: ast.expr = _Filled(given).visit(made)
    return at_place(filled, call)


def _check_uses(source: Source, made: ast.expr, given: Mapping[str, ast.expr]) -> None:
    used: Sequence[str] = [n.id for n in ast.walk(made) if isinstance(n, ast.Name)]
    for name, value in given.items():
        calls = any(isinstance(part, ast.Call) for part in ast.walk(value))
        if calls and used.count(name) > 1 and not _is_literal(value):
            raise source.error(value, f"{name!r} is used several times", "give it a name before")


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
