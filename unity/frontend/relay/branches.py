"""What two branches give, as one value: `joined`.

Values of declared types and tuples of them are joined part by part: what is an expression in both
branches is a field of one `If`, and so are the tags where constructors differ. What the other
branch has nothing for is filled with zeros, which nobody reads. What references hold after
either branch is joined in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from unity.errors import Span, UnityError
from unity.ir import graph
from unity.ir.dtype import INT64, DType
from unity.ir.types import TensorType, TupleType, Type
from unity.op.builder import GraphBuilder
from unity.op.infer import infer_type

from . import syntax
from .values import (
    Cell,
    Closure,
    Data,
    Failure,
    Fields,
    Lacking,
    Scope,
    Value,
    described,
    is_real,
    tupled,
)

if TYPE_CHECKING:
    from .translator import Steps, Translator

_DEEPEST = 200
Rebuilt: TypeAlias = "Callable[[list[graph.Expr]], Value]"
"""A joined value, of the results of the `If`."""


class Apart(Exception):  # noqa: N818  (it becomes a gap)
    """Two values that no single one can stand for."""


@dataclass(slots=True, eq=False)
class Branch:
    """A branch that was translated: where, and its value."""

    scope: Scope
    value: Value


@dataclass(slots=True, eq=False)
class _Join:
    """The leaves of two values, in pairs; None where one has nothing."""

    pairs: list[tuple[graph.Expr | None, graph.Expr | None]] = field(
        default_factory=list[tuple["graph.Expr | None", "graph.Expr | None"]]
    )

    def leaf(self, left: graph.Expr | None, right: graph.Expr | None) -> Rebuilt:
        place = len(self.pairs)
        self.pairs.append((left, right))
        return lambda results: results[place]

    def of(self, left: Value | None, right: Value | None, depth: int = 0) -> Rebuilt:
        if depth > _DEEPEST:
            raise Apart(f"a value that is {_DEEPEST} constructors deep")
        if left is right and left is not None:
            return lambda results: left
        if isinstance(left, Data | None) and isinstance(right, Data | None):
            return self._data(left, right, depth + 1)
        parts = _fields(left), _fields(right)
        if parts[0] is not None or parts[1] is not None:
            return self._tuple(left, right, parts, depth + 1)
        for value in (left, right):
            if isinstance(value, Closure):
                return self._function(left, right)
            if isinstance(value, Cell):
                raise Apart("a reference")
        assert left is None or is_real(left)
        assert right is None or is_real(right)
        return self.leaf(left, right)

    def _function(self, left: Value | None, right: Value | None) -> Rebuilt:
        match left, right:
            case Closure(), Closure() if left.function is not right.function:
                raise Apart("a function")
            case Closure(), Closure() if left.scope is not right.scope:
                raise Apart("a function")
            case Closure() as one, _:
                return lambda results: one
            case _, Closure() as one:
                return lambda results: one
            case _:
                raise Apart("a function")

    def _tuple(
        self,
        left: Value | None,
        right: Value | None,
        parts: tuple[tuple[Value, ...] | None, tuple[Value, ...] | None],
        depth: int,
    ) -> Rebuilt:
        first, second = parts
        if first is None or second is None:
            if left is not None and right is not None:  # a tuple that a call gave
                return self.leaf(_whole(left), _whole(right))
            present = first or second or ()
            made = [
                self.of(None if first is None else v, None if second is None else v, depth)
                for v in present
            ]
            return lambda results: tupled([m(results) for m in made])
        if len(first) != len(second):
            raise Apart("a tuple of some length")
        both = [self.of(a, b, depth) for a, b in zip(first, second, strict=True)]
        return lambda results: tupled([m(results) for m in both])

    def _data(self, left: Data | None, right: Data | None, depth: int) -> Rebuilt:
        one = left or right
        assert one is not None
        if left is not None and right is not None and left.declaration != right.declaration:
            raise Apart(f"a {left.declaration.name} or a {right.declaration.name}")
        chosen = self._tag(None if left is None else left.tag, None if right is None else right.tag)
        fields: dict[int, list[Rebuilt]] = {}
        for tag in sorted({*(left.fields if left else ()), *(right.fields if right else ())}):
            a = None if left is None else left.fields.get(tag)
            b = None if right is None else right.fields.get(tag)
            count = len(a if a is not None else b or ())
            pairs = zip(a or (None,) * count, b or (None,) * count, strict=True)
            fields[tag] = [self.of(x, y, depth) for x, y in pairs]

        def rebuilt(results: list[graph.Expr]) -> Value:
            tag = chosen(results)
            held = {k: tuple(m(results) for m in made) for k, made in fields.items()}
            return Data(one.declaration, tag, held)

        return rebuilt

    def _tag(
        self, left: int | graph.Expr | None, right: int | graph.Expr | None
    ) -> Callable[[list[graph.Expr]], int | graph.Expr]:
        if left is right or right is None:
            if isinstance(left, int) or left is right:
                assert left is not None
                return lambda results: left
        elif isinstance(right, int) and (left is None or left == right):
            return lambda results: right
        place = len(self.pairs)
        self.pairs.append((_tag(left), _tag(right)))
        return lambda results: results[place]


def _fields(value: Value | None) -> tuple[Value, ...] | None:
    return value.fields if isinstance(value, graph.Tuple | Fields) else None


def _whole(value: Value) -> graph.Expr:
    if not is_real(value):
        raise Apart("a tuple that holds functions or values of declared types")
    return value


def _tag(tag: int | graph.Expr | None) -> graph.Expr | None:
    return graph.Constant(np.array(tag, np.int32)) if isinstance(tag, int) else tag


def branch(translator: Translator, expr: syntax.If, scope: Scope) -> Steps:
    """The value of an ``if``."""
    condition = yield expr.condition, scope
    if isinstance(condition, Lacking | Failure):
        return condition
    if not is_real(condition):
        raise UnityError(f"a condition is {described(condition)}", expr.span)
    if isinstance(condition, graph.Constant):
        holds = bool(np.asarray(condition.data).reshape(-1)[0])
        return (yield expr.then if holds else expr.otherwise, scope)
    then, otherwise = scope.body(), scope.body()
    left = yield expr.then, then
    right = yield expr.otherwise, otherwise
    try:
        return joined(condition, Branch(then, left), Branch(otherwise, right), scope, expr.span)
    except Apart as apart:
        return translator.lacking(f"{apart} chosen when the program runs", expr)


def joined(
    condition: graph.Expr, then: Branch, otherwise: Branch, scope: Scope, span: Span | None
) -> Value:
    """The value of a branch taken when the program runs; references hold what they hold after it.

    Raises:
        Apart: No value can stand for both.
    """
    for branch, other in ((then, otherwise), (otherwise, then)):
        if isinstance(branch.value, Lacking):
            return branch.value
        if isinstance(branch.value, Failure):
            if isinstance(other.value, Failure):
                return other.value
            _require(condition, branch is otherwise, scope)
    join = _Join()
    stores = then.scope.store, otherwise.scope.store
    written = {**stores[0].held, **stores[1].held}
    cells = [c for c in written if scope.store.read(c) is not None]
    left, right = (None if isinstance(b.value, Failure) else b.value for b in (then, otherwise))
    made = join.of(left, right)
    after = [join.of(stores[0].read(c), stores[1].read(c)) for c in cells]
    results = _chosen(condition, (then.scope, otherwise.scope), join, scope, span)
    for cell, value in zip(cells, after, strict=True):
        scope.store.held[cell] = value(results)
    return made(results)


def _chosen(
    condition: graph.Expr, sides: tuple[Scope, Scope], join: _Join, scope: Scope, span: Span | None
) -> list[graph.Expr]:
    """The `If` that gives the leaves, one by one."""
    if not join.pairs:
        return []
    bodies: list[graph.Body] = []
    for side, branch in enumerate(sides):
        exprs: list[graph.Expr] = []
        for pair in join.pairs:
            own, other = pair[side], pair[1 - side]
            if own is None:
                assert other is not None
                own = _zeros(infer_type(other, scope.builder.signatures), branch.builder)
            exprs.append(own)
        result = exprs[0] if len(exprs) == 1 else graph.Tuple(tuple(exprs))
        bodies.append(branch.builder.body(result))
    found = scope.builder.emit(graph.If(condition, bodies[0], bodies[1], span), "chosen", span)
    if len(join.pairs) == 1:
        return [found]
    emit = scope.builder.emit
    return [emit(graph.TupleGet(found, i, span)) for i in range(len(join.pairs))]


def _zeros(kind: Type, builder: GraphBuilder) -> graph.Expr:
    """What stands in a branch for a value that only the other one has."""
    match kind:
        case TupleType(fields):
            return graph.Tuple(tuple(_zeros(f, builder) for f in fields))
        case TensorType(tuple() as shape, DType() as element):
            if any(not isinstance(d, int) for d in shape):
                raise Apart("a tensor of unknown sizes that one branch alone has")
            return builder.op("zeros", shape, dtype=element)
        case _:
            raise Apart("a value of an unknown type that one branch alone has")


def _require(condition: graph.Expr, wanted: bool, scope: Scope) -> None:
    """Let the program fail, before it branches, unless a condition is as it must be."""
    emit = scope.builder.op
    flags = emit("reshape", condition if wanted else emit("logical_not", condition), (1,))
    places = emit("nonzero", flags)
    kind = TensorType((1, 1), INT64)
    scope.builder.match_cast(places, kind, "no_clause_fits_otherwise")
