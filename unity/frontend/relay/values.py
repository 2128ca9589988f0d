"""What Relay's expressions stand for while they are translated, and where they are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

import numpy as np

from unity.errors import Span
from unity.frontend.broadcasting import Broadcasts
from unity.frontend.sizes import Sizes
from unity.ir import graph
from unity.op.builder import GraphBuilder

from .syntax import AdtType, Expr, Function, Hole, Type, TypeDeclaration, TypeVar, Var


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function as a value, with the scope that it is written in."""

    function: Function
    scope: Scope
    name: str


@dataclass(frozen=True, slots=True)
class Fields:
    """A tuple that holds functions, or other values that no expression of ours has."""

    fields: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """A value of a declared type: a list, a tree. How far it goes is known, and what it may be.

    Attributes:
        declaration: The type.
        tag: The place of its constructor among the type's: a number, or if branches chose it, a
            scalar of int32.
        fields: What it holds, by the place of each constructor that it may be of; where there are
            several, the fields of those that it is not of are zeros.
    """

    declaration: TypeDeclaration
    tag: int | graph.Expr
    fields: Mapping[int, tuple[Value, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A reference. What it holds at a point of the program is in the `Store` there."""


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """No value: the program fails here, as a match has no clause for what it is given."""

    what: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Lacking:
    """A value that could not be translated; why is collected already."""


Value: TypeAlias = "graph.Expr | Closure | Fields | Data | Cell | Failure | Lacking"
UNREAL = (Closure, Fields, Data, Cell, Failure, Lacking)
"""Values that no expression of ours has."""


@dataclass(slots=True, eq=False)
class Store:
    """What references hold, in one body.

    Attributes:
        outer: The body around it.
        held: What was written here.
    """

    outer: Store | None = None
    held: dict[Cell, Value] = field(default_factory=dict[Cell, "Value"])

    def read(self, cell: Cell) -> Value | None:
        """What a reference holds; None if this function has not made it."""
        store: Store | None = self
        while store is not None:
            if cell in store.held:
                return store.held[cell]
            store = store.outer
        return None


@dataclass(slots=True, eq=False)
class Frame:
    """A function of ours being built.

    Attributes:
        captured: Parameters for the values of other frames that it reads.
        sizes: Its tensors whose elements are known as dims.
    """

    name: str
    captured: dict[graph.Var, graph.Var] = field(default_factory=dict[graph.Var, graph.Var])
    sizes: dict[graph.Expr, Sizes] = field(default_factory=dict[graph.Expr, Sizes])


@dataclass(slots=True, eq=False)
class Scope:
    """Where an expression stands: a body being built, and what is known in it.

    Attributes:
        builder: Of the body.
        frame: The function that the body belongs to.
        outer: The scope around it.
        broadcasts: What unknown dims broadcast to here.
        store: What references hold here.
        depth: In how many bodies, one in another, it stands.
        vars: What variables stand for.
        values: What was translated here already, by the expression.
    """

    builder: GraphBuilder
    frame: Frame
    outer: Scope | None = None
    broadcasts: Broadcasts = field(default_factory=Broadcasts)
    store: Store = field(default_factory=Store)
    depth: int = 0
    vars: dict[Var, Value] = field(default_factory=dict[Var, "Value"])
    values: dict[Expr, Value] = field(default_factory=dict[Expr, "Value"])

    def body(self) -> Scope:
        """The scope of a nested body: a branch."""
        inner = self.builder.child()
        inner.signatures = self.builder.signatures  # they grow as functions are met
        broadcasts, store = self.broadcasts.inner(), Store(self.store)
        return Scope(inner, self.frame, self, broadcasts, store, self.depth + 1)

    def called(self, home: Scope) -> Scope:
        """The scope of a function's body, put in place here; `home` is where it is written."""
        broadcasts, store = self.broadcasts, self.store
        return Scope(self.builder, self.frame, home, broadcasts, store, self.depth)

    def find(self, expr: Expr) -> Value | None:
        """What an expression stands for, if that is known here."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.vars.get(expr) if isinstance(expr, Var) else scope.values.get(expr)
            if found is not None:
                return found if scope.frame is self.frame else self.captured(found)
            scope = scope.outer
        return None

    def captured(self, value: Value) -> Value:
        """A value of another function: what this one takes as a parameter for it."""
        match value:
            case graph.Var():
                own = self.frame.captured
                if value not in own:
                    own[value] = self.builder.new_var(value.name, value.type)
                return own[value]
            case graph.Tuple():
                return tupled([self.captured(f) for f in value.fields])
            case Fields():
                return Fields(tuple(self.captured(f) for f in value.fields))
            case Data(declaration, tag, fields):
                chosen = tag if isinstance(tag, int) else self.captured(tag)
                assert isinstance(chosen, int) or is_real(chosen)
                inner = {k: tuple(map(self.captured, held)) for k, held in fields.items()}
                return Data(declaration, chosen, inner)
            case _:
                return value


def is_real(value: Value) -> TypeGuard[graph.Expr]:
    """Whether a value is an expression of ours."""
    return not isinstance(value, UNREAL)


def tupled(fields: Sequence[Value]) -> Value:
    """A tuple; one that is no value when the program runs, if a field is none."""
    for f in fields:
        if isinstance(f, Lacking | Failure):
            return f
    exprs = [f for f in fields if is_real(f)]
    return graph.Tuple(tuple(exprs)) if len(exprs) == len(fields) else Fields(tuple(fields))


def packed(value: Value) -> graph.Expr | None:
    """A value as one that a program gives, if it can be.

    One of a declared type is a tuple: its tag, then what it holds; where branches chose its
    constructor, what each of those that it may be of holds, in their order.
    """
    match value:
        case Data(_, tag, fields):
            first = graph.Constant(np.array(tag, np.int32)) if isinstance(tag, int) else tag
            inner = (first, *(v for k in sorted(fields) for v in fields[k]))
        case Fields(fields):
            inner = fields
        case Closure() | Cell() | Failure() | Lacking():
            return None
        case _:
            return value
    parts = [packed(v) for v in inner]
    known = [p for p in parts if p is not None]
    return graph.Tuple(tuple(known)) if len(known) == len(parts) else None


def depth_of(value: Value) -> int:
    """How many tuples and constructors stand one in another in a value."""
    deepest = 0
    stack: list[tuple[Value, int]] = [(value, 0)]
    while stack:
        part, depth = stack.pop()
        deepest = max(deepest, depth)
        match part:
            case Data(_, _, fields):
                stack += ((v, depth + 1) for held in fields.values() for v in held)
            case Fields() | graph.Tuple():
                stack += ((v, depth + 1) for v in part.fields)
            case _:
                pass
    return deepest


def may_be(value: Data, kind: Type) -> bool:
    """Whether a value may be of a type that the source declares."""
    if isinstance(kind, AdtType):
        return kind.name == value.declaration.name
    return isinstance(kind, TypeVar | Hole)


def described(value: Value) -> str:
    """What a value is, in messages."""
    match value:
        case Closure():
            return "a function"
        case Cell():
            return "a reference"
        case Data():
            return f"a value of the type {value.declaration.name}"
        case graph.Tuple() | Fields():
            return "a tuple"
        case _:
            return "a tensor"
