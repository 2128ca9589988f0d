"""The model that is quantized: read, checked, of an opset that has what quantized models need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from unity.arguments import shown
from unity.errors import UnityError
from unity.frontend.onnx.reading.early import converted
from unity.frontend.onnx.reading.functions import with_functions_written_out
from unity.frontend.onnx.reading.graphs import sorted_nodes, subgraphs
from unity.frontend.onnx.reading.load import DEFAULT_DOMAINS, load_model, name_of
from unity.ir.dtype import Array

OPSET = 13
"""The first whose QuantizeLinear and DequantizeLinear have an axis."""
FORMAT = 7
"""The version of ONNX's format that came with it; since 4, constants need not be inputs."""


@dataclass(slots=True)
class EditedModel:
    """A model of our own that is changed in place.

    Attributes:
        proto: The model: functions written out, nodes in the order they run, its weights in it.
        name: What to call it in messages.
        constants: Values that are known: initializers, Constant nodes, and what only moves those.
        names: All that are taken.
        given: For each node's name, the one that the model gives it: several may have one.
    """

    proto: onnx.ModelProto
    name: str
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    names: set[str] = field(default_factory=set[str])
    given: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def graph(self) -> onnx.GraphProto:
        """Its graph."""
        return self.proto.graph

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        found, count = name, 1
        while found in self.names:
            found, count = f"{name}_{count}", count + 1
        self.names.add(found)
        return found

    def add(self, name: str, data: Array) -> str:
        """An initializer; what it is called."""
        found = self.fresh(name)
        self.constants[found] = data
        self.graph.initializer.append(numpy_helper.from_array(data, found))
        return found

    def read(self) -> Iterable[str]:
        """The names that nodes read, those of inner graphs too, and those of outputs."""
        return _read(self.graph)

    def put(self, nodes: Iterable[onnx.NodeProto]) -> None:
        """Replace the nodes, and drop initializers that none reads any more."""
        kept = list(nodes)
        del self.graph.node[:]
        self.graph.node.extend(kept)
        read = set(self.read())
        used = [t for t in self.graph.initializer if t.name in read]
        del self.graph.initializer[:]
        self.graph.initializer.extend(used)
        inputs = [i for i in self.graph.input if i.name in read or i.name not in self.constants]
        del self.graph.input[:]
        self.graph.input.extend(inputs)


def read_model(source: object) -> EditedModel:
    """A copy of a model to be changed.

    Raises:
        UnityError: It is no ONNX model, its form is wrong, or it is quantized.
        UnsupportedError: Its opset can't be brought to `OPSET`.
    """
    if not isinstance(source, str | Path | bytes | onnx.ModelProto):
        raise UnityError(
            f"can't quantize {shown(source)}",
            hint="give the path of an ONNX model, its bytes, or the model in memory",
        )
    checked = load_model(source)
    name = checked.name if isinstance(source, str | Path) else name_of(source)
    proto = onnx.ModelProto()
    if isinstance(source, onnx.ModelProto):
        proto.CopyFrom(source)
    else:
        proto = (
            onnx.load(source) if isinstance(source, str | Path) else onnx.load_from_string(source)
        )
    if proto.functions:
        proto = with_functions_written_out(proto, name)
    version = next((o.version for o in proto.opset_import if o.domain in DEFAULT_DOMAINS), OPSET)
    if version < OPSET:
        proto = converted(proto, version, OPSET, name)
    if any(n.op_type == "QuantizeLinear" for n in proto.graph.node):
        raise UnityError(f"{name} is quantized already", hint="give the model of float32")
    proto.ir_version = max(proto.ir_version, FORMAT)
    model = EditedModel(proto, name)
    nodes = sorted_nodes(proto.graph, name)
    model.names = set(_all_names(proto.graph))
    model.constants = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    for node in nodes:
        _know(model.constants, node)
    copies = [_copy(n) for n in nodes]
    _name(model, copies)
    model.put(copies)
    return model


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    own = onnx.NodeProto()
    own.CopyFrom(node)
    return own


def _name(model: EditedModel, nodes: Iterable[onnx.NodeProto]) -> None:
    """Give each node a name of its own: one without is called as its first output is."""
    for node in nodes:
        given = node.name or next(iter(node.output), "")
        node.name = model.fresh(given) if given in model.given else given
        model.given[node.name] = given


def _know(constants: dict[str, Array], node: onnx.NodeProto) -> None:
    """Add what a node makes of constants alone."""
    if node.domain not in DEFAULT_DOMAINS:
        return
    match node.op_type:
        case "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    constants[node.output[0]] = numpy_helper.to_array(attribute.t)
        case "Identity" if node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
        case "Transpose" if node.input[0] in constants:
            axes = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
            turned = np.ascontiguousarray(np.transpose(constants[node.input[0]], axes))
            constants[node.output[0]] = turned
        case _:
            pass


def _read(graph: onnx.GraphProto) -> Iterable[str]:
    yield from (o.name for o in graph.output)
    for node in graph.node:
        yield from node.input
        for inner in subgraphs(node):
            yield from _read(inner)


def _all_names(graph: onnx.GraphProto) -> Iterable[str]:
    yield from (t.name for t in graph.initializer)
    yield from (i.name for i in graph.input)
    for node in graph.node:
        yield from (node.name, *node.output)
        for inner in subgraphs(node):
            yield from _all_names(inner)
