"""Ops that only look at the same memory under another shape."""

from __future__ import annotations

from unity.ir.graph import Call, Expr, Op

VIEWS = frozenset({"reshape", "flatten", "squeeze", "expand_dims"})
"""They stay ops until memory is planned, and cost nothing then."""


def is_view(e: Expr) -> bool:
    """Whether the expression's value shares its argument's elements in the same order."""
    return isinstance(e, Call) and isinstance(e.callee, Op) and e.callee.name in VIEWS
