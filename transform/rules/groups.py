"""The table of rules for several stages in a row: what passes between them stays in a cache.

They are asked before `table.RULES`, at each stage of a kernel that no other rule has taken.
"""

from __future__ import annotations

from .attention.by_rows import ATTENTION
from .attention.matrix_tiles import CHAIN_TILES
from .cache_chunks import CACHE_CHUNKS
from .contraction.packed import PACKED_READ
from .convolution.blocked import BLOCKED_UNPADDED
from .convolution.gathered import GATHERED_UNPADDED
from .rows.by_row import ROWS
from .rule import AnyRule
from .stages import Stages
from .trees import TREE_ENSEMBLE
from .winograd.tiles import WINOGRAD

GROUPS: tuple[AnyRule[Stages], ...] = (
    WINOGRAD,  # a product between transforms of tiles
    GATHERED_UNPADDED,  # short lines, of an unknown number of pixels, and what pads them
    BLOCKED_UNPADDED,  # any convolution that reads through what pads its image
    CACHE_CHUNKS,  # else the copy that is padded stays in a cache
    PACKED_READ,  # a product whose readers need its result point by point
    CHAIN_TILES,  # attention, of numbers that an instruction multiplies tiles of
    ATTENTION,  # of any other
    ROWS,  # softmax and the norms
    TREE_ENSEMBLE,  # what goes down trees, and what joins their leaves' values
)
