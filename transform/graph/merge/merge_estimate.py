"""What convolutions of one input in blocks take one by one, and as one: cycles, estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.machine.target import Target

from ...rules.convolution.parts import line_cycles

_BYTES_A_CYCLE = 10.0
"""What comes from the second cache while products are computed."""
_START = 600
"""Cycles before the first product of a kernel, and after its last one."""
_FORK = 3000
"""The same where threads share it: to wake them, and to wait for the last one."""


@dataclass(frozen=True, slots=True)
class Window:
    """What convolutions of one input have in common.

    Attributes:
        lines: Of the result.
        pixels: Of a line.
        steps: Products summed for an element.
        read: Bytes of the input.
    """

    lines: int
    pixels: int
    steps: int
    read: int


def merging_gains(blocks: Sequence[int], window: Window, target: Target) -> float:
    """How many cycles fewer one convolution takes than several.

    Args:
        blocks: Blocks of channels that each has.
        window: What they have in common.
        target: The machine.
    """

    def cycles(count: int) -> float:
        per_step = line_cycles(count, window.pixels, target)
        products = window.lines * window.steps * per_step / target.threads
        start = _START if target.threads == 1 else _FORK
        return products + window.read / target.threads / _BYTES_A_CYCLE + start

    return sum(map(cycles, blocks)) - cycles(sum(blocks))


def copying(size: int, target: Target) -> float:
    """Cycles that it takes to read so many bytes and to write as many."""
    start = _START if target.threads == 1 else _FORK
    return 2 * size / target.threads / _BYTES_A_CYCLE + start
