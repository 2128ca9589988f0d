"""ZipMap and DictVectorizer: maps of labels to numbers, which a program has as tensors.

A map has a column for each key. What it is for a caller stands in the function's attributes
(`unity.runtime.host_forms`), so maps may only come in and go out.
"""

from __future__ import annotations

from typing import TypeAlias

import onnx

from unity.errors import UnityError, UnsupportedError
from unity.ir.dtype import FLOAT32

from ..node import Converter, Node, Value

Keys: TypeAlias = tuple[str, ...] | tuple[int, ...]


def map_inputs(graph: onnx.GraphProto) -> dict[str, Keys]:
    """The inputs of a model that are maps, and the keys that are looked up in them.

    Raises:
        UnsupportedError: One is read by something else than a DictVectorizer, or by several, or its
            values are no float32.
    """
    found: dict[str, Keys] = {}
    for info in graph.input:
        if not info.type.HasField("map_type"):
            continue
        readers = [n for n in graph.node if info.name in n.input]
        values = info.type.map_type.value_type.tensor_type.elem_type
        if [n.op_type for n in readers] != ["DictVectorizer"] or values != onnx.TensorProto.FLOAT:
            raise UnsupportedError(
                f"the input {info.name!r} is a map",
                ["a map that is not read by one DictVectorizer, or is not of floats"],
            )
        attributes = {a.name: a for a in readers[0].attribute}
        if "string_vocabulary" in attributes:
            texts = attributes["string_vocabulary"].strings
            found[info.name] = tuple(t.decode(errors="replace") for t in texts)
        elif "int64_vocabulary" in attributes:
            found[info.name] = tuple(attributes["int64_vocabulary"].ints)
        else:
            raise UnityError("DictVectorizer needs string_vocabulary or int64_vocabulary")
    return found


def _dict_vectorizer(node: Node) -> Value:
    node.ignore("string_vocabulary", "int64_vocabulary")
    if node.proto.input[0] not in node.graph.maps:
        raise node.gap("a map that is no input of the model")
    return node.tensor(0)


def _zip_map(node: Node) -> Value:
    """A map for each row, from labels to numbers."""
    texts, numbers = node.texts_of("classlabels_strings"), node.ints_of("classlabels_int64s")
    keys: Keys = texts or numbers or ()
    if (not texts) is (not numbers) or len(set(keys)) < len(keys):
        raise UnityError("needs labels that differ: classlabels_strings or classlabels_int64s")
    if node.graph.outer is not None:
        raise node.gap("maps within an If, a Loop or a Scan")
    x = node.tensor(0)
    if len(node.shape_of(x)) == 1:
        x = node.op("expand_dims", x, axis=0)
    if node.shape_of(x)[-1] != len(keys) or node.dtype_of(x) != FLOAT32:
        raise UnityError(f"has {len(keys)} labels for {node.type_of(x)}")
    node.graph.maps[node.proto.output[0]] = keys
    return node.op("reshape", x, node.shape_of(x))  # a value of its own, not the scores themselves


CONVERTERS: dict[str, Converter] = {"DictVectorizer": _dict_vectorizer, "ZipMap": _zip_map}
