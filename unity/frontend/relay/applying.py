"""Calls of Relay's functions: put in place, or calls of functions of ours if they call themselves.

A function that calls itself on lists, trees or functions is put in place as well, as often as it
calls itself: how long lists are is known while translating.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unity.errors import UnityError

from . import syntax
from .lifting import call_lifted, lift
from .recursion import mentioned
from .types import is_first_order
from .values import Closure, Failure, Lacking, Scope, Value

if TYPE_CHECKING:
    from .translator import Steps, Translator

DEEPEST = 2000
"""How often a function may be put in place within itself."""
_BRANCHES = 64
"""In how many branches, one in another, a function may be put in place within itself."""
_MOST = 20_000
"""How often functions may be put in place within themselves, all together."""


@dataclass(slots=True, eq=False)
class Applied:
    """What is known of the functions that are called.

    Attributes:
        mentioned: The variables that a function names.
        active: How often a function is being put in place at this moment.
        within: How often functions were put in place within themselves.
        unlifted: Why functions that call themselves are put in place.
        endless: Functions that call themselves without an end that is known.
    """

    mentioned: dict[syntax.Function, list[syntax.Var]] = field(
        default_factory=dict[syntax.Function, list[syntax.Var]]
    )
    active: Counter[syntax.Function] = field(default_factory=Counter[syntax.Function])
    within: int = 0
    unlifted: dict[syntax.Function, str] = field(default_factory=dict[syntax.Function, str])
    endless: set[syntax.Function] = field(default_factory=set[syntax.Function])


def apply(
    translator: Translator, callee: Closure, values: list[Value], expr: syntax.Call, scope: Scope
) -> Steps:
    """The value of a call of a function."""
    function, applied = callee.function, translator.applied
    if len(values) != len(function.params):
        raise UnityError(
            f"{callee.name} takes {len(function.params)} arguments, got {len(values)}", expr.span
        )
    for value in values:
        if isinstance(value, Lacking | Failure):
            return value
    lifted = translator.lifted.get(function)
    if lifted is None and function not in applied.unlifted and _calls_itself(translator, callee):
        found = lift(translator, callee)
        if isinstance(found, str):
            applied.unlifted[function] = found
        else:
            lifted = found
    if lifted is not None:
        return call_lifted(translator, lifted, values, expr, scope)
    if not _goes_on(applied, function, scope):
        applied.endless.add(function)
        why = applied.unlifted.get(function, "a function that calls itself by a reference")
        return translator.lacking(f"{why}, without an end that is known: {callee.name}", expr)
    inner = scope.called(callee.scope)
    for param, value in zip(function.params, values, strict=True):
        if param.type is not None and is_first_order(param.type):
            value = translator.declared(value, param.type, f"%{param.name}", scope)
        inner.vars[param] = value
    applied.active[function] += 1
    with translator.record.within(function):
        result = yield function.body, inner
    applied.active[function] -= 1
    return result


def _goes_on(applied: Applied, function: syntax.Function, scope: Scope) -> bool:
    """Whether a function may be put in place once more."""
    if not applied.active[function]:
        return True
    applied.within += 1
    few = applied.active[function] <= DEEPEST and applied.within <= _MOST
    return few and scope.depth <= _BRANCHES and function not in applied.endless


def _calls_itself(translator: Translator, callee: Closure) -> bool:
    if translator.globals.get(callee.name) is callee:
        return callee.name in translator.recursive
    known = translator.applied.mentioned
    if callee.function not in known:
        found = mentioned(callee.function)
        known[callee.function] = [v for v in found if isinstance(v, syntax.Var)]
    return any(_stands_for(v, callee) for v in known[callee.function])


def _stands_for(var: syntax.Var, callee: Closure) -> bool:
    found = callee.scope.find(var)
    return isinstance(found, Closure) and found.function is callee.function
