"""Loops over plain nested functions: ``R.while_loop`` and ``R.scan``."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity.ir.dims import Symbol
from unity.ir.graph import Body, Expr, Scan, Var, While
from unity.ir.types import ObjectType, TensorType, TupleType, Type

from ..annotations import Tensor
from .evaluate import shown
from .graph_bind import GraphBindings

NOTHING_LIVE: frozenset[str] = frozenset()
"""No name is read after the suite."""
AS_IT_IS = ObjectType()
"""What is returned may be anything: no scalar becomes a tensor."""


Follow: TypeAlias = Callable[[], Expr | None]
"""Parses what runs when a suite has come to its end; gives what that returns."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """What leaves the loop around: each gives the result of the suite that it leaves."""

    on_break: Callable[[], Expr | None]
    on_continue: Callable[[], Expr | None]
    on_return: Callable[[ast.Return, Expr], Expr]


@dataclass(frozen=True, slots=True)
class LocalBody:
    """A plain nested function: the body of an ``R.while_loop`` or an ``R.scan``."""

    node: ast.FunctionDef


class GraphLoops(GraphBindings):
    """Evaluates the loops whose bodies are nested functions."""

    leaving: Leaving | None = None
    symbols: frozenset[Symbol] = frozenset()
    """Those of the parameters."""
    wanted: Type | None = None
    """What the function is declared to return."""

    @abstractmethod
    def suite(
        self,
        nodes: Sequence[ast.stmt],
        live: frozenset[str],
        in_branch: bool = False,
        follow: Follow | None = None,
    ) -> Expr | None:
        """Parse a suite; gives what it returns, if it does."""

    def while_loop(self, node: ast.Call) -> Expr:
        """``R.while_loop(condition, body, init)`` over plain nested functions."""
        given = self.arguments(node)
        condition, body = self._local(given["condition"]), self._local(given["body"])
        init = self._tensors(given["init"])
        states = self._loop_vars(condition, [self.type_of(e) for e in init])
        span = self.source.span(node)
        conditions = self._local_body(condition, states)
        bodies = self._local_body(body, states, TupleType(tuple(v.type for v in states)))
        return self.checked(node, lambda: While(states, init, conditions, bodies, span))

    def scan(self, node: ast.Call) -> Expr:
        """``R.scan(step, init=(...), inputs=(...))`` over a plain nested function."""
        given = self.arguments(node)
        step = self._local(given["body"])
        init = self._tensors(given["init"]) if "init" in given else ()
        inputs = self._tensors(given["inputs"]) if "inputs" in given else ()
        types = [self.type_of(e) for e in init]
        types += [_element(self.type_of(e)) for e in inputs]
        vars_ = self._loop_vars(step, types)
        body = self._local_body(step, vars_)
        count, span = len(init), self.source.span(node)
        return self.checked(
            node, lambda: Scan(vars_[:count], init, vars_[count:], inputs, body, span)
        )

    def _local(self, node: ast.expr) -> ast.FunctionDef:
        found = self.value(node)
        if not isinstance(found, LocalBody):
            raise self.source.error(
                node,
                f"expected a nested function, got {shown(found)}",
                "write it inside this function as a plain def, without a decorator",
            )
        return found.node

    def _loop_vars(self, node: ast.FunctionDef, types: Sequence[Type]) -> tuple[Var, ...]:
        args = self.source.plain_params(node, "function")
        if len(args) != len(types):
            raise self.source.error(
                node, f"{node.name!r} has {len(args)} parameters, the loop has {len(types)} values"
            )
        return tuple(
            self.builder.new_var(
                arg.arg,
                self._stated(arg.annotation) or kind,
                self.source.span(arg),
            )
            for arg, kind in zip(args, types, strict=True)
        )

    def _stated(self, annotation: ast.expr | None) -> Type | None:
        """The type that a parameter says; ``Tensor`` alone says none, it pleases type checkers."""
        if annotation is None or self.constant(annotation) is Tensor:
            return None
        return self.annotation(annotation)

    def _local_body(
        self, node: ast.FunctionDef, values: Sequence[Var], wanted: Type = AS_IT_IS
    ) -> Body:
        args = self.source.plain_params(node, "function")
        if len(args) != len(values):
            raise self.source.error(
                node, f"{node.name!r} has {len(args)} parameters, expected {len(values)}"
            )
        outer = self._inside(self._child())
        self.scope.push(function=True)
        for arg, value in zip(args, values, strict=True):
            self.scope.bind(arg.arg, value)
        around, self.leaving = self.leaving, None
        declared, self.wanted = self.wanted, wanted
        result = self.suite(node.body, NOTHING_LIVE)
        self.leaving, self.wanted = around, declared
        self.scope.pop()
        if result is None:
            raise self.source.error(node.body[-1], f"{node.name!r} returns nothing")
        body = self.builder.body(result)
        self._inside(outer)
        return body

    def _run_call(self, node: ast.Call, function: object) -> object:
        if isinstance(function, LocalBody):
            raise self.source.error(
                node.func,
                f"{function.node.name!r} is a plain nested function: it can't be called",
                "decorate it with @script.function, or run it by R.while_loop or R.scan",
            )
        return super()._run_call(node, function)

    def _language_call(self, node: ast.Call, path: str) -> object:
        if path == "R.while_loop":
            return self.while_loop(node)
        if path == "R.scan":
            return self.scan(node)
        return super()._language_call(node, path)


def _element(kind: Type) -> Type:
    """One slice of a scan's input."""
    if isinstance(kind, TensorType) and isinstance(kind.shape, tuple) and kind.shape:
        return TensorType(kind.shape[1:], kind.dtype)
    if isinstance(kind, TensorType) and kind.ndim:
        return TensorType(kind.ndim - 1, kind.dtype)
    return kind
