"""Tuples in a graph function as Python's: taken apart, put together, counted through.

A tuple is a value of the program (what ``R.split`` gives) or one of the parser's own; its length
is known while parsing, so that a loop over it is written out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from unity.ir.graph import Tuple, TupleGet
from unity.ir.types import TupleType
from unity.op.call import is_expr

from .graph_expr import Cast
from .graph_operators import GraphOperators


class GraphSequences(GraphOperators):
    """Evaluates what a program does with tuples and lists."""

    def parts(self, node: ast.expr, value: object) -> object:
        """What ``*value`` puts in a call or a tuple: the fields of a tuple, too."""
        if not is_expr(value):
            return value
        kind = self.type_of(value)
        if not isinstance(kind, TupleType):
            return value
        whole, span = self.builder.atom(value), self.source.span(node)
        if isinstance(whole, Tuple):
            return whole.fields
        return tuple(TupleGet(whole, k, span) for k in range(len(kind.fields)))

    def combine(self, node: ast.BinOp, left: object, right: object) -> object:
        """Two sequences side by side; else arithmetic."""
        if isinstance(node.op, ast.Add):
            sides = (self._sequence(node.left, left), self._sequence(node.right, right))
            if sides[0] is not None and sides[1] is not None:
                return (*sides[0], *sides[1])
        return super().combine(node, left, right)

    def subscript(self, node: ast.Subscript) -> object:
        """A part of a tuple; else a field, a part of a tensor, or a type."""
        if isinstance(node.slice, ast.Slice):
            found = self._sequence(node.value, self.value(node.value))
            if found is not None:
                return tuple(found[k] for k in self._chosen_fields(node.slice, len(found)))
        return super().subscript(node)

    def _chosen_fields(self, node: ast.Slice, count: int) -> range:
        """Which items a slice takes."""
        ends: list[int | None] = []
        for end in (node.lower, node.upper, node.step):
            value = None if end is None else self.constant(end)
            if (value is not None and not isinstance(value, int)) or (value == 0 and len(ends) > 1):
                raise self.source.error(
                    end or node, "ends of a part of a tuple are integers that are known"
                )
            ends.append(value)
        return range(count)[slice(*ends)]

    def python_call(self, node: ast.Call, function: object) -> object:
        """A function of Python on what the program computes; None if it is called on nothing."""
        rule = _RULES.get(function) if callable(function) else None
        if rule is not None and not node.keywords:
            given = [self._sequence(a, self.value(a)) for a in node.args]
            known = [g for g in given if g is not None]
            if known and len(known) == len(given):
                return self.run(node, rule, *known)
        return self.number_call(node, function)

    def _sequence(self, node: ast.expr, value: object) -> Sequence[object] | None:
        """The items of a tuple, a list or a range; None if it is none of them."""
        found = None if isinstance(value, Cast) else self.parts(node, value)
        return found if isinstance(found, tuple | list | range) else None


_RULES: dict[object, Callable[..., object]] = {
    enumerate: lambda items: list(enumerate(items)),
    zip: lambda *rows: list(zip(*rows, strict=False)),
    reversed: lambda items: list(items)[::-1],
}
"""What is written out of sequences that are known while parsing."""
