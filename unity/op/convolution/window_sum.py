"""Sums over windows: what convolutions share beyond the geometry, in kernels and references."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unity import te
from unity.op.accumulate import Summand
from unity.op.attribute import INTS
from unity.op.registry import ComputeArg, attr
from unity.op.window import Window, all_taps, pad_reference, tap_reference

STEPS = (
    attr("strides", INTS, 1),
    attr("padding", INTS, 0),
    attr("dilation", INTS, 1),
)
"""The parameters that shift a window."""
LANES = Window(1)
"""The channels of a block, seen as a spatial axis that nothing happens along."""


def operands(args: Sequence[ComputeArg]) -> tuple[te.Tensor, te.Tensor]:
    """The image and the weight that the compute rule of a convolution is given."""
    x, w = args
    assert isinstance(x, te.Tensor)
    assert isinstance(w, te.Tensor)
    return x, w


def sum_of_taps(
    x: Summand, windows: Sequence[Window], part: Callable[[Summand, tuple[int, ...]], Summand]
) -> Summand:
    """The sum over all taps, zeros around the input.

    Args:
        x: Whose trailing axes the windows go along.
        windows: Of known kernels.
        part: What a tap adds, from what it sees and where it is.
    """
    padded = pad_reference(x, windows, 0)
    parts = (part(tap_reference(padded, windows, t), t) for t in all_taps(windows))
    total = next(parts)
    for more in parts:
        total = total + more
    return total
