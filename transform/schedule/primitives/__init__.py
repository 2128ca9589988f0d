"""Schedule primitives, one a file: pure functions from a prim func to another of the same meaning.

Each refuses what it can't prove legal with a `UnityError` that names the argument and says why.
Loops are given by variable, blocks by name; `unity.transform.schedule.Schedule` is what users call.
"""

from .annotate import annotate, unannotate
from .annotate_buffer_access import annotate_buffer_access
from .blocks.blockize import blockize
from .blocks.blockize_body import blockize_body
from .blocks.decompose_padding import decompose_padding
from .blocks.pad_einsum import pad_einsum
from .blocks.reorder_block_iter_var import reorder_block_iter_var
from .blocks.round_up import round_up
from .blocks.tensorize import tensorize
from .blocks.tile_axis import tile_axis
from .blocks.tile_lines import tile_lines
from .blocks.transform_block_layout import transform_block_layout
from .location.compute_at import compute_at
from .location.compute_inline import compute_inline
from .location.neighbours import consumers, output_blocks, producers
from .location.reverse_compute_at import reverse_compute_at
from .location.reverse_compute_inline import reverse_compute_inline
from .loops.add_unit_loop import add_unit_loop
from .loops.bind import bind
from .loops.fuse import fuse
from .loops.fuse_siblings import fuse_siblings
from .loops.loop_partition import loop_partition
from .loops.parallel import parallel
from .loops.partition_siblings import partition_siblings
from .loops.peel import peel
from .loops.reorder import reorder
from .loops.split import split
from .loops.tile import tile
from .loops.trim import trim
from .loops.trim_neutral import trim_neutral
from .loops.trim_unread import trim_unread
from .loops.unroll import unroll
from .loops.unswitch import unswitch
from .loops.vectorize import vectorize
from .reduction.decompose_reduction import decompose_reduction
from .reduction.fuse_reduction_epilogue import fuse_reduction_epilogue
from .reduction.merge_reduction import merge_reduction
from .reduction.rfactor import rfactor
from .reduction.skip_padding import skip_padding
from .sampling.sample_categorical import check_decision, sample_categorical
from .sampling.sample_compute_location import compute_locations
from .sampling.sample_partitioned_tile import check_partitioned_tile, sample_partitioned_tile
from .sampling.sample_perfect_tile import check_perfect_tile, sample_perfect_tile
from .specialize import specialize
from .specialize_when import specialize_when
from .storage.cache_index import cache_index
from .storage.cache_inplace import cache_inplace
from .storage.cache_operand import cache_operand
from .storage.cache_read import cache_read
from .storage.cache_write import cache_write
from .storage.cache_write_at import cache_write_at
from .storage.compact_buffer import compact_buffer
from .storage.prefetch import prefetch
from .storage.read_at import read_at
from .storage.reindex import reindex
from .storage.reindex_cache_read import reindex_cache_read
from .storage.reindex_cache_write import reindex_cache_write
from .storage.rolling_buffer import rolling_buffer
from .storage.set_axis_separator import set_axis_separator
from .storage.set_dtype import set_dtype
from .storage.set_scope import set_scope
from .storage.storage_align import storage_align
from .storage.store_at import store_at
from .storage.store_in import store_in
from .storage.stream_stores import stream_stores
from .storage.transform_layout import transform_layout
from .storage.write_at import write_at

__all__ = [
    "add_unit_loop",
    "annotate",
    "annotate_buffer_access",
    "bind",
    "blockize",
    "blockize_body",
    "cache_index",
    "cache_inplace",
    "cache_operand",
    "cache_read",
    "cache_write",
    "cache_write_at",
    "check_decision",
    "check_partitioned_tile",
    "check_perfect_tile",
    "compact_buffer",
    "compute_at",
    "compute_inline",
    "compute_locations",
    "consumers",
    "decompose_padding",
    "decompose_reduction",
    "fuse",
    "fuse_reduction_epilogue",
    "fuse_siblings",
    "loop_partition",
    "merge_reduction",
    "output_blocks",
    "pad_einsum",
    "parallel",
    "partition_siblings",
    "peel",
    "prefetch",
    "producers",
    "read_at",
    "reindex",
    "reindex_cache_read",
    "reindex_cache_write",
    "reorder",
    "reorder_block_iter_var",
    "reverse_compute_at",
    "reverse_compute_inline",
    "rfactor",
    "rolling_buffer",
    "round_up",
    "sample_categorical",
    "sample_partitioned_tile",
    "sample_perfect_tile",
    "set_axis_separator",
    "set_dtype",
    "set_scope",
    "skip_padding",
    "specialize",
    "specialize_when",
    "split",
    "storage_align",
    "store_at",
    "store_in",
    "stream_stores",
    "tensorize",
    "tile",
    "tile_axis",
    "tile_lines",
    "transform_block_layout",
    "transform_layout",
    "trim",
    "trim_neutral",
    "trim_unread",
    "unannotate",
    "unroll",
    "unswitch",
    "vectorize",
    "write_at",
]
