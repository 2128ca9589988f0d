"""Results of Relax's operators that ours give in another form: tuples, one of two, the operand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ..parser.source import Source
from .syntax import at_place, constant, said

Given = Mapping[str, ast.expr]
"""Operands by TVM's names, in our spelling."""


def result_of(source: Source, path: str, call: ast.Call, given: Given) -> ast.expr:
    """What a call gives in TVM, in terms of our call.

    Args:
        source: For errors.
        path: The operator, ``R.topk``.
        call: Ours.
        given: What TVM's call says.

    Raises:
        UnityError: It gives what Unity can't.
    """
    rule = _RULES.get(path)
    return call if rule is None else rule(source, call, given)


def _batch_norm(source: Source, call: ast.Call, given: Given) -> ast.expr:
    """The normalized values and both statistics, which are the moving ones outside of training."""
    if "training" not in given:
        raise source.error(
            call,
            "R.nn.batch_norm normalizes by the batch in TVM unless training=False is said; "
            "Unity normalizes by moving_mean and moving_var",
            "say training=False",
        )
    return at_place(ast.Tuple([call, given["moving_mean"], given["moving_var"]], ast.Load()), call)


def _topk(source: Source, call: ast.Call, given: Given) -> ast.expr:
    """``ret_type`` asks for both values and indices, or for one of them."""
    kind = constant(given.get("ret_type", ast.Constant("both")))
    if kind == "both":
        return call
    if kind not in ("values", "indices"):
        message = f'R.topk: \'ret_type\' is "both", "values" or "indices", got {kind!r}'
        raise source.error(given["ret_type"], message)
    place = ast.Constant(0 if kind == "values" else 1)
    return at_place(ast.Subscript(call, place, ast.Load()), call)


def _adaptive(_source: Source, call: ast.Call, given: Given) -> ast.expr:
    """Without ``output_size`` there are as many means as values."""
    return call if said(given.get("output_size")) else given["data"]


_RULES: Mapping[str, Callable[[Source, ast.Call, Given], ast.expr]] = {
    "R.nn.batch_norm": _batch_norm,
    "R.topk": _topk,
    **{f"R.nn.adaptive_avg_pool{rank}d": _adaptive for rank in (1, 2, 3)},
}
