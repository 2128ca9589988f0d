"""Schedule primitives, one a file: pure functions from a prim func to another of the same meaning.

Each refuses what it can't prove legal with a `UnityError` that names the argument and says why.
Loops are given by variable, blocks by name; `unity.transform.schedule.Schedule` is what users call.
"""

from .add_unit_loop import add_unit_loop
from .annotate import annotate, unannotate
from .bind import bind
from .fuse import fuse
from .loop_partition import loop_partition
from .neighbours import consumers, producers
from .parallel import parallel
from .reorder import reorder
from .split import split
from .tile import tile
from .unroll import unroll
from .vectorize import vectorize

__all__ = [
    "add_unit_loop",
    "annotate",
    "bind",
    "consumers",
    "fuse",
    "loop_partition",
    "parallel",
    "producers",
    "reorder",
    "split",
    "tile",
    "unannotate",
    "unroll",
    "vectorize",
]
