"""Sequences to which each step of a loop appends one tensor: what TorchScript makes of a list.

Nothing but the insertion reads the sequence, which is empty before the first step. What is appended
is then what the step gives besides its states, and all of it a stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx


@dataclass(frozen=True, slots=True)
class Appended:
    """A loop's body without such sequences.

    Attributes:
        body: It gives what was appended after all else, in the order of the sequences.
        places: Which states the sequences are.
    """

    body: onnx.GraphProto
    places: tuple[int, ...]


def appended(body: onnx.GraphProto, begins_empty: Sequence[bool]) -> Appended | None:
    """The body of a Loop without the sequences that its steps append to; None if there is none.

    Args:
        body: The body.
        begins_empty: For each state whether it is a sequence without items before the first step.
    """
    read = list(names_read(body))
    made = {n.output[0]: n for n in body.node if n.output}
    found: dict[int, onnx.NodeProto] = {}
    for k, empty in enumerate(begins_empty):
        before, after = body.input[2 + k].name, body.output[1 + k].name
        node = made.get(after)
        if not empty or node is None or node.op_type != "SequenceInsert" or node.domain:
            continue
        at_end = len(node.input) == 2 or not node.input[2]
        given = [o.name for o in body.output]
        alone = read.count(before) == 1 and not read.count(after) and given.count(after) == 1
        if at_end and node.input[0] == before and alone and before not in given:
            found[k] = node
    if not found:
        return None
    left = onnx.GraphProto()
    left.CopyFrom(body)
    for k in sorted(found, reverse=True):
        del left.input[2 + k], left.output[1 + k]
    kept = [n for n in body.node if not any(n is x for x in found.values())]
    del left.node[:]
    left.node.extend(kept)
    left.output.extend(onnx.ValueInfoProto(name=found[k].input[1]) for k in sorted(found))
    return Appended(left, tuple(sorted(found)))


def names_read(graph: onnx.GraphProto) -> Iterator[str]:
    """What nodes read, as often as they do, those of graphs within as well."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from names_read(inner)
                yield from (o.name for o in inner.output)
