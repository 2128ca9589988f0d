"""Reshape."""

from __future__ import annotations

from unity.frontend.reshaping import reshaped, with_copies
from unity.frontend.sizes import Sizes

from .node import Converter, Node, Value


def _reshape(node: Node) -> Value:
    zero_is_zero = bool(node.int_of("allowzero", 0))
    target = node.dims(1, "a shape")
    value = node.value(0)
    old = value.dims.shape if isinstance(value, Sizes) else node.shape_of(value)
    wanted = with_copies(target, old, zero_is_zero)
    if isinstance(value, Sizes) and all(isinstance(d, int) for d in wanted):
        numbers = [d for d in wanted if isinstance(d, int)]
        return Sizes(value.dims.reshape(numbers), value.dtype)
    return reshaped(node, node.tensor(0), wanted, copies=not zero_is_zero)


CONVERTERS: dict[str, Converter] = {"Reshape": _reshape}
