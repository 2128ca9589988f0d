"""The work of products and convolutions: how many products they add up."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .registry import Extents


def by_depth(operands: Sequence[Extents], result: Extents) -> float:
    """Of a matrix product: each result is the sum over the last axis of the first operand."""
    first = operands[0]
    return prod(result) * (first[-1] if first else 1)


def by_weight(operands: Sequence[Extents], result: Extents) -> float:
    """Of a convolution: over all axes of the weight but the first, which is the result's channels.

    >>> by_weight([(1, 3, 8, 8), (16, 3, 3, 3)], (1, 16, 6, 6))
    15552
    """
    return prod(result) * prod(operands[1][1:])


def by_blocked_weight(operands: Sequence[Extents], result: Extents) -> float:
    """The same where the block of the result's channels is the weight's last axis."""
    return prod(result) * prod(operands[1][1:-1])


def by_interleaved_weight(operands: Sequence[Extents], result: Extents) -> float:
    """The same where it is the last but one, before a group of the depth."""
    weight = operands[1]
    return prod(result) * prod(weight[1:-2]) * weight[-1]


def by_input(operands: Sequence[Extents], result: Extents) -> float:
    """Of a transposed convolution: each element of the input is multiplied by all that it meets.

    >>> by_input([(1, 3, 8, 8), (3, 16, 2, 2)], (1, 16, 16, 16))
    12288
    """
    return prod(operands[0]) * prod(operands[1][1:])
