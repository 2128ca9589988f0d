"""References: what each holds is known while translating; branches join what they write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unity.errors import UnityError
from unity.ir import graph

from . import syntax
from .values import Cell, Failure, Lacking, Scope, described

if TYPE_CHECKING:
    from .translator import Steps, Translator


def reference(
    translator: Translator,
    expr: syntax.RefCreate | syntax.RefRead | syntax.RefWrite,
    scope: Scope,
) -> Steps:
    """A reference that is made, the value that it holds, or ``()`` once another was written."""
    if isinstance(expr, syntax.RefCreate):
        value = yield expr.value, scope
        if isinstance(value, Lacking | Failure):
            return value
        cell = Cell()
        scope.store.held[cell] = value
        return cell
    found = yield expr.ref, scope
    if isinstance(found, Lacking | Failure):
        return found
    if not isinstance(found, Cell):
        raise UnityError(f"a reference is expected, and this is {described(found)}", expr.span)
    held = scope.store.read(found)
    if held is None:
        what = "a reference made outside of the function that calls itself and reads or writes it"
        return translator.lacking(what, expr)
    if isinstance(expr, syntax.RefRead):
        return held
    value = yield expr.value, scope
    if isinstance(value, Lacking | Failure):
        return value
    scope.store.held[found] = value
    return graph.Tuple(())
