"""Einsum."""

from __future__ import annotations

from unity.frontend.einsum import einsum

from .node import Converter, Node, Value


def _einsum(node: Node) -> Value:
    tensors = [node.tensor(i) for i in range(node.count)]
    return einsum(node, node.text_of("equation", ""), tensors)


CONVERTERS: dict[str, Converter] = {"Einsum": _einsum}
