"""Depthwise convolutions of plain images: whether to bring one into blocks of channels and back.

In the plain layout lanes are pixels of a line: those past its end are computed for nothing, and
lines are copied into padded ones first, one for each stride. Where lines are short, that is more
than what it costs to bring the image into blocks, of which all lanes are channels.
"""

from __future__ import annotations

from math import prod

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Constant
from unity.ir.symbols.representative import BATCH, IMAGE, representative
from unity.machine.target import Target
from unity.op.window import per_axis

from .blockable import Image


def repays_blocks(call: Call, image: Image, out: Image, target: Target) -> bool:
    """Whether what short lines cost is more than moving the image into blocks and back.

    An unknown width is taken for the height: images are about as wide as they are high. Lanes that
    are idle are not counted then: in blocks tiles at both ends of a line take as long.

    Args:
        call: A depthwise `nn.conv2d` of float32.
        image: Its input, not in blocks.
        out: Its result.
        target: The machine.
    """
    lanes, machine = target.vector_bits // FLOAT32.bits, target.machine
    weight = call.args[1]
    if len(image.sizes) != 2 or image.channels % lanes or not isinstance(weight, Constant):
        return False
    planes = representative(image.batch, BATCH) * image.channels
    high, made_high = (representative(i.sizes[0], IMAGE) for i in (image, out))
    wide = representative(image.sizes[1], high)
    made_wide = representative(out.sizes[1], high)
    known = isinstance(out.sizes[1], int)
    idle = -made_wide % lanes / lanes if known else 0.0
    taps = prod(weight.data.shape[2:])
    idle_cycles = made_high * taps * idle / machine.fma_per_cycle
    copies = high * per_axis("strides", call.attrs["strides"], 2, 1)[1]
    copy_cycles = copies * machine.padded_line_cycles[0 if known else 1]
    moved = (high * wide + made_high * made_wide) * FLOAT32.bytes
    moving = planes * moved / machine.cached_relayout_bytes_per_cycle
    saved = planes * (idle_cycles + copy_cycles) - moving
    return saved > 2 * target.threads * machine.kernel_cycles(target.threads)
