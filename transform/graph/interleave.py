"""Weights of convolutions in the order that dot products of narrow numbers read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import BFLOAT16, Array, DType
from unity.machine.target import Target
from unity.op.conv_interleaved import interleaved, interleaved_lines

STEP_BYTES = 64
"""A row of a matrix tile, and a vector register: what channels of a block fill."""
GROUP_BYTES = 4
"""What a dot product adds up at once."""


@dataclass(frozen=True, slots=True)
class Interleave:
    """Sizes of blocks and groups.

    Attributes:
        block: Channels of a block, of inputs and of outputs.
        group: Of these, how many lie in 4 bytes.
    """

    block: int
    group: int

    def weights(self, weight: Array, lines: bool) -> Array:
        """Weights ``(o, c, kh, kw)`` as `nn.conv2d_interleaved` takes them.

        Args:
            weight: The weights.
            lines: Whether channels are no whole blocks, and taps of a line lie together.
        """
        block, (o, c, kh, kw) = self.block, weight.shape
        taken = c if lines else block
        data = np.pad(weight, ((0, -o % block), (0, -c % taken), (0, 0), (0, 0)))
        data = data.reshape(-1, block, data.shape[1] // taken, taken, kh, kw)
        plain = data.transpose(0, 2, 4, 5, 3, 1)
        if lines:
            return interleaved_lines(plain, self.group, block)
        return interleaved(plain, self.group)


def interleave_for(narrow: DType, target: Target) -> Interleave | None:
    """The sizes for a type; None where the target has no dot products of it."""
    tiles = target.has("amx-tile") and target.has("amx-bf16")
    lanes = target.has("avx512bf16") and target.vector_bits == 512
    if narrow != BFLOAT16 or not (tiles or lanes):
        return None
    return Interleave(STEP_BYTES // narrow.bytes, GROUP_BYTES // narrow.bytes)
