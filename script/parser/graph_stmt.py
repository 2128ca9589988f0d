"""Statements of graph functions from syntax: bindings, dataflow blocks, if, while, closures."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unity.ir.graph import (
    Body,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Literal,
    Op,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
)
from unity.ir.lattice import is_subtype, may_equal
from unity.ir.types import TensorType, Type
from unity.ir.visit import type_symbols
from unity.op.builder import GraphBuilder
from unity.op.effects import ASSERT

from ..marker import Marker
from .evaluate import ONE_TARGET
from .graph_closures import GraphClosures, closures_of
from .graph_expr import Surroundings
from .graph_loops import NOTHING_LIVE, Follow, LocalBody
from .graph_numbers import joined
from .leaving.exits import assigned, needs_rest, read
from .prim_func import attrs_of
from .scope import MISSING, Scope, Undefined
from .source import Source


@dataclass(frozen=True, slots=True)
class _Branch:
    builder: GraphBuilder
    names: dict[str, object]
    declared: dict[str, Type]
    result: Expr | None


class GraphStatements(GraphClosures):
    """Parses suites; names are rebound as Python does, each value to a variable of its own."""

    def __init__(self, source: Source, scope: Scope, around: Surroundings) -> None:
        super().__init__(source, scope, around)
        self._declared: dict[str, Type] = {}  # of what the branch being parsed gives

    def suite(
        self,
        nodes: Sequence[ast.stmt],
        live: frozenset[str],
        in_branch: bool = False,
        follow: Follow | None = None,
    ) -> Expr | None:
        """Parse a suite; gives what it returns, if it does.

        Args:
            nodes: Its statements.
            live: The names that are read after it.
            in_branch: Whether it is a branch of an if: what its last statement assigns is left
                unbound if it is an atom, since it is the branch's result.
            follow: Parses what runs behind it, if that is a part of this way.
        """
        for k, node in enumerate(nodes):
            rest = nodes[k + 1 :]
            if needs_rest(node):
                return self._parted(node, rest, live, follow)
            if in_branch and not rest and self._yield(node):
                return None
            nested = isinstance(node, ast.If | ast.With | ast.For)  # else nobody asks
            result = self._statement(node, live | read(rest) if nested else live)
            if result is not None:
                if rest:
                    last = type(node).__name__.lower()
                    raise self.source.error(rest[0], f"nothing runs after a {last}")
                return result
        return None if follow is None else follow()

    def _parted(
        self, node: ast.stmt, rest: Sequence[ast.stmt], live: frozenset[str], follow: Follow | None
    ) -> Expr | None:
        """A statement whose ways part: what stands behind it is a part of each that comes there."""
        read_later = live | read(rest)

        def behind() -> Expr | None:
            return self.suite(rest, live, follow=follow)

        match node:
            case ast.If():
                return self.leaving_if(node, read_later, behind)
            case ast.For():
                return self.for_loop(node, read_later, behind)
            case ast.While():
                return self.while_statement(node, behind)
            case _:
                raise AssertionError(node)

    def _statement(self, node: ast.stmt, live: frozenset[str]) -> Expr | None:
        match node:
            case ast.Assign():
                if len(node.targets) != 1:
                    raise self.source.error(node, "assign to one target at a time", ONE_TARGET)
                self._assign(node.targets[0], self.value(node.value), node.value, None)
            case ast.AnnAssign():
                if node.value is None:
                    raise self.source.error(node, "a declaration needs a value")
                kind = self.annotation(node.annotation)
                self._assign(node.target, self.value(node.value), node.value, kind)
            case ast.AugAssign():
                if not isinstance(node.target, ast.Name):
                    raise self.source.error(
                        node.target,
                        f"can't assign to {ast.unparse(node.target)!r}",
                        "values of a graph function don't change; make a new one",
                    )
                binary = ast.BinOp(node.target, node.op, node.value)
                ast.copy_location(binary, node)
                self._assign(node.target, self.value(binary), binary, None)
            case ast.With():
                return self._with(node, live)
            case ast.If():
                return self._if(node, live)
            case ast.While():
                return self.while_statement(node, None)
            case ast.For():
                return self.for_loop(node, live, None)
            case ast.FunctionDef():
                self.nested_function(node)
            case ast.Assert():
                self._assert(node)
            case ast.Return() | ast.Break() | ast.Continue():
                return self.leave(node)
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value):
                found = self.graph(value, self.value(value))
                self.builder.emit(found, None, self.source.span(node))
            case _:
                raise self.unsupported(node)
        return None

    def _assert(self, node: ast.Assert) -> None:
        """``assert condition, "text"``: what is known now needs no check when it runs.

        What never holds is refused, but in a branch or a loop, which may not be run.
        """
        test = self.value(node.test)
        text, values = self.message([] if node.msg is None else [node.msg])
        if node.msg is None:
            text = f"{ast.unparse(node.test)}".replace("{", "{{").replace("}", "}}")
        if isinstance(test, bool):
            if test:
                return
            if self.builder is self._outermost:
                raise self.source.error(node.test, f"the assertion {text!r} never holds")
        whole = Constant(np.asarray(test)) if isinstance(test, bool) else test
        condition = self.builder.atom(self.graph(node.test, whole))
        made = self.effect(node, ASSERT, (condition, values), text)
        self.builder.emit(made, None, self.source.span(node))

    def _yield(self, node: ast.stmt) -> bool:
        """Take the last statement of a branch as its result, if it gives an atom a name."""
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value):
                self._declared[name] = self.annotation(node.annotation)
            case _:
                return False
        found = self.value(value)
        if isinstance(found, Var | Constant | ShapeValue | PrimValue | Literal | FunctionRef | Op):
            self.scope.bind(name, found)
            return True
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        self._assign(target, found, value, None)
        return True

    def _with(self, node: ast.With, live: frozenset[str]) -> Expr | None:
        call = node.items[0].context_expr
        function = self.value(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(function, Marker) or function.path != "R.dataflow":
            raise self.source.error(call, "with takes R.dataflow() in a function")
        assert isinstance(call, ast.Call)
        self.arguments(call)  # it takes none
        with self.builder.dataflow_block():
            result = self.suite(node.body, live)
        if result is not None:
            raise self.source.error(node.body[-1], "return after the dataflow block")
        return None

    def _if(self, node: ast.If, live: frozenset[str]) -> Expr | None:
        test = self.value(node.test)
        if isinstance(test, bool):
            return self.suite(node.body if test else node.orelse, live)
        condition = self.builder.atom(self.graph(node.test, test))
        then = self._branch(node.body, live)
        orelse = self._branch(node.orelse, live)
        names = self._joined(then, orelse, live)
        whole = [(n, self._joined_kind(then, orelse, n, node)) for n in names]
        bodies = (self._branch_body(then, whole, node), self._branch_body(orelse, whole, node))
        if len(names) == 1:
            (name,) = names
            value = self._emit_if(node, condition, bodies, name, then.declared.get(name))
            self.scope.bind(name, value)
            return None
        values = self._emit_if(node, condition, bodies, "_".join(names) or "_", None)
        self._bind_fields(names, values, node)
        return None

    def _emit_if(
        self,
        node: ast.If,
        condition: Expr,
        bodies: tuple[Body, Body],
        name: str,
        kind: Type | None,
    ) -> Var:
        where = self.source.span(node.test)
        made = self.checked(node.test, lambda: If(condition, bodies[0], bodies[1], where))
        return self.builder.emit(made, name, self.source.span(node), kind)

    def _bind_fields(self, names: Sequence[str], whole: Var, node: ast.stmt) -> None:
        for i, name in enumerate(names):
            get = TupleGet(whole, i, self.source.span(node))
            self.scope.bind(name, self.builder.emit(get, name))

    def _branch(self, nodes: Sequence[ast.stmt], live: frozenset[str]) -> _Branch:
        outer, declared = self._inside(self._child()), self._declared
        self._declared = {}
        self.scope.push()
        result = self.suite(nodes, live, in_branch=True)
        branch = _Branch(self._inside(outer), self.scope.pop(), self._declared, result)
        self._declared = declared
        return branch

    def _joined(self, then: _Branch, orelse: _Branch, live: frozenset[str]) -> list[str]:
        """The names that both ways give a value; those that are read later, if any is."""
        candidates: list[str] = []
        for name in [*then.names, *(n for n in orelse.names if n not in then.names)]:
            before = self.scope.local(name)
            values = (then.names.get(name, before), orelse.names.get(name, before))
            if any(v is MISSING or isinstance(v, Undefined | LocalBody) for v in values):
                self.scope.bind(name, Undefined())
            else:
                candidates.append(name)
        return [n for n in candidates if n in live] or candidates

    def _joined_kind(self, a: _Branch, b: _Branch, name: str, node: ast.If) -> Type | None:
        return joined(*(self.type_of(self._given(branch, name, node)) for branch in (a, b)))

    def _given(self, branch: _Branch, name: str, node: ast.If) -> Expr:
        """What a branch gives a name."""
        return self.scalar_or_graph(node.test, branch.names.get(name, self.scope.local(name)))

    def _branch_body(
        self, branch: _Branch, names: Sequence[tuple[str, Type | None]], node: ast.If
    ) -> Body:
        outer = self._inside(branch.builder)
        values = [self.number_as(node.test, self._given(branch, n, node), t) for n, t in names]
        body = branch.builder.body(values[0] if len(values) == 1 else Tuple(tuple(values)))
        self._inside(outer)
        return body

    def finish(
        self, node: ast.FunctionDef, pure: bool | None, attrs: dict[str, object]
    ) -> Function:
        """Parse the body of a function whose parameters are in scope."""
        declared = None if node.returns is None else self.annotation(node.returns)
        around, self.leaving, outer = self.leaving, None, self.symbols
        wanted, self.wanted = self.wanted, declared
        names, self.names = self.names, self.names.union(assigned(node.body), _defined(node))
        defs, self.defs = self.defs, closures_of(node)
        whole, self._outermost = self._outermost, self.builder
        self.symbols = outer.union(*(type_symbols(p.type) for p in self.builder.params))
        result = self.suite(node.body, NOTHING_LIVE)
        self.leaving, self.symbols, self._outermost, self.wanted = around, outer, whole, wanted
        self.names, self.defs = names, defs
        if result is None:
            raise self.source.error(
                node.body[-1], f"{node.name!r} returns nothing", "end it with return y"
            )
        if declared is not None and self.around.tvmscript:
            found = self.type_of(result)
            if not is_subtype(found, declared) and is_subtype(declared, found):
                result = self.builder.match_cast(result, declared, None, None)
        if declared is not None:
            last = node.body[-1]
            shown_node = last.value if isinstance(last, ast.Return) else last
            where = shown_node if isinstance(shown_node, ast.expr) else node.returns
            assert where is not None
            self._check_returned(where, self.type_of(result), declared)
            if self.around.tvmscript and type_symbols(declared) <= outer:
                result = self._asserted(result, declared)
        return self.builder.finish(
            result,
            result_type=declared,
            pure=pure,
            attrs=attrs_of(attrs),
            span=self.source.span(node),
        )

    def _asserted(self, result: Expr, declared: Type) -> Expr:
        """A result whose sizes may be those that are declared, or not: they must be."""
        match self.type_of(result), declared:
            case TensorType(tuple(found)) as kind, TensorType(tuple(dims), dtype) if (
                len(found) == len(dims)
                and dtype in (None, kind.dtype)
                and not is_subtype(kind, declared)
                and all(may_equal(a, b) for a, b in zip(found, dims, strict=True))
            ):
                wanted = replace(declared, dtype=dtype or kind.dtype)
                return self.builder.match_cast(result, wanted, None, None)
            case _:
                return result


def _defined(node: ast.FunctionDef) -> list[str]:
    """The functions that are defined within one."""
    return [n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n is not node]
