"""Loops of statements, and ways out of them: while, break, continue, return.

Control of graph functions is structured: a loop ends where its condition is false. What leaves it
before is state of the loop: whether it goes on, whether it has returned, and what. What stands
behind a break is a part of the branches that come there, so that nothing runs that Python would not
run, and each value has the type that it has on its way.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unity.ir.dims import Symbol
from unity.ir.dtype import BOOL
from unity.ir.graph import (
    Body,
    Constant,
    Expr,
    If,
    PrimValue,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.lattice import erase, is_subtype, join
from unity.ir.types import ObjectType, PrimType, ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.op.builder import GraphBuilder

from ..printer import text as printed
from .graph_counting import GraphCounting
from .graph_loops import NOTHING_LIVE, Follow, Leaving, LocalBody
from .graph_numbers import as_tensors
from .leaving.exits import assigned, exits, read
from .scope import MISSING

_MOST_WAYS = 256
_DEEPEST = 60


@dataclass(slots=True)
class _Loop:
    """A while loop while it is parsed.

    Attributes:
        node: Its syntax.
        names: The names that are its state.
        stops: Whether something leaves it, so that going on is a state.
        returns: Whether a return does, so that having returned is one, and what.
        known: The symbols that were there before it.
        types: Those of the names.
        returned: That of what is returned, as far as it is known.
        met: What was found to be returned in the round.
    """

    node: ast.While
    names: Sequence[str]
    stops: bool
    returns: bool
    known: frozenset[Symbol]
    types: list[Type]
    returned: Type | None = None
    met: list[Type] = field(default_factory=list[Type])


def _any_number(kind: Type) -> Type:
    """The type of a loop's state that begins so: a scalar may be another one in each round."""
    return PrimType(kind.dtype) if isinstance(kind, PrimType) else kind


def _wider(a: Type, b: Type) -> Type:
    """A type that holds both; a scalar is a tensor where the other one is."""
    match a, b:
        case (PrimType(one), PrimType(other)):
            return PrimType(max(one, other, key=lambda d: (d.is_float, d.bits)))
        case (PrimType(), TensorType(_, kind) as tensor) | (
            TensorType(_, kind) as tensor,
            PrimType(),
        ):
            return join(TensorType((), kind), tensor)
        case _:
            return join(a, b)


class GraphRepeats(GraphCounting):
    """Parses loops of statements and what leaves them."""

    _ways = 0
    _depth = 0
    """How many ways lie around what is parsed."""

    def leave(self, node: ast.Return | ast.Break | ast.Continue) -> Expr | None:
        """What a statement gives that leaves a suite.

        Raises:
            UnityError: There is no loop to leave, or nothing is returned.
        """
        match node:
            case ast.Return(None):
                raise self.source.error(node, "a function returns a value", "return y")
            case ast.Return(ast.expr() as value):
                found = self._result(value)
                wanted = self.wanted or as_tensors(self.type_of(found))
                found = self.number_as(value, found, wanted)
                result = self.builder.atom(
                    self.builder.emit(found) if isinstance(found, Tuple) else found
                )
                return self.returned(node, result)
            case _ if self.leaving is None:
                raise self.source.error(node, f"{ast.unparse(node)} stands in no loop")
            case ast.Break():
                return self.leaving.on_break()
            case ast.Continue():
                return self.leaving.on_continue()
            case _:
                raise AssertionError(node)

    def _result(self, node: ast.expr) -> Expr:
        """What is returned: sizes are a shape and a text itself where that is declared."""
        given = self.value(node)
        if self.wanted is None or not _is_no_tensor(self.wanted):
            return self.graph(node, given)
        return self.passed(node, given, self.wanted)

    def returned(self, node: ast.Return, result: Expr) -> Expr:
        """What a suite gives that returns: the loop around it ends first."""
        return result if self.leaving is None else self.leaving.on_return(node, result)

    def way(self, node: ast.stmt, nodes: Sequence[ast.stmt], live: frozenset[str], follow: Follow
    ) -> Body:  # fmt: skip
        """The body of a branch together with what stands behind the if, which must return."""
        self._ways += 1
        if self._ways > _MOST_WAYS:
            raise self.source.error(
                node,
                f"there are more than {_MOST_WAYS} ways to what stands behind this",
                "leave by fewer branches: assign a flag, and test it once",
            )
        if self._depth == _DEEPEST:
            raise self.source.error(
                node,
                f"more than {_DEEPEST} branches with a way out lie in each other here",
                "a loop that is written out has one for each item: give it fewer, or count by "
                "range with a size, for i in range(R.const(100))",
            )
        outer = self._inside(self._child())
        self.scope.push()
        self._depth += 1
        result = self.suite(nodes, live, follow=follow)
        self._depth -= 1
        if result is None:
            raise self.source.error(
                node,
                "a return in one branch only: the other comes to the end without one",
                "return in both branches, or behind the if; or assign the value and return it "
                "after the if",
            )
        body = self.builder.body(result)
        self.scope.pop()
        self._inside(outer)
        return body

    def leaving_if(self, node: ast.If, live: frozenset[str], follow: Follow) -> Expr | None:
        """An if that some of its ways leave: what stands behind it is a part of the others."""
        test = self.value(node.test)
        if isinstance(test, bool):
            return self.suite(node.body if test else node.orelse, live, follow=follow)
        condition = self.builder.atom(self.graph(node.test, test))
        then = self.way(node, node.body, live, follow)
        orelse = self.way(node, node.orelse, live, follow)
        return self._chosen(node, node.test, condition, then, orelse)

    def _chosen(
        self, node: ast.stmt, place: ast.expr, condition: Expr, then: Body, orelse: Body
    ) -> Expr:
        where = self.source.span(place)
        made = self.checked(place, lambda: If(condition, then, orelse, where))
        return self.builder.emit(made, "result", self.source.span(node))

    # ------------------------------------------------------------------ while

    def while_statement(self, node: ast.While, follow: Follow | None) -> Expr | None:
        """A while loop; gives what is returned from it, or behind it if a return leaves it."""
        self.source.refuse_else(node)
        names = [
            n for n in assigned(node.body) if not isinstance(self.scope.local(n), LocalBody)
            and self.scope.local(n) is not MISSING
        ]  # fmt: skip
        out = list(exits(node.body))
        returns = any(isinstance(e, ast.Return) for e in out)
        stops = returns or any(isinstance(e, ast.Break) for e in out)
        if not names and not stops:
            raise self.source.error(
                node,
                "the loop changes nothing that was there before it",
                "give the changing values names before the loop",
            )
        starts = [self.scalar_or_graph(node.test, self.scope.local(n)) for n in names]
        init = [self.builder.atom(e) for e in starts]
        types = [_any_number(self.type_of(e)) for e in init]
        loop = _Loop(node, names, stops, returns, self.known_symbols(), types)
        if returns:
            self._find_returned(loop)
        made = self._settled(loop, init)
        labels = [*names, *(["goes_on"] if stops else []), *(["returned", "value"] * returns)]
        whole = self.builder.emit(made, "_".join(names) or "loop", self.source.span(node))
        values = [self._field(node, whole, i, label) for i, label in enumerate(labels)]
        for name, value in zip(names, values, strict=False):
            self.scope.bind(name, value)
        if not returns:
            return None
        (last,) = [e for e in out if isinstance(e, ast.Return)][-1:]
        return self._behind(node, last, values[-2], values[-1], follow)

    def _behind(
        self, node: ast.While, last: ast.Return, returned: Expr, value: Expr, follow: Follow | None
    ) -> Expr:
        """Behind a loop that has returned, or has come to its end."""
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if endless and not any(isinstance(e, ast.Break) for e in exits(node.body)):
            return self.returned(last, value)
        result = self.way(node, [], NOTHING_LIVE, lambda: self.returned(last, value))
        rest = self.way(node, [], NOTHING_LIVE, follow or (lambda: None))
        return self._chosen(node, node.test, returned, result, rest)

    def _field(self, node: ast.stmt, whole: Var, index: int, name: str) -> Expr:
        get = TupleGet(whole, index, self.source.span(node))
        return self.builder.emit(get, name)

    def known_symbols(self) -> frozenset[Symbol]:
        """The symbols that there are: of parameters, and of what names stand for."""
        seen = (type_symbols(v.type) for v in self.scope.locals() if isinstance(v, Var))
        return self.symbols.union(self.counters, *seen)

    def _find_returned(self, loop: _Loop) -> None:
        """The type of what a loop returns: its body is parsed once to see it."""
        trial = self.builder.trial()
        trial.signatures = self.builder.signatures
        outer = self._inside(trial)
        states = tuple(
            self.builder.new_var(n, t) for n, t in zip(loop.names, loop.types, strict=True)
        )
        self._loop_body(loop, states)
        self._inside(outer)
        self._widen_returned(loop)

    def _widen_returned(self, loop: _Loop) -> bool:
        """Take in what was returned in a round; whether it is of another type than was known."""
        found = loop.returned
        for kind in loop.met:
            of = erase(kind, loop.known) if type_symbols(kind) - loop.known else kind
            found = of if found is None else join(found, of)
        loop.met = []
        changed = found != loop.returned
        loop.returned = found
        return changed

    def _settled(self, loop: _Loop, init: Sequence[Expr], rounds: int = 4) -> Expr:
        """The loop, parsed again with wider types as long as its states outgrow them."""
        node = loop.node
        names, types = [*loop.names], [*loop.types]
        begins = zip(init, loop.types, strict=True)
        start = [self.number_as(node.test, e, t, beside=True) for e, t in begins]
        if loop.stops:
            names.append("goes_on")
            types.append(PrimType(BOOL))
            start.append(PrimValue(True, BOOL))
        if loop.returns:
            assert loop.returned is not None
            names += ["returned", "value"]
            types += [PrimType(BOOL), loop.returned]
            start += [PrimValue(False, BOOL), self.builder.atom(self._blank(node, loop.returned))]
        pairs = zip(names, types, strict=True)
        states = tuple(self.builder.new_var(name, kind) for name, kind in pairs)
        condition = self._condition(loop, states)
        body = self._loop_body(loop, states)
        found = self.type_of(body.result)
        assert isinstance(found, TupleType)
        fields = found.fields[: len(loop.names)]
        fits = all(map(is_subtype, fields, loop.types))
        wider = self._widen_returned(loop)
        if rounds and (not fits or wider):
            loop.types = [_wider(a, b) for a, b in zip(fields, loop.types, strict=True)]
            return self._settled(loop, init, rounds - 1)
        where = self.source.span(node.test)
        return self.checked(node.test, lambda: While(states, tuple(start), condition, body, where))

    def _blank(self, node: ast.While, kind: Type) -> Expr:
        """What stands for a value before the loop has returned one; nobody reads it."""
        match kind:
            case TensorType(tuple(shape), of) if of is not None:
                return self._op(node.test, "zeros", [shape], {"dtype": of})
            case TensorType(int(rank), of) if of is not None:
                return Constant(np.zeros((0,) * rank, of.numpy))
            case PrimType(of, value) if value is not None:
                return PrimValue(value, of)
            case PrimType(of):
                return PrimValue(False if of == BOOL else 0.0 if of.is_float else 0, of)
            case ShapeType(tuple(dims)):
                return ShapeValue(dims)
            case ShapeType(int(rank)):
                return ShapeValue((0,) * rank)
            case TupleType(fields):
                return Tuple(tuple(self.builder.atom(self._blank(node, f)) for f in fields))
            case _:
                (place,) = [e for e in exits(node.body) if isinstance(e, ast.Return)][-1:]
                raise self.source.error(
                    place,
                    f"a loop can't return {printed(kind)}: no value of that type is there before",
                    "assign what is returned to a name that has a value before the loop, break, "
                    "and return it behind the loop",
                )

    def _condition(self, loop: _Loop, states: Sequence[Var]) -> Body:
        """What the loop asks before each round: whether it goes on, and then its test."""
        node = loop.node
        endless = isinstance(node.test, ast.Constant) and node.test.value is True
        outer = self._entered(loop, states)
        goes_on = states[len(loop.names)] if loop.stops else None
        if goes_on is None:
            result = self.expr(node.test)
        elif endless:
            result = goes_on
        else:
            between = self._inside(self._child())
            asked = self.builder.atom(self.graph(node.test, self.value(node.test)))
            kind = self.type_of(asked)
            then = self.builder.body(asked)
            tensor = isinstance(kind, TensorType)
            no = Constant(np.asarray(False)) if tensor else PrimValue(False, BOOL)
            self._inside(between)
            orelse = self._child().body(no)
            where = self.source.span(node.test)
            result = self.checked(node.test, lambda: If(goes_on, then, orelse, where))
        return self._left(outer, result)

    def _loop_body(self, loop: _Loop, states: Sequence[Var]) -> Body:
        """One round of the loop; it gives the next states, however it ends."""
        node, names = loop.node, loop.names
        outer = self._entered(loop, states)
        around, value = self.leaving, states[-1] if len(states) > len(names) else None

        def following(goes_on: bool, returned: Expr | None = None) -> Expr:
            states = zip(names, loop.types, strict=True)
            values = [
                self.number_as(
                    node.test, self.scalar_or_graph(node.test, self.scope.local(n)), t, beside=True
                )
                for n, t in states
            ]
            if loop.stops:
                values.append(PrimValue(goes_on, BOOL))
            if loop.returns and value is not None:
                values.append(PrimValue(returned is not None, BOOL))
                values.append(value if returned is None else returned)
            return Tuple(tuple(map(self.builder.atom, values)))

        def on_return(_: ast.Return, returned: Expr) -> Expr:
            loop.met.append(self.type_of(returned))
            return following(False, returned)

        self.leaving = Leaving(lambda: following(False), lambda: following(True), on_return)
        live = NOTHING_LIVE | read(node.body) | set(names)
        result = self.suite(node.body, live, follow=lambda: following(True))
        assert result is not None
        self.leaving = around
        return self._left(outer, result)

    def _entered(self, loop: _Loop, states: Sequence[Var]) -> GraphBuilder:
        outer = self._inside(self._child())
        self.scope.push()
        for name, state in zip(loop.names, states, strict=False):
            self.scope.bind(name, state)
        return outer

    def _left(self, outer: GraphBuilder, result: Expr) -> Body:
        body = self.builder.body(result)
        self.scope.pop()
        self._inside(outer)
        return body


def _is_no_tensor(kind: Type) -> bool:
    """Whether a type is, or has in it, a shape or anything."""
    if isinstance(kind, TupleType):
        return any(map(_is_no_tensor, kind.fields))
    return isinstance(kind, ShapeType | ObjectType)
