"""Weights of convolutions in the order that dot products of narrow numbers read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unity.ir.dtype import Array, DType
from unity.machine.dot_units import TILE_ROW_BYTES, dot_unit, group_of, has_dot
from unity.machine.target import Target
from unity.op.convolution.conv_interleaved import interleaved, interleaved_lines


@dataclass(frozen=True, slots=True)
class Interleave:
    """Sizes of blocks and groups.

    Attributes:
        block: Channels of a block, of inputs and of outputs.
        group: Of these, how many lie in 4 bytes.
        step: What the taps of a line that lie together are filled up to.
    """

    block: int
    group: int
    step: int

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
            return interleaved_lines(plain, self.group, self.step)
        return interleaved(plain, self.group)


def interleave_for_tiles(
    left: DType, right: DType, out: DType, target: Target
) -> Interleave | None:
    """Sizes by which a block of inputs fills a row of a matrix tile; None without such tiles."""
    if not has_dot(target, "tile", left, right, out):
        return None
    block = TILE_ROW_BYTES // left.bytes
    return Interleave(block, group_of(left), block)


def interleave_for(left: DType, right: DType, out: DType, target: Target) -> Interleave | None:
    """The sizes for types of operands and sums; None where the target has no dot products of them.

    Blocks of floats fill a row of a tile and a register of that width; those of bytes have as many
    channels as a register has sums, as blocks of float32 have; where they are to fill rows of tiles
    is for `interleave_for_tiles` to say.
    """
    tiles = interleave_for_tiles(left, right, out, target)
    unit = dot_unit("lanes", left, right, out)
    lanes = unit is not None and unit.on(target)
    if unit is not None and target.vector_bits != unit.lane_counts[-1] * out.bits:
        lanes = False
    group = group_of(left)
    if left.is_float and tiles is not None:
        return tiles
    if left.is_float and lanes:
        block = TILE_ROW_BYTES // left.bytes
        return Interleave(block, group, block)
    return Interleave(target.vector_bits // out.bits, group, group) if lanes else None
