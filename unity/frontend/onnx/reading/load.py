"""Reading an ONNX model and checking its form: opsets, names, order. Comes out: a sorted graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx

from unity.errors import UnityError, UnsupportedError
from unity.ir.arrays.mapped import MappedFile

from .early import converted
from .functions import with_functions_written_out
from .graphs import describe, subgraphs
from .outline import outlined
from .storage import Storage, contents

OLDEST_OPSET = 7
"""Older ones are converted by the package onnx first."""
CONVERTED = 9
"""To what."""
DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose form was checked.

    Attributes:
        proto: The model, its local functions inlined.
        storage: Where its weights lie.
        opsets: The version of each domain; the default domain is ``""``.
        name: What to call it.
    """

    proto: onnx.ModelProto
    storage: Storage
    opsets: dict[str, int]
    name: str


def load_model(source: str | Path | bytes | onnx.ModelProto) -> Model:
    """Read a model.

    Raises:
        UnityError: It is no ONNX model, or its form is wrong.
        UnsupportedError: It needs an opset that Unity does not know.
    """
    proto, storage, name = _parse(source)
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedError(
            f"{name} is of version {proto.ir_version} of ONNX's format; "
            f"Unity reads up to {onnx.IR_VERSION}",
            hint="the file may be damaged, or the package onnx older than the model",
        )
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise UnityError(f"{name} holds no graph", hint="the file may be empty or cut short")
    if proto.functions:
        proto = with_functions_written_out(proto, name)
    proto = _modern(proto, name)
    opsets = _opsets(proto, name)
    check_names(proto.graph, frozenset(), name)
    return Model(proto, storage, opsets, name)


def _parse(
    source: str | Path | bytes | onnx.ModelProto,
) -> tuple[onnx.ModelProto, Storage, str]:
    name = name_of(source)
    if isinstance(source, onnx.ModelProto):
        return source, Storage(), name
    if isinstance(source, bytes):
        return _decode(source, name), Storage(source), name
    path = Path(source)
    data = contents(path)
    return _decode(data, name), Storage(data, path.parent), name


def name_of(source: str | Path | bytes | onnx.ModelProto) -> str:
    """What a model is called in messages: its file, or what its graph is called."""
    if isinstance(source, str | Path):
        return Path(source).name
    graph = source.graph.name if isinstance(source, onnx.ModelProto) else ""
    return graph if isinstance(graph, str) and graph else "the model"


def _decode(data: bytes | MappedFile, name: str) -> onnx.ModelProto:
    """The message in a file, the data of large tensors left where it is."""
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(outlined(data))
    except Exception:  # protobuf's DecodeError, which has no types to name it by
        raise UnityError(
            f"{name} is no ONNX model ({len(data)} bytes read)",
            hint="the file may be damaged or cut short",
        ) from None
    return proto


def _modern(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """A model of an operator set before the oldest that is read, converted to one that is."""
    version = next((o.version for o in proto.opset_import if o.domain in DEFAULT_DOMAINS), 0)
    if not 0 < version < OLDEST_OPSET:
        return proto
    return converted(proto, version, CONVERTED, name)


def _opsets(proto: onnx.ModelProto, name: str) -> dict[str, int]:
    opsets = {
        ("" if o.domain in DEFAULT_DOMAINS else o.domain): o.version for o in proto.opset_import
    }
    if not opsets:
        raise UnityError(f"{name} imports no opset", hint="the file may be damaged")
    newest = onnx.defs.onnx_opset_version()
    version = opsets.get("", newest)
    if not OLDEST_OPSET <= version <= newest:
        raise UnsupportedError(
            f"{name} uses opset {version}; Unity reads {OLDEST_OPSET} to {newest}",
            hint="the package onnx may be older than the model",
        )
    return opsets


def check_names(graph: onnx.GraphProto, outer: frozenset[str], name: str) -> None:
    """Check that each value has one name and one maker, nested graphs included.

    Raises:
        UnityError: A name is made twice, or used and made nowhere.
    """
    _require_text(graph, name)
    made: dict[str, str] = {}
    initializers = {t.name for t in graph.initializer} | {
        t.values.name for t in graph.sparse_initializer
    }
    for kind, names in (
        ("input", [i.name for i in graph.input]),
        ("initializer", [t.name for t in graph.initializer]),
        ("output of a node", [o for n in graph.node for o in n.output if o]),
    ):
        for value in names:
            both = kind == "initializer" and made.get(value) == "input"
            if value in made and not both:
                raise UnityError(f"{name}: two values are named {value!r}")
            made[value] = kind
    known = outer | made.keys() | initializers
    for node in graph.node:
        for value in node.input:
            if value and value not in known:
                raise UnityError(f"{name}: {describe(node)} reads {value!r}, which nothing makes")
        for inner in subgraphs(node):
            check_names(inner, frozenset(known), name)
    for output in graph.output:
        if output.name not in known:
            raise UnityError(
                f"{name}: the output {output.name!r} is made by nothing",
                hint="the file may be cut short",
            )


def _require_text(graph: onnx.GraphProto, name: str) -> None:
    """Refuse names that are no text: protobuf gives damaged ones as bytes.

    Raises:
        UnityError: There is one.
    """
    names: list[object] = [t.name for t in graph.initializer]
    for info in (*graph.input, *graph.output):
        names += [info.name, *(d.dim_param for d in info.type.tensor_type.shape.dim)]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [a.name for a in node.attribute]
    if not all(isinstance(n, str) for n in names):
        raise UnityError(f"{name} holds a name that is no text", hint="the file is damaged")


def check_signature(node: onnx.NodeProto, domain: str, version: int) -> tuple[list[str], list[str]]:
    """Check that a node is as its operator is declared: inputs, outputs and attributes.

    Returns:
        The attributes that its operator does not have in this opset, and those that it needs and
        does not have (ONNX's inliner leaves out what a function's body takes by default).

    Raises:
        UnityError: The operator is not there, takes more or fewer inputs or outputs, or attributes
            of other types.
    """
    try:
        schema = onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        raise UnityError(f"opset {version} has no such operator") from None
    for what, found, least, most in (
        ("inputs", len(node.input), schema.min_input, schema.max_input),
        ("outputs", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= found <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise UnityError(f"has {found} {what}, but its operator takes {wanted}")
    given = {a.name: a for a in node.attribute}
    if len(given) < len(node.attribute):
        raise UnityError("has an attribute twice")
    for name, declared in schema.attributes.items():
        wanted = str(declared.type).rpartition(".")[2]
        if name in given and attribute_type(given[name]) != wanted:
            raise UnityError(f"the attribute {name!r} must be of type {wanted}")
    needed = {name for name, declared in schema.attributes.items() if declared.required}
    return sorted(given.keys() - schema.attributes.keys()), sorted(needed - given.keys())


def attribute_type(attribute: onnx.AttributeProto) -> str:
    """What an attribute says that it holds: ``INTS``."""
    names: dict[int, str] = {v: k for k, v in onnx.AttributeProto.AttributeType.items()}
    return names.get(attribute.type, str(attribute.type))
