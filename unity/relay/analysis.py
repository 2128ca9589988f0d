"""Questions about expressions: which variables they read, what they hold."""

from __future__ import annotations

from collections.abc import Callable

from unity.frontend.relay import syntax

from .expr import Expr, wrap
from .nodes import bound, free, post_order


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], object]) -> None:
    """Call a function on every expression within one, operands first, each once."""
    for node in post_order(expr.node):
        fvisit(wrap(node))


def all_vars(expr: Expr) -> list[Expr]:
    """The variables that an expression names or binds."""
    return [wrap(n) for n in post_order(expr.node) if isinstance(n, syntax.Var)]


def bound_vars(expr: Expr) -> list[Expr]:
    """The variables that an expression binds."""
    return [wrap(v) for v in bound(post_order(expr.node))]


def free_vars(expr: Expr) -> list[Expr]:
    """The variables that an expression reads and does not bind, in the order it meets them.

    >>> from unity import relay
    >>> x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    >>> [v.name_hint for v in free_vars(x + y)]
    ['x', 'y']
    """
    return [wrap(v) for v in free(expr.node)]
