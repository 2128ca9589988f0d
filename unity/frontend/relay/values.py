"""What Relay's expressions stand for while they are translated, and where they are looked up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from unity.frontend.broadcasting import Broadcasts
from unity.ir import graph
from unity.op.builder import GraphBuilder

from .syntax import Expr, Function, Var


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function as a value, with the scope that it is written in."""

    function: Function
    scope: Scope
    name: str


@dataclass(frozen=True, slots=True)
class Fields:
    """A tuple that holds functions, which are no values when the program runs."""

    fields: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Lacking:
    """A value that could not be translated; why is collected already."""


Value: TypeAlias = "graph.Expr | Closure | Fields | Lacking"


@dataclass(slots=True, eq=False)
class Frame:
    """A function of ours being built.

    Attributes:
        captured: Parameters for the values of other frames that it reads.
    """

    name: str
    captured: dict[graph.Var, graph.Var] = field(default_factory=dict[graph.Var, graph.Var])


@dataclass(slots=True, eq=False)
class Scope:
    """Where an expression stands: a body being built, and what is known in it.

    Attributes:
        builder: Of the body.
        frame: The function that the body belongs to.
        outer: The scope around it.
        broadcasts: What unknown dims broadcast to here.
        vars: What variables stand for.
        values: What was translated here already, by the expression.
    """

    builder: GraphBuilder
    frame: Frame
    outer: Scope | None = None
    broadcasts: Broadcasts = field(default_factory=Broadcasts)
    vars: dict[Var, Value] = field(default_factory=dict[Var, "Value"])
    values: dict[Expr, Value] = field(default_factory=dict[Expr, "Value"])

    def body(self) -> Scope:
        """The scope of a nested body: a branch."""
        inner = self.builder.child()
        inner.signatures = self.builder.signatures  # they grow as functions are met
        return Scope(inner, self.frame, self, self.broadcasts.inner())

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
                parts = (self.captured(f) for f in value.fields)
                return graph.Tuple(
                    tuple(p for p in parts if not isinstance(p, Closure | Fields | Lacking))
                )
            case Fields():
                return Fields(tuple(self.captured(f) for f in value.fields))
            case _:
                return value
