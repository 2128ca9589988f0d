"""A model's own functions, put in place of the nodes that call them, as far as that ends.

A function may call another twice, which calls a third twice: a few hundred bytes stand for a graph
of any size. So it is counted first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import onnx
from onnx import inliner

from unity.errors import UnityError

from .graphs import describe, subgraphs

MOST_NODES = 1 << 18
"""Nodes that a model may have with its functions written out."""

MOST_DEPTH = 100
"""Functions that call each other, at most: as deep as protobuf lets graphs nest."""

Key: TypeAlias = tuple[str, str, str]


def with_functions_written_out(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model without functions of its own.

    Raises:
        UnityError: They call each other in a circle, or are too large when written out.
    """
    count = _Counter(proto, name).nodes(proto.graph.node)
    if count > MOST_NODES:
        raise UnityError(
            f"{name} has {count} nodes with its functions written out; Unity takes {MOST_NODES}",
            hint="functions that call others more than once double at each level",
        )
    try:
        return inliner.inline_local_functions(proto)
    except Exception as error:  # the C++ side raises several kinds
        raise UnityError(f"{name}: its functions can't be written out: {error}") from None


class _Counter:
    """Counts nodes, those of functions as often as they are called."""

    def __init__(self, proto: onnx.ModelProto, name: str) -> None:
        self.name = name
        self.functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
        self.counted: dict[Key, int] = {}
        self.within: list[Key] = []

    def nodes(self, nodes: Iterable[onnx.NodeProto]) -> int:
        """How many nodes these become."""
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            total += self.body(key, node) if key in self.functions else 1
            total += sum(self.nodes(graph.node) for graph in subgraphs(node))
        return total

    def body(self, key: Key, caller: onnx.NodeProto) -> int:
        """How many nodes a call of a function becomes."""
        if key in self.within:
            names = " -> ".join(name for _, name, _ in (*self.within, key))
            raise UnityError(f"{self.name}: {describe(caller)} calls its own function: {names}")
        if len(self.within) == MOST_DEPTH:
            raise UnityError(f"{self.name}: functions call each other more than {MOST_DEPTH} deep")
        if key not in self.counted:
            self.within.append(key)
            self.counted[key] = self.nodes(self.functions[key].node)
            self.within.pop()
        return self.counted[key]
