"""Reshape."""

from __future__ import annotations

from collections.abc import Sequence

from unity.frontend.reshaping import reshaped, with_copies
from unity.frontend.run_time.shapes import reshaped_to
from unity.frontend.run_time.vectors import length_of
from unity.frontend.sizes import Sizes
from unity.ir.dims import Dim, bounds

from .node import Converter, Node, Value


def _reshape(node: Node) -> Value:
    zero_is_zero = bool(node.int_of("allowzero", 0))
    if not node.is_known(1):
        count = length_of(node, node.tensor(1), "a shape")
        return _at_run_time(node, node.parts(1, count), zero_is_zero)
    target = node.dims(1, "a shape")
    value = node.value(0)
    old = value.dims.shape if isinstance(value, Sizes) else node.shape_of(value)
    wanted = with_copies(target, old, zero_is_zero)
    if isinstance(value, Sizes) and all(isinstance(d, int) for d in wanted):
        numbers = [d for d in wanted if isinstance(d, int)]
        return Sizes(value.dims.reshape(numbers), value.dtype)
    return reshaped(node, node.tensor(0), wanted, copies=not zero_is_zero)


def _at_run_time(node: Node, parts: Sequence[Dim | None], zero_is_zero: bool) -> Value:
    """To a shape of which not all is known."""
    x = node.tensor(0)
    if -1 in parts:
        # The others are sizes then, or 0.
        wanted = with_copies(node.dims(1, "a shape"), node.shape_of(x), zero_is_zero)
        return reshaped(node, x, wanted, copies=not zero_is_zero)
    sure = [d if d is not None and (bounds(d)[0] or 0) > 0 else None for d in parts]
    return reshaped_to(node, x, node.run_time(1), sure, zero_is_zero=zero_is_zero)


CONVERTERS: dict[str, Converter] = {"Reshape": _reshape}
