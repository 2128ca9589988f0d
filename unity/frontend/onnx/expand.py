"""Nodes without a converter, replaced by the function that ONNX itself defines them as.

About a third of ONNX's operators have a body in simpler ones (Attention, Hardmax, the losses). What
has neither a converter nor such a body is left for the importer to report.
"""

from __future__ import annotations

from dataclasses import replace

import onnx
from onnx import inliner, shape_inference

from .graphs import subgraphs
from .load import DEFAULT_DOMAINS, Model, check_names


def expand(model: Model, lacking: set[tuple[str, str]]) -> Model:
    """The model with nodes of the types (domain, op) in `lacking` replaced where ONNX says how."""
    wanted = [(domain, op) for domain, op in sorted(lacking) if onnx.defs.has(op, domain)]
    if not wanted:
        return model
    try:
        # A body may depend on the types of the inputs.
        typed = shape_inference.infer_shapes(model.proto)
        proto = inliner.inline_selected_functions(typed, wanted, inline_schema_functions=True)
    except Exception:  # the C++ side raises several kinds; without bodies the nodes get reported
        return model
    check_names(proto.graph, frozenset(), model.name)
    opsets = {
        ("" if o.domain in DEFAULT_DOMAINS else o.domain): o.version for o in proto.opset_import
    }
    return replace(model, proto=proto, opsets=opsets)


def node_types(graph: onnx.GraphProto) -> set[tuple[str, str]]:
    """The (domain, op) of all nodes, nested graphs included."""
    found: set[tuple[str, str]] = set()
    for node in graph.node:
        found.add(("" if node.domain in DEFAULT_DOMAINS else node.domain, node.op_type))
        for inner in subgraphs(node):
            found |= node_types(inner)
    return found
