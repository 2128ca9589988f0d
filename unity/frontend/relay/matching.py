"""Matches: which clause takes a value, found while translating, or by branches on its tags."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

import numpy as np

from unity.errors import UnityError
from unity.ir import graph

from . import syntax
from .branches import Apart, Branch, joined
from .values import Data, Failure, Fields, Lacking, Scope, Value, is_real

if TYPE_CHECKING:
    from .translator import Steps, Translator


@dataclass(slots=True, eq=False)
class _Fit:
    """How a pattern fits a value.

    Attributes:
        tests: Tags, each with what it must be, that are known when the program runs.
        bound: What the pattern's variables stand for.
        never: Whether it surely does not fit.
    """

    tests: list[tuple[graph.Expr, int]] = field(default_factory=list[tuple["graph.Expr", int]])
    bound: list[tuple[syntax.Var, Value]] = field(default_factory=list[tuple[syntax.Var, "Value"]])
    never: bool = False


def constructed(
    translator: Translator, expr: syntax.Constructor, values: list[Value], call: syntax.Expr
) -> Value:
    """What a constructor makes."""
    declaration, constructor, tag = translator.constructor(expr)
    if len(values) != len(constructor.fields):
        raise UnityError(
            f"{expr.name} takes {len(constructor.fields)} fields, got {len(values)}", call.span
        )
    for value in values:
        if isinstance(value, Lacking | Failure):
            return value
    return Data(declaration, tag, {tag: tuple(values)})


def match(translator: Translator, expr: syntax.Match, scope: Scope) -> Steps:
    """The value of a match."""
    value = yield expr.value, scope
    if isinstance(value, Lacking | Failure):
        return value
    return (yield from _clauses(translator, expr, value, expr.clauses, scope))


def _clauses(
    translator: Translator,
    expr: syntax.Match,
    value: Value,
    clauses: tuple[syntax.Clause, ...],
    scope: Scope,
) -> Steps:
    for place, clause in enumerate(clauses):
        fit = _Fit()
        _fits(translator, clause.pattern, value, scope, fit)
        if fit.never:
            continue
        if not fit.tests:
            scope.vars.update(fit.bound)
            return (yield clause.body, scope)
        condition = _condition(fit, scope)
        then, otherwise = scope.body(), scope.body()
        then.vars.update(fit.bound)
        left = yield clause.body, then
        rest = _without(value, clause.pattern, fit)
        right = yield from _clauses(translator, expr, rest, clauses[place + 1 :], otherwise)
        try:
            return joined(condition, Branch(then, left), Branch(otherwise, right), scope, expr.span)
        except Apart as apart:
            return translator.lacking(f"{apart} chosen when the program runs", expr)
    return Failure(f"no clause of the match takes {_shown(value)}", expr.span)


def _fits(
    translator: Translator, pattern: syntax.Pattern, value: Value, scope: Scope, fit: _Fit
) -> None:
    match pattern:
        case syntax.WildcardPattern():
            pass
        case syntax.VarPattern(var):
            fit.bound.append((var, value))
        case syntax.TuplePattern(inner):
            fields = _tuple_fields(value, len(inner), pattern, scope)
            for p, v in zip(inner, fields, strict=True):
                _fits(translator, p, v, scope, fit)
        case syntax.ConstructorPattern(name, inner):
            wanted = syntax.Constructor(name, pattern.span)
            declaration, constructor, tag = translator.constructor(wanted)
            if not isinstance(value, Data) or value.declaration.name != declaration.name:
                raise UnityError(
                    f"{name} makes a {declaration.name}, and the match is on {_shown(value)}",
                    pattern.span,
                )
            if len(inner) != len(constructor.fields):
                raise UnityError(
                    f"{name} has {len(constructor.fields)} fields, got {len(inner)}", pattern.span
                )
            if tag not in value.fields:
                fit.never = True
                return
            if not isinstance(value.tag, int):
                fit.tests.append((value.tag, tag))
            for p, v in zip(inner, value.fields[tag], strict=True):
                _fits(translator, p, v, scope, fit)
        case _:
            assert_never(pattern)


def _tuple_fields(
    value: Value, count: int, pattern: syntax.TuplePattern, scope: Scope
) -> tuple[Value, ...]:
    if isinstance(value, graph.Tuple | Fields):
        if len(value.fields) != count:
            raise UnityError(
                f"a pattern of {count} for a tuple of {len(value.fields)}", pattern.span
            )
        return value.fields
    if not is_real(value):
        raise UnityError(f"a tuple's pattern for {_shown(value)}", pattern.span)
    emit = scope.builder.emit
    return tuple(emit(graph.TupleGet(value, i, pattern.span)) for i in range(count))


def _condition(fit: _Fit, scope: Scope) -> graph.Expr:
    op = scope.builder.op
    tests = [op("equal", tag, graph.Constant(np.array(t, np.int32))) for tag, t in fit.tests]
    found = tests[0]
    for test in tests[1:]:
        found = op("logical_and", found, test)
    return found


def _without(value: Value, pattern: syntax.Pattern, fit: _Fit) -> Value:
    """What is left of a value once a pattern did not take it."""
    if not isinstance(value, Data) or not isinstance(pattern, syntax.ConstructorPattern):
        return value
    if len(fit.tests) != 1 or fit.tests[0][0] is not value.tag:
        return value
    fields = {k: held for k, held in value.fields.items() if k != fit.tests[0][1]}
    tag = next(iter(fields)) if len(fields) == 1 else value.tag
    return Data(value.declaration, tag, fields)


def _shown(value: Value) -> str:
    if isinstance(value, Data):
        names = [value.declaration.constructors[k].name for k in value.fields]
        return " or ".join(names)
    return "a value of no declared type"
