"""Bindings of graph functions: names for values, tuples taken apart, declared types checked."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from unity.errors import UnityError
from unity.ir.graph import Body, Expr, If, TupleGet
from unity.ir.lattice import is_subtype
from unity.ir.types import TupleType, Type
from unity.op.builder import GraphBuilder
from unity.op.call import is_expr

from ..printer import text as printed
from .graph_calls import GraphCalls
from .graph_expr import Cast
from .graph_numbers import joined


class GraphBindings(GraphCalls):
    """Binds values to names; each value gets a variable of its own."""

    def _assign(self, target: ast.expr, value: object, node: ast.expr, kind: Type | None) -> None:
        """Bind a value to a name, or its fields to several."""
        match target:
            case ast.Name():
                self.scope.bind(target.id, self._bound(target, value, node, kind))
            case ast.Tuple() | ast.List():
                self._unpack(target, value, node)
            case _:
                raise self.source.error(
                    target,
                    f"can't assign to {ast.unparse(target)!r}",
                    "values of a graph function don't change; make a new one",
                )

    def _bound(self, target: ast.Name, value: object, node: ast.expr, kind: Type | None) -> object:
        span = self.source.span(target)
        if isinstance(value, Cast):
            return self.builder.match_cast(value.value, value.type, target.id, span)
        if not is_expr(value) and not _holds_expr(value) and kind is None:
            return value
        found = self.graph(node, value)
        if kind is not None:
            self._check_declared(node, self.type_of(found), kind)
        try:
            return self.builder.emit(found, target.id, span, kind)
        except UnityError as error:
            where = error.span or self.source.span(node)
            raise UnityError(error.message, where, error.hint) from None

    def _check_declared(self, node: ast.expr, found: Type, declared: Type) -> None:
        if self.around.text or is_subtype(found, declared):
            return
        raise self.source.error(
            node,
            f"the value has type {printed(found)}, declared is {printed(declared)}",
            "assert what is only known at run time with R.match_cast(value, type)",
        )

    def _unpack(self, target: ast.Tuple | ast.List, value: object, node: ast.expr) -> None:
        if not isinstance(value, tuple | list):
            whole = self.builder.atom(self.graph(node, value))
            kind = self.type_of(whole)
            if not isinstance(kind, TupleType):
                raise self.source.error(
                    node, f"{ast.unparse(node)!r} is no tuple, it can't be taken apart"
                )
            value = tuple(
                TupleGet(whole, i, self.source.span(node)) for i in range(len(kind.fields))
            )
        names, parts = list(target.elts), list[object](value)
        stars = [k for k, name in enumerate(names) if isinstance(name, ast.Starred)]
        many = len(parts) - len(names) + 1  # what is left for the one with a star
        if many < 0 or (not stars and many != 1):
            raise self.source.error(target, f"{len(names)} names for {len(parts)} values")
        for k in stars:
            parts[k : k + many] = [tuple(parts[k : k + many])]
        for name, part in zip(names, parts, strict=True):
            to = name.value if isinstance(name, ast.Starred) else name
            self._assign(to, part, node, None)

    def _child(self) -> GraphBuilder:
        """A builder of a nested body, over the same functions."""
        inner = self.builder.child()
        inner.signatures = self.builder.signatures
        return inner

    def value(self, node: ast.expr) -> object:
        """The meaning of an expression."""
        if isinstance(node, ast.ListComp):
            return self._listed(node, node.elt, node.generators)
        if not isinstance(node, ast.IfExp):
            return super().value(node)
        test = self.value(node.test)
        if isinstance(test, bool):
            return self.value(node.body if test else node.orelse)

        def way(chosen: ast.expr) -> Callable[[], Expr]:
            return lambda: self.scalar_or_graph(chosen, self.value(chosen))

        return self.choice(node.test, test, way(node.body), way(node.orelse))

    def _listed(
        self, node: ast.ListComp, item: ast.expr, loops: Sequence[ast.comprehension]
    ) -> list[object]:
        """A list written out: what it goes through is known while parsing."""
        if not loops:
            return [self.operand(item)]
        first, *rest = loops
        values = self.parts(first.iter, self.value(first.iter))
        if not isinstance(values, tuple | list | range) or first.ifs or first.is_async:
            raise self.source.error(
                first.iter,
                "a list is made of tuples, lists and ranges that are known, without conditions",
                "a loop over range(n) computes one value after the other",
            )
        found: list[object] = []
        self.scope.push()
        for value in values:
            self._assign(first.target, value, first.iter, None)
            found += self._listed(node, item, rest)
        self.scope.pop()
        return found

    def choice(
        self, node: ast.expr, test: object, then: Callable[[], Expr], orelse: Callable[[], Expr]
    ) -> Expr:
        """One of two expressions, parsed where only that one is computed."""
        condition = self.builder.atom(self.graph(node, test))
        ways = [self._alternative(way) for way in (then, orelse)]
        kind = joined(*(self.type_of(found) for found, _ in ways))
        a, b = (self._ended(node, found, builder, kind) for found, builder in ways)
        where = self.source.span(node)
        return self.checked(node, lambda: If(condition, a, b, where))

    def _alternative(self, way: Callable[[], Expr]) -> tuple[Expr, GraphBuilder]:
        outer = self._inside(self._child())
        found = self.builder.atom(way())
        return found, self._inside(outer)

    def _ended(self, node: ast.expr, found: Expr, builder: GraphBuilder, kind: Type | None) -> Body:
        outer = self._inside(builder)
        body = self.builder.body(self.number_as(node, found, kind))
        self._inside(outer)
        return body

    def _inside(self, builder: GraphBuilder) -> GraphBuilder:
        outer, self.builder = self.builder, builder
        return outer

    def _check_returned(self, node: ast.expr, found: Type, declared: Type) -> None:
        if self.around.text or is_subtype(found, declared):
            return
        raise self.source.error(
            node,
            f"returns {printed(found)}, declared is {printed(declared)}",
            "correct the annotation, or assert what is only known at run time with R.match_cast",
        )


def _holds_expr(value: object) -> bool:
    """Whether a Python value must be bound: it holds a graph expression (or is the empty tuple)."""
    if isinstance(value, tuple | list):
        return not value or any(is_expr(v) or _holds_expr(v) for v in value)
    return False
