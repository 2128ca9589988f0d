"""The nodes of a graph: what they are called, what they hold, in which order they may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from unity.errors import UnityError


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def describe(node: onnx.NodeProto) -> str:
    """A node for messages: its name and type."""
    name = node.name or next(iter(node.output), "") or "(unnamed)"
    return f"node {name!r} ({node.op_type})"


def sorted_nodes(graph: onnx.GraphProto, name: str) -> list[onnx.NodeProto]:
    """The nodes, each after those it reads from; as they stand where that holds already.

    Raises:
        UnityError: They form a cycle.
    """
    maker = {o: i for i, n in enumerate(graph.node) for o in n.output if o}
    needs = [sorted({maker[v] for v in _reads(n) if v in maker}) for n in graph.node]
    done: list[int] = []
    state = [0] * len(needs)  # 0 unseen, 1 on the path, 2 done
    for first in range(len(needs)):
        path = [(first, iter(needs[first]))] if state[first] == 0 else []
        state[first] = max(state[first], 1)
        while path:
            at, rest = path[-1]
            following = next(rest, None)
            if following is None:
                state[at] = 2
                done.append(at)
                path.pop()
            elif state[following] == 1:
                cycle = [i for i, _ in path]
                names = " -> ".join(
                    describe(graph.node[i]) for i in cycle[cycle.index(following) :]
                )
                raise UnityError(f"{name}: the graph has a cycle: {names}")
            elif state[following] == 0:
                state[following] = 1
                path.append((following, iter(needs[following])))
    return [graph.node[i] for i in done]


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    """The names a node reads; of its graphs those that are not made within."""
    yield from node.input
    for inner in subgraphs(node):
        made = {i.name for i in inner.input} | {t.name for t in inner.initializer}
        made |= {o for each in inner.node for o in each.output}
        read = [r for each in inner.node for r in _reads(each)] + [o.name for o in inner.output]
        yield from (r for r in read if r not in made)
