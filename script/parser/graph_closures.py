"""Functions within functions. Closures that call themselves or each other become the module's.

A closure is a value that is there when its def ends; within it, its name can mean nothing but a
function of the module. So such a def becomes one (lambda lifting): what it sees of the values
around it are further parameters, and so are the sizes of the functions around it that it mentions,
which stay what they are there. A call passes them on. Those that call each other see all that any
of them does.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from unity.ir.dims import Symbol, SymDim, symbols_of
from unity.ir.dtype import INT64
from unity.ir.graph import (
    Constant,
    Expr,
    Function,
    FunctionRef,
    Literal,
    Op,
    PrimValue,
    ShapeValue,
    Var,
)
from unity.ir.types import FuncType, PrimType, Type
from unity.ir.visit import type_symbols
from unity.op.builder import GraphBuilder
from unity.op.call import is_expr

from ..program import ScriptFunction
from .graph_expr import GraphEvaluator, Surroundings
from .graph_loops import LocalBody
from .graph_repeat import GraphRepeats
from .leaving.exits import assigned, read
from .scope import MISSING, Lifted, Named, Scope
from .source import Source


@dataclass(frozen=True, slots=True)
class _Sight:
    """What a closure saw of the functions around it: its depth in them, and what names meant."""

    depth: int
    names: dict[str, object]


class Carrier:
    """Makes a parameter of each value that a function sees of those around it.

    Args:
        around: The builder of the body around it.
        inside: The builder of its own.
        type_of: Tells the types of values around it.
    """

    def __init__(
        self, around: GraphBuilder, inside: GraphBuilder, type_of: Callable[[Expr], Type]
    ) -> None:
        self._around = around
        self.inside = inside
        self._type_of = type_of
        self._params: dict[Expr, Var] = {}
        self.symbols: set[Symbol] = set()

    @property
    def given(self) -> dict[Expr, Var]:
        """The parameter of each value that was carried, in order."""
        return self._params

    def carried(self, name: str, value: object) -> object:
        """What a value around the function is within it."""
        match value:
            case SymDim():
                self.symbols |= symbols_of(value)
                return value
            case tuple() | list():
                inside = [self.carried(name, v) for v in value]
                return tuple(inside) if isinstance(value, tuple) else inside
            case Lifted(_, _, seen):
                return replace(value, seen=tuple(self._param(_name(e, name), e) for e in seen))
            case Constant() | FunctionRef() | Op() | Literal():
                return value
            case PrimValue() | ShapeValue():
                self.symbols |= type_symbols(self._type_of(value))
                return value
            case _ if is_expr(value):
                return self._param(name, self._around.atom(value))
            case _:
                return value

    def sizes(self, of: Iterable[Symbol]) -> None:
        """Carry sizes, whose names stay."""
        for symbol in sorted(of, key=lambda s: s.name):
            kind = PrimType(INT64, symbol)
            self._params[PrimValue(symbol, INT64)] = self.inside.param(symbol.name, kind)

    def _param(self, name: str, value: Expr) -> Expr:
        if isinstance(value, Constant | PrimValue):
            self.symbols |= type_symbols(self._type_of(value))
            return value
        if value not in self._params:
            kind = self._type_of(value)
            self.symbols |= type_symbols(kind)
            self._params[value] = self.inside.param(name, kind)
        return self._params[value]


def _name(e: Expr, otherwise: str) -> str:
    return e.name if isinstance(e, Var) else otherwise


@dataclass(frozen=True, slots=True)
class Lifting:
    """A closure that becomes a function of the module, before its body is parsed.

    Attributes:
        node: Its definition.
        name: What it is called in the module.
        own: The parameters that it is written with.
        seen: What it sees of the functions around it, as it is within it.
        carrier: Makes its other parameters.
        result: What it returns.
        pure: Whether it has no effects; None to find out.
        attrs: Its attributes.
        mentioned: The symbols of all of that.
    """

    node: ast.FunctionDef
    name: str
    own: Mapping[str, object]
    seen: Mapping[str, object]
    carrier: Carrier
    result: Type
    pure: bool | None
    attrs: Mapping[str, object]
    mentioned: frozenset[Symbol]


class GraphClosures(GraphRepeats):
    """Parses nested functions, and names as they see them."""

    def __init__(self, source: Source, scope: Scope, around: Surroundings) -> None:
        super().__init__(source, scope, around)
        self.lifted: dict[str, Function] = {}  # that were closures
        self.names: frozenset[str] = frozenset()  # assigned in the function, and those around it
        self.defs: dict[str, ast.FunctionDef] = {}  # decorated, in the function
        self._closures: dict[Var | Lifted, _Sight] = {}
        self._around: frozenset[str] = frozenset()  # assigned in the functions around it
        self._ready: dict[ast.FunctionDef, Lifted] = {}  # with one above their own defs

    @abstractmethod
    def finish(
        self, node: ast.FunctionDef, pure: bool | None, attrs: dict[str, object]
    ) -> Function:
        """Parse the body of a function whose parameters are in scope."""

    def name(self, node: ast.Name) -> object:
        """A name; a closure only as long as what it saw is what Python would show it."""
        if node.id in self._around and self.scope.lookup(node.id) is MISSING:
            raise self.source.error(
                node,
                f"{node.id!r} is assigned below the closure that reads it",
                "assign it above the closure's def, or give it to the closure as an argument; "
                "functions that call each other are functions of the module",
            )
        found = super().name(node)
        sight = self._closures.get(found) if isinstance(found, Var | Lifted) else None
        for name, value in ({} if sight is None else sight.names).items():
            if sight is not None and self.scope.seen_at(sight.depth, name) is not value:
                raise self.source.error(
                    node,
                    f"{name!r} has changed since the def of {node.id!r}, which reads it",
                    f"give {name!r} to the closure as an argument, or write its def behind the "
                    "assignment",
                )
        return found

    def nested_function(self, node: ast.FunctionDef) -> None:
        """Bind the name of a function that is defined within another."""
        if not node.decorator_list:
            self.scope.bind(node.name, LocalBody(node))
            return
        decorator = node.decorator_list[0]
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if len(node.decorator_list) != 1 or ast.unparse(called).split(".")[-1] != "function":
            raise self.source.error(decorator, "a nested function takes @script.function alone")
        depth = self.scope.depth
        here = read(node.body) - {arg.arg for arg in node.args.args}
        sees = {name: self.scope.seen_at(depth, name) for name in here - {node.name}}
        made: Var | Lifted | None = self._lifted(node)
        if made is None:
            pure, attrs = decorator_options(self, node)
            inner = self._child()
            params = self._own_params(node, inner)
            function = self._within(node, inner, params, pure, attrs)
            made = self.builder.emit(function, node.name, self.source.span(node))
            self.name_params(made, params)
        known = {name: value for name, value in sees.items() if value is not MISSING}
        self._closures[made] = _Sight(depth, known)
        self.scope.bind(node.name, made)

    def _own_params(self, node: ast.FunctionDef, inner: GraphBuilder) -> dict[str, object]:
        """The parameters that a nested function is written with."""
        made: dict[str, object] = {}
        for arg in self.source.plain_params(node, "function"):
            if arg.annotation is None:
                raise self.source.error(arg, f"the parameter {arg.arg!r} has no annotation")
            kind = self.annotation(arg.annotation)
            made[arg.arg] = inner.param(arg.arg, kind, self.source.span(arg))
        return made

    def _within(
        self,
        node: ast.FunctionDef,
        inner: GraphBuilder,
        names: Mapping[str, object],
        pure: bool | None,
        attrs: dict[str, object],
    ) -> Function:
        """Parse a nested function, with names of its own."""
        around, self._around = self._around, self.names
        outer = self._inside(inner)
        self.scope.push(function=True)
        for name, value in names.items():
            self.scope.bind(name, value)
        function = self.finish(node, pure, attrs)
        self.scope.pop()
        self._inside(outer)
        self._around = around
        return function

    def _lifted(self, node: ast.FunctionDef) -> Lifted | None:
        """A closure that calls itself, or calls one that does, as a function of the module."""
        ready = self._ready.pop(node, None)
        if ready is not None:
            return ready
        group = [node]
        for each in group:
            later = (self.defs.get(name) for name in sorted(read(each.body)))
            unbound = (d for d in later if d and self.scope.local(d.name) is MISSING)
            group += [d for d in unbound if d not in group]
        if len(group) == 1 and node.name not in read(node.body):
            return None
        values = self._seen_by(group)
        made = [self._lifting(each, values) for each in group]
        mentioned = frozenset[Symbol]().union(*(m.mentioned for m in made)) & self.known_symbols()
        for m in made:
            m.carrier.sizes(mentioned)
            kinds = tuple(p.type for p in m.carrier.inside.params)
            self.builder.signatures[m.name] = FuncType(kinds, m.result, m.pure is not False)
            self.name_params(FunctionRef(m.name), m.own)
        for m in made:
            inside = tuple(m.carrier.given.values())
            each_other = {g.node.name: Lifted(g.name, len(g.own), inside) for g in made}
            names, attrs = {**m.seen, **each_other, **m.own}, {**m.attrs, "private": True}
            function = self._within(m.node, m.carrier.inside, names, m.pure, attrs)
            self.lifted[m.name] = function
            self.around.refers[m.name] = ScriptFunction(m.name, function, self.around.refers)
            self._ready[m.node] = Lifted(m.name, len(m.own), tuple(m.carrier.given))
        return self._ready.pop(node)

    def _lifting(self, node: ast.FunctionDef, values: Mapping[str, object]) -> Lifting:
        """What a closure becomes, before its body is parsed."""
        if node.returns is None:
            raise self.source.error(
                node,
                f"{node.name!r} is called before it is known what it returns",
                f"declare it: def {node.name}(...) -> f32[Tensor, n]:",
            )
        pure, attrs = decorator_options(self, node)
        name = self.builder.unique(node.name)
        while name in self.builder.signatures and name not in self.lifted:
            name = self.builder.unique(node.name)
        inner = GraphBuilder(dataflow=False)
        inner.signatures = self.builder.signatures
        inner.unique(name)
        own, result = self._own_params(node, inner), self.annotation(node.returns)
        carrier = Carrier(self.builder, inner, self.type_of)
        seen = {key: carrier.carried(key, value) for key, value in values.items()}
        types = (*(p.type for p in inner.params), result)
        mentioned = frozenset(carrier.symbols).union(*map(type_symbols, types))
        return Lifting(node, name, own, seen, carrier, result, pure, attrs, mentioned)

    def _seen_by(self, group: Sequence[ast.FunctionDef]) -> dict[str, object]:
        """What functions see of those around them, but for each other."""
        found: dict[str, object] = {}
        own = {node.name for node in group}
        todo = list(group)
        while todo:
            here = todo.pop()
            skipped = {*own, *assigned(here.body), *(a.arg for a in here.args.args)}
            names = (part for part in ast.walk(here) if isinstance(part, ast.Name))
            for part in names:
                value = self.scope.lookup(part.id)
                if part.id in found or part.id in skipped or value is MISSING:
                    continue
                if isinstance(value, LocalBody):
                    todo.append(value.node)
                elif isinstance(value, SymDim) or self.scope.local(part.id) is not MISSING:
                    found[part.id] = self.name(part)
        self.around.called_within |= any(isinstance(v, Named) for v in found.values())
        return found


def closures_of(node: ast.FunctionDef) -> dict[str, ast.FunctionDef]:
    """The decorated functions that stand in a function itself, those of one name left out."""
    found: dict[str, list[ast.FunctionDef]] = {}
    todo: list[ast.AST] = list(node.body)
    while todo:
        part = todo.pop()
        if not isinstance(part, ast.FunctionDef):
            todo += ast.iter_child_nodes(part)
        elif part.decorator_list:
            found.setdefault(part.name, []).append(part)
    return {name: nodes[0] for name, nodes in found.items() if len(nodes) == 1}


def decorator_options(
    parser: GraphEvaluator, node: ast.FunctionDef
) -> tuple[bool | None, dict[str, object]]:
    """``pure`` and ``attrs`` of a definition's decorator, which has not run."""
    decorator = node.decorator_list[0]
    pure: bool | None = True if parser.around.tvmscript else None
    attrs: dict[str, object] = {}
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        value = parser.constant(keyword.value)
        if keyword.arg == "pure" and isinstance(value, bool):
            pure = value
        elif keyword.arg == "attrs" and isinstance(value, dict):
            attrs = {str(k): v for k, v in value.items()}
        else:
            raise parser.source.error(keyword, "the decorator takes pure=bool and attrs=dict")
    return pure, attrs
