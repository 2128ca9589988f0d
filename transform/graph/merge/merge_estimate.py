"""What convolutions of one input in blocks take one by one, and as one: cycles, estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.machine.target import Target

from ...rules.convolution.parts import line_cycles


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
        read = window.read / target.threads / target.machine.stream_bytes_per_cycle
        return products + read + target.machine.kernel_cycles(target.threads)

    return sum(map(cycles, blocks)) - cycles(sum(blocks))


def copying(size: int, target: Target) -> float:
    """Cycles that it takes to read so many bytes and to write as many."""
    start = target.machine.kernel_cycles(target.threads)
    return 2 * size / target.threads / target.machine.stream_bytes_per_cycle + start
