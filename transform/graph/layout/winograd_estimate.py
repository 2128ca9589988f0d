"""What a convolution in blocks takes by Winograd's tiles, and as it is: cycles, estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from unity.ir.dims import Dim
from unity.ir.symbols.representative import BATCH, IMAGES, representative
from unity.machine.target import Target

TILES: Mapping[int, Sequence[int]] = {3: (4, 2), 5: (4, 2), 7: (2,)}
"""Outputs along a side of a tile, by the taps of a window; the largest first.

Tiles of 6 for 3 taps take as long as those of 4, with five times the rounding errors: more pixels
of them lie outside an image (28 to 96 pixels of 32 to 256 channels, AMD Zen 3)."""
MARGIN = 1.1
"""How many times faster the estimate has to be: its weights take room that others would use.

Of 16 convolutions of 16 to 512 channels and 7 to 112 pixels, those it finds 1.15 to 1.3 times as
fast were 1.2 to 2.2 times so by one thread of AMD Zen 3, but for 256 channels of 7 x 7 by tiles of
4: 0.88 in one run, 2.0 in another, 1.85 by two threads."""


def taps_of(window: Sequence[int]) -> int | None:
    """The taps along a side of a window, behind others over frames; None if no tile is for such."""
    *_, k, other = window
    return k if k == other and k in TILES else None


def winograd_cycles(
    outputs: int,
    inputs: int,
    batch: Dim,
    sizes: Sequence[Dim],
    lanes: int,
    target: Target,
    taps: int = 3,
) -> dict[int, float]:
    """Cycles by the side of a tile; 0 for the convolution as it is.

    Of unknown sizes they are the geometric mean of those of several images: small ones reuse
    transformed weights too little.

    Args:
        outputs: Blocks of output channels.
        inputs: Blocks of input channels, for each tap over frames.
        batch: Images.
        sizes: Height and width of the output, before them frames if there are any.
        lanes: Channels of a block.
        target: The machine.
        taps: Of a window along a side, one of `TILES`.
    """
    *frames, height, width = sizes
    count = math.prod(max(1, representative(e, BATCH)) for e in (batch, *frames))
    images = {tuple(representative(e, i) for e in (height, width)) for i in IMAGES}
    channels = outputs, inputs
    every = [_cycles(channels, (count, h, w), lanes, taps, target) for h, w in sorted(images)]
    return {t: math.prod(e[t] for e in every) ** (1 / len(every)) for t in every[0]}


def _cycles(
    channels: tuple[int, int], image: tuple[int, int, int], lanes: int, taps: int, target: Target
) -> dict[int, float]:
    """Of so many images of a height and width."""
    (outputs, inputs), (batch, height, width) = channels, image
    depth, machine = inputs * lanes, target.machine

    def memory(points: int) -> float:
        size = points * depth * outputs * lanes * 4
        if size <= target.l2_reread:
            return 0.0
        kept = size <= min(target.l3_bytes, machine.l3_counted_bytes)
        rate = machine.stream_bytes_per_cycle if kept else machine.far_bytes_per_cycle
        return batch * size / rate  # read anew for each image

    peak = machine.fma_per_cycle
    products = batch * height * width * taps**2 * depth * outputs / peak
    found = {0: products / machine.product_share + memory(taps**2)}
    for tile in TILES[taps]:
        points = (tile + taps - 1) ** 2
        count = batch * -(-height // tile) * -(-width // tile)
        cost = count * points * depth * outputs / peak / machine.winograd_share + memory(points)
        found[tile] = cost + count * (inputs + outputs) * points * machine.winograd_cycles
    return found


def worth(cycles: dict[int, float]) -> list[int]:
    """The tiles that are so much faster that they are worth their memory, the fastest first."""
    tiles = [t for t, c in cycles.items() if t and c * MARGIN < cycles[0]]
    return sorted(tiles, key=lambda t: cycles[t])
