"""Nodes without a converter, replaced by the function that ONNX itself defines them as.

About a third of ONNX's operators have a body in simpler ones (Attention, Hardmax, the losses). What
has neither a converter nor such a body is left for the importer to report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

import onnx
from onnx import inliner, shape_inference

from .reading.graphs import subgraphs
from .reading.load import DEFAULT_DOMAINS, Model, check_names

_OWN = "unity.expanded"
"""The domain of functions that stand for one node each, until they are put in its place."""


class _Bodies(Protocol):
    """What an operator's schema tells of its bodies, which onnx has no types for."""

    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int, /) -> bytes: ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes], /
    ) -> bytes: ...


def expand(model: Model, lacking: set[tuple[str, str]]) -> Model:
    """The model with nodes of the types (domain, op) in `lacking` replaced where ONNX says how."""
    wanted = [(domain, op) for domain, op in sorted(lacking) if onnx.defs.has(op, domain)]
    if not wanted:
        return model
    try:
        # A body may depend on the types of the inputs.
        typed = shape_inference.infer_shapes(model.proto)
        typed = _without_absent_inputs(typed, set(wanted), model.opsets)
        proto = inliner.inline_selected_functions(typed, wanted, inline_schema_functions=True)
    except Exception:  # the C++ side raises several kinds; without bodies the nodes get reported
        return model
    check_names(proto.graph, frozenset(), model.name)
    opsets = {
        ("" if o.domain in DEFAULT_DOMAINS else o.domain): o.version for o in proto.opset_import
    }
    return replace(model, proto=proto, opsets=opsets)


def _without_absent_inputs(
    typed: onnx.ModelProto, wanted: set[tuple[str, str]], opsets: Mapping[str, int]
) -> onnx.ModelProto:
    """The nodes that leave an input out before one that they give, replaced by their bodies.

    ONNX's inliner asks for the type of each input that is listed, those without a name too.
    """
    types = {
        info.name: info.type
        for info in (*typed.graph.input, *typed.graph.value_info, *typed.graph.output)
    }
    for tensor in typed.graph.initializer:
        kind = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        types.setdefault(tensor.name, kind)
    functions: list[onnx.FunctionProto] = []
    for node in _nodes(typed.graph):
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        if (domain, node.op_type) not in wanted or all(node.input):
            continue
        given = [types[name] if name else onnx.TypeProto() for name in node.input]
        body = _body_of(node, domain, opsets.get(domain, 1), given)
        if body is None:
            continue
        body.domain, body.name = _OWN, f"{node.op_type}_{len(functions)}"
        del body.opset_import[:]
        body.opset_import.extend(typed.opset_import)
        node.domain, node.op_type = body.domain, body.name
        asked = {*body.attribute, *(a.name for a in body.attribute_proto)}
        kept = [a for a in node.attribute if a.name in asked]
        del node.attribute[:]
        node.attribute.extend(kept)
        functions.append(body)
    if not functions:
        return typed
    typed.functions.extend(functions)
    typed.opset_import.append(onnx.helper.make_opsetid(_OWN, 1))
    found = inliner.inline_local_functions(typed)
    kept_opsets = [o for o in found.opset_import if o.domain != _OWN]
    del found.opset_import[:]
    found.opset_import.extend(kept_opsets)
    return found


def _body_of(
    node: onnx.NodeProto, domain: str, version: int, given: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """The function that ONNX defines a node as in an operator set."""
    schema = onnx.defs.get_schema(node.op_type, version, domain)
    bodies = cast("_Bodies", schema)
    plain = [v for v in bodies.function_opset_versions if v <= version]
    by_types = [v for v in bodies.context_dependent_function_opset_versions if v <= version]
    if plain:
        written = bodies.get_function_with_opset_version(max(plain))
    elif by_types:
        written = bodies.get_context_dependent_function_with_opset_version(
            max(by_types), node.SerializeToString(), [t.SerializeToString() for t in given]
        )
    else:
        return None
    body = onnx.FunctionProto()
    body.ParseFromString(written)
    for name, declared in schema.attributes.items():
        if declared.default_value.name and name in body.attribute:
            body.attribute.remove(name)
            body.attribute_proto.append(declared.default_value)
    return body


def _nodes(graph: onnx.GraphProto) -> Iterable[onnx.NodeProto]:
    """All nodes, those of nested graphs included."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from _nodes(inner)


def node_types(graph: onnx.GraphProto) -> set[tuple[str, str]]:
    """The (domain, op) of all nodes, nested graphs included."""
    return {
        ("" if node.domain in DEFAULT_DOMAINS else node.domain, node.op_type)
        for node in _nodes(graph)
    }
