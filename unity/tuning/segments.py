"""A function cut where one tensor is all that passes: segments that can be timed by themselves.

What is used over a long stretch (a mask, caches) or is a result passes by all cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.attrs import NO_ATTRS
from unity.ir.graph import Function, Var
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.ir.visit import free_vars
from unity.transform.graph.resolve.outline import outlined, refusal
from unity.transform.pattern import Graph

MOST_SEGMENTS = 24
_LONG = 8
"""Bindings, at least, over which a value is alive to pass by: a quarter of the function."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Some consecutive bindings.

    Attributes:
        members: What they bind, in order.
        function: The same as a function of its own; None if it can't be one.
    """

    members: tuple[Var, ...]
    function: Function | None

    def module(self) -> IRModule | None:
        """A program of this segment alone."""
        return None if self.function is None else IRModule({"main": self.function})


def segments_of(function: Function, weight: dict[Var, float]) -> list[Segment]:
    """The segments of a function's dataflow, in order.

    Args:
        function: A function of one dataflow block, or several.
        weight: About what each variable takes; light neighbours are joined.
    """
    graph = Graph.of(function)
    order = list(graph.values)
    groups = _joined(_cut(order, graph), weight)
    return [
        Segment(tuple(g), None if refusal(g, graph) else outlined(g, graph, NO_ATTRS))
        for g in groups
    ]


def _cut(order: Sequence[Var], graph: Graph) -> list[list[Var]]:
    """Cut after every variable that is all that is needed soon of what came before."""
    number = {v: i for i, v in enumerate(order)}
    last = list(range(len(order)))
    for var, value in graph.values.items():
        for used in free_vars(value):
            if used in number:
                last[number[used]] = max(last[number[used]], number[var])
    far = max(_LONG, len(order) // 4)
    groups: list[list[Var]] = []
    current: list[Var] = []
    alive: set[int] = set()
    for i, var in enumerate(order):
        current.append(var)
        alive = {j for j in (*alive, i) if last[j] > i and last[j] - j < far}
        if alive == {i} and isinstance(var.type, TensorType):
            groups.append(current)
            current = []
    if current:
        groups.append(current)
    return groups


def _joined(groups: list[list[Var]], weight: dict[Var, float]) -> list[list[Var]]:
    """Neighbours joined until none is light, and none are too many."""

    def heavy(group: Sequence[Var]) -> float:
        return sum(weight.get(v, 0.0) for v in group)

    least = sum(map(heavy, groups)) / MOST_SEGMENTS / 2
    while len(groups) > 1:
        weights = [heavy(g) for g in groups]
        at = weights.index(min(weights))
        if weights[at] >= least and len(groups) <= MOST_SEGMENTS:
            break
        before = weights[at - 1] if at > 0 else float("inf")
        after = weights[at + 1] if at + 1 < len(groups) else float("inf")
        first = at - 1 if before <= after else at
        groups[first : first + 2] = [groups[first] + groups[first + 1]]
    return groups
