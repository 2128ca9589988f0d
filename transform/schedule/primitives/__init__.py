"""Schedule primitives, one a file: pure functions from a prim func to another of the same meaning.

Each refuses what it can't prove legal with a `UnityError` that names the argument and says why.
Loops are given by variable, blocks by name; `unity.transform.schedule.Schedule` is what users call.
"""

from .add_unit_loop import add_unit_loop
from .annotate import annotate, unannotate
from .bind import bind
from .blockize import blockize
from .cache_read import cache_read
from .cache_write import cache_write
from .compute_at import compute_at
from .compute_inline import compute_inline
from .decompose_reduction import decompose_reduction
from .fuse import fuse
from .loop_partition import loop_partition
from .merge_reduction import merge_reduction
from .neighbours import consumers, producers
from .pad_einsum import pad_einsum
from .parallel import parallel
from .prefetch import prefetch
from .reindex import reindex
from .reorder import reorder
from .reverse_compute_at import reverse_compute_at
from .reverse_compute_inline import reverse_compute_inline
from .rfactor import rfactor
from .sample_categorical import check_decision, sample_categorical
from .sample_compute_location import compute_locations
from .sample_perfect_tile import check_perfect_tile, sample_perfect_tile
from .set_axis_separator import set_axis_separator
from .set_scope import set_scope
from .specialize import specialize
from .split import split
from .storage_align import storage_align
from .store_at import store_at
from .tensorize import tensorize
from .tile import tile
from .transform_block_layout import transform_block_layout
from .transform_layout import transform_layout
from .unroll import unroll
from .vectorize import vectorize

__all__ = [
    "add_unit_loop",
    "annotate",
    "bind",
    "blockize",
    "cache_read",
    "cache_write",
    "check_decision",
    "check_perfect_tile",
    "compute_at",
    "compute_inline",
    "compute_locations",
    "consumers",
    "decompose_reduction",
    "fuse",
    "loop_partition",
    "merge_reduction",
    "pad_einsum",
    "parallel",
    "prefetch",
    "producers",
    "reindex",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "rfactor",
    "sample_categorical",
    "sample_perfect_tile",
    "set_axis_separator",
    "set_scope",
    "specialize",
    "split",
    "storage_align",
    "store_at",
    "tensorize",
    "tile",
    "transform_block_layout",
    "transform_layout",
    "unannotate",
    "unroll",
    "vectorize",
]
