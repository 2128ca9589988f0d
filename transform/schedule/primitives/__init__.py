"""Schedule primitives, one a file: pure functions from a prim func to another of the same meaning.

Each refuses what it can't prove legal with a `UnityError` that names the argument and says why.
Loops are given by variable, blocks by name; `unity.transform.schedule.Schedule` is what users call.
"""

from .add_unit_loop import add_unit_loop
from .annotate import annotate, unannotate
from .bind import bind
from .cache_read import cache_read
from .cache_write import cache_write
from .compute_at import compute_at
from .compute_inline import compute_inline
from .fuse import fuse
from .loop_partition import loop_partition
from .neighbours import consumers, producers
from .parallel import parallel
from .reindex import reindex
from .reorder import reorder
from .reverse_compute_at import reverse_compute_at
from .reverse_compute_inline import reverse_compute_inline
from .set_scope import set_scope
from .split import split
from .storage_align import storage_align
from .tile import tile
from .unroll import unroll
from .vectorize import vectorize

__all__ = [
    "add_unit_loop",
    "annotate",
    "bind",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "consumers",
    "fuse",
    "loop_partition",
    "parallel",
    "producers",
    "reindex",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "set_scope",
    "split",
    "storage_align",
    "tile",
    "unannotate",
    "unroll",
    "vectorize",
]
