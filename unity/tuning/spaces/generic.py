"""Our own spaces that ask no rule: by a kernel's structure, and by the machine's instructions."""

from __future__ import annotations

from random import Random

from unity.ir.stmt import PrimFunc
from unity.machine.target import Target

from .by_program import ProgramSpace
from .packed import packed
from .rows import rows_together
from .tensorized import tensorized
from .tiles import multi_level_tiles

PROGRAMS = (multi_level_tiles, rows_together, tensorized, packed)
STRUCTURAL = frozenset(p.__name__ for p in PROGRAMS)
"""What points call these spaces."""
_ASKED = (packed,)
"""Of which not each step is known to be legal: copies in groups are not always cut for threads."""


def generic_spaces(func: PrimFunc, target: Target) -> list[ProgramSpace]:
    """Those that have something for a kernel.

    Args:
        func: The kernel.
        target: The machine.
    """
    spaces = [ProgramSpace(func, target, p, proven=p not in _ASKED) for p in PROGRAMS]
    return [space for space in spaces if space.first(Random(0)) is not None]
