"""Einsum."""

from __future__ import annotations

from functools import partial

from unity.frontend.products import matmul
from unity.op.contraction.einsum_product import einsum

from .node import Converter, Node, Value


def _einsum(node: Node) -> Value:
    tensors = [node.tensor(i) for i in range(node.count)]
    return einsum(node, node.text_of("equation", ""), tensors, partial(matmul, node))


CONVERTERS: dict[str, Converter] = {"Einsum": _einsum}
