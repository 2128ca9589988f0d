"""What a kernel may become: spaces of schedules, whose points are decisions."""

from .by_program import ProgramSpace, SpaceProgram
from .by_rules import RuleSpace
from .generic import generic_spaces
from .packed import packed
from .point import Point, Space
from .rows import rows_together
from .tensorized import tensorized
from .tiles import multi_level_tiles

__all__ = [
    "Point",
    "ProgramSpace",
    "RuleSpace",
    "Space",
    "SpaceProgram",
    "generic_spaces",
    "multi_level_tiles",
    "packed",
    "rows_together",
    "tensorized",
]
