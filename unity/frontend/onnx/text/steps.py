"""Nodes that look into strings or files: StringSplit, StringNormalizer, ImageDecoder and their kin.

A program knows strings as codes and can't look into them. What depends on the model's inputs and
its own strings alone is worked out before it runs (`unity.runtime.host_forms.steps`), and passed to
it behind its inputs.
"""

from __future__ import annotations

import re

from unity.errors import UnityError
from unity.ir.attrs import AttrValue
from unity.ir.dims import Dim
from unity.ir.dtype import BOOL, INT64, UINT8, DType
from unity.ir.types import Shape, TensorType

from ..node import Converter, Node, Value
from ..reading.tensors import dtype_of


def _emitted(
    node: Node,
    name: str,
    outputs: list[tuple[DType | None, Shape]],
    texts: tuple[str, ...] = (),
    numbers: tuple[int, ...] = (),
) -> list[Value]:
    """A step on all inputs of a node; its outputs, each of a dtype or (with None) strings."""
    operands: list[AttrValue] = []
    for k in range(node.count):
        ref = node.graph.host_value(node.proto.input[k])
        if ref is None:
            raise node.gap("strings or files that the program itself makes")
        operands.append(ref)
    steps = node.graph.steps
    steps.append((name, tuple(operands), texts, numbers))
    found: list[Value] = []
    for k, (kind, shape) in enumerate(outputs):
        if k < len(node.proto.output) and node.proto.output[k]:
            if kind is None:
                node.string_outputs.add(k)
            own = node.proto.output[k]
            value = node.graph.derive(own, TensorType(shape, kind or INT64), len(steps) - 1, k)
            found.append(value)
    return found


def _fresh(node: Node, what: str) -> Dim:
    return node.graph.builder.fresh(f"{node.label}_{what}")


def _concat(node: Node) -> Value:
    shapes = [node.shape_of(node.tensor(k)) for k in range(2)]
    wide = max(shapes, key=len)
    if shapes[0] != shapes[1]:
        wide = tuple(_fresh(node, f"dim_{k}") for k in range(len(wide)))
    return _emitted(node, "concat", [(None, wide)])[0]


def _split(node: Node) -> list[Value]:
    shape = node.shape_of(node.tensor(0))
    delimiter, most = node.text_of("delimiter", ""), node.int_of("maxsplit", -1)
    parts = (*shape, _fresh(node, "parts"))
    return _emitted(node, "split", [(None, parts), (INT64, shape)], (delimiter,), (most,))


def _full_match(node: Node) -> Value:
    pattern = node.text_of("pattern", "")
    try:
        re.compile(pattern, re.ASCII)
    except re.error as error:
        raise node.gap(f"the pattern {pattern!r} ({error})") from None
    return _emitted(node, "match", [(BOOL, node.shape_of(node.tensor(0)))], (pattern,))[0]


def _normalize(node: Node) -> Value:
    shape = node.shape_of(node.tensor(0))
    case = node.text_of("case_change_action", "NONE")
    if case not in ("NONE", "LOWER", "UPPER") or len(shape) not in (1, 2):
        raise UnityError(f"case_change_action {case!r} of strings of shape {shape}")
    node.ignore("locale")
    words = node.texts_of("stopwords") or ()
    left = (*shape[:-1], _fresh(node, "left"))
    sensitive = node.int_of("is_case_sensitive", 0)
    return _emitted(node, "normalize", [(None, left)], (case, *words), (sensitive,))[0]


def parsed(node: Node) -> Value:
    """Cast from strings to numbers."""
    to = dtype_of(node.int_of("to", 1), "the attribute 'to'")
    node.ignore("saturate", "round_mode")
    return _emitted(node, "parse", [(to, node.shape_of(node.tensor(0)))], (to.name,))[0]


def _image(node: Node) -> Value:
    pixels = node.text_of("pixel_format", "RGB")
    if pixels not in ("RGB", "BGR", "Grayscale"):
        raise UnityError(f"pixel_format {pixels!r}; expected RGB, BGR or Grayscale")
    channels = 1 if pixels == "Grayscale" else 3
    shape = (_fresh(node, "height"), _fresh(node, "width"), channels)
    return _emitted(node, "image", [(UINT8, shape)], (pixels,))[0]


CONVERTERS: dict[str, Converter] = {
    "ImageDecoder": _image,
    "RegexFullMatch": _full_match,
    "StringConcat": _concat,
    "StringNormalizer": _normalize,
    "StringSplit": _split,
}
