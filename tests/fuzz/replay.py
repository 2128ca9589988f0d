"""Graph functions made anew by `GraphBuilder`, binding by binding, with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from unity.errors import UnityError
from unity.ir.dims import Dim
from unity.ir.dtype import Array
from unity.ir.graph import (
    Binding,
    Body,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Function,
    If,
    MatchCast,
    Scan,
    ShapeValue,
    Tuple,
    Var,
    While,
)
from unity.ir.types import Type
from unity.ir.visit import bodies_of, map_expr, map_type_dims, walk_bindings
from unity.op.builder import GraphBuilder


def unchanged(value: Dim) -> Dim:
    """The dim itself."""
    return value


@dataclass(frozen=True, slots=True)
class Edit:
    """What is changed.

    Attributes:
        result: The variables to return instead, of the function itself.
        cut: A variable that becomes a parameter.
        instead: Variables in place of others.
        branch: An ``if`` by its variable, and which of its bodies takes its place.
        dim: What each dim becomes.
        array: What each constant becomes.
    """

    result: tuple[Var, ...] = ()
    cut: Var | None = None
    instead: Mapping[Var, Var] = field(default_factory=dict[Var, Var])
    branch: tuple[Var, bool] | None = None
    dim: Callable[[Dim], Dim] = unchanged
    array: Callable[[Array], Array] | None = None


class Replay:
    """One function under an edit.

    Args:
        edit: What is changed.
        signatures: The types of the module's functions.
    """

    def __init__(self, edit: Edit, signatures: Mapping[str, Type]) -> None:
        self._edit = edit
        self._signatures = signatures
        self._vars: dict[Var, Expr] = {}
        self._used: set[Var] = set()
        self._top: GraphBuilder | None = None

    def function(self, function: Function) -> Function:
        """The function, without what nothing reads any more.

        Raises:
            UnityError: What is left is ill-typed.
        """
        result = self._result(function.body)
        self._note_uses(function, result)
        builder = GraphBuilder(self._signatures)
        self._top = builder
        for param in function.params:
            if param in self._used:
                self._vars[param] = builder.param(param.name, self._type(param.type))
        if self._edit.cut is not None:
            cut = self._edit.cut
            self._vars[cut] = builder.param(cut.name, self._type(cut.type))
        self._bindings(function.body, builder)
        return builder.finish(self._expr(result, builder))

    def _result(self, body: Body) -> Expr:
        found = self._edit.result
        if not found:
            return body.result
        return found[0] if len(found) == 1 else Tuple(found)

    def _note_uses(self, function: Function, result: Expr) -> None:
        """Variables that what is returned comes from: bindings are gone through from the last."""
        self._used |= self._read(result)
        for binding in reversed([*walk_bindings(function)]):
            self._used |= self._read(binding.value) if self._lives(binding.var) else set()

    def _lives(self, var: Var) -> bool:
        return var in self._used and var not in self._edit.instead and var is not self._edit.cut

    def _read(self, e: Expr) -> set[Var]:
        """What an expression reads, what stands in it included."""
        found: set[Var] = set()

        def note(x: Expr) -> Expr:
            if isinstance(x, Var):
                found.add(self._edit.instead.get(x, x))
            else:
                map_expr(x, note)
            return x

        note(e)
        for body in bodies_of(e):
            found |= self._read(body.result)
            for block in body.blocks:
                for binding in block.bindings:
                    found |= self._read(binding.value)
        return found

    def _type(self, kind: Type) -> Type:
        return map_type_dims(kind, self._edit.dim)

    def _bindings(self, body: Body, builder: GraphBuilder) -> None:
        for block in body.blocks:
            for binding in block.bindings:
                if self._lives(binding.var):
                    self._vars[binding.var] = self._bound(binding, builder)

    def _bound(self, binding: Binding, builder: GraphBuilder) -> Expr:
        if isinstance(binding, MatchCast):
            value = self._expr(binding.value, builder)
            return builder.match_cast(value, self._type(binding.type), binding.var.name)
        var, value = binding.var, binding.value
        chosen = self._edit.branch
        if chosen is not None and chosen[0] is var and isinstance(value, If):
            inner = value.then if chosen[1] else value.orelse
            self._bindings(inner, builder)
            return self._expr(inner.result, builder)
        return builder.emit(self._expr(value, builder), var.name)

    def _body(self, body: Body, builder: GraphBuilder) -> Body:
        inner = builder.child()
        self._bindings(body, inner)
        return inner.body(self._expr(body.result, inner))

    def _inner_var(self, var: Var, builder: GraphBuilder) -> Var:
        made = builder.new_var(var.name, self._type(var.type))
        self._vars[var] = made
        return made

    def _expr(self, e: Expr, builder: GraphBuilder) -> Expr:
        def go(x: Expr) -> Expr:
            return self._expr(x, builder)

        match e:
            case Var():
                found = self._edit.instead.get(e, e)
                if found not in self._vars:
                    raise UnityError(f"{found.name} is not in scope")
                return self._vars[found]
            case Constant() if self._edit.array is not None:
                return replace(e, data=self._edit.array(e.data))
            case ShapeValue():
                return ShapeValue(tuple(map(self._edit.dim, e.dims)))
            case CallTir() | CallLibrary() | CallPython() | CallEngine():
                made = map_expr(e, go)
                assert isinstance(made, CallTir | CallLibrary | CallPython | CallEngine)
                return replace(made, out=tuple(map(self._type, e.out)))
            case If():
                then, orelse = self._body(e.then, builder), self._body(e.orelse, builder)
                return If(go(e.condition), then, orelse)
            case While():
                init = tuple(map(go, e.init))
                variables = tuple(self._inner_var(v, builder) for v in e.vars)
                condition, body = self._body(e.condition, builder), self._body(e.body, builder)
                return While(variables, init, condition, body)
            case Scan():
                init, inputs = tuple(map(go, e.init)), tuple(map(go, e.inputs))
                state = tuple(self._inner_var(v, builder) for v in e.state)
                elements = tuple(self._inner_var(v, builder) for v in e.elements)
                return Scan(state, init, elements, inputs, self._body(e.body, builder))
            case Function():
                params = tuple(self._inner_var(p, builder) for p in e.params)
                return replace(
                    e, params=params, body=self._body(e.body, builder), result=self._type(e.result)
                )
            case _:
                return map_expr(e, go)
