"""Tensor passes: scheduled prim funcs to the flat, vector form that code generators take.

`lowering` lists them in the order the default pipeline runs them.
"""

from ..passes import Pass
from .check_scopes import CheckScopes
from .compact_buffers import CompactBuffers
from .flatten_buffers import FlattenBuffers
from .forward_stores import ForwardStores
from .hoisting.hoist_divisions import HoistDivisions
from .hoisting.hoist_functions import HoistFunctions
from .hoisting.hoist_masks import HoistMasks
from .hoisting.hoist_places import HoistPlaces
from .join_lanes import JoinLanes
from .lower_blocks import LowerBlocks
from .mask_lanes import MaskLanes
from .multiple_accumulators import MultipleAccumulators
from .open_blocks import OpenBlocks
from .parallel_outermost import ParallelOutermost
from .partition_loops import PartitionLoops
from .simplify_tir import SimplifyTir
from .tile_registers import TileRegisters
from .transpose_lanes import TransposeLanes
from .unroll_loops import UnrollLoops
from .unroll_registers import UnrollRegisters
from .vectorize_loops import VectorizeLoops

__all__ = [
    "CheckScopes",
    "CompactBuffers",
    "FlattenBuffers",
    "ForwardStores",
    "HoistDivisions",
    "HoistFunctions",
    "HoistMasks",
    "HoistPlaces",
    "JoinLanes",
    "LowerBlocks",
    "MaskLanes",
    "MultipleAccumulators",
    "OpenBlocks",
    "ParallelOutermost",
    "PartitionLoops",
    "SimplifyTir",
    "TileRegisters",
    "TransposeLanes",
    "UnrollLoops",
    "UnrollRegisters",
    "VectorizeLoops",
    "lowering",
]


def lowering() -> tuple[Pass, ...]:
    """From scheduled prim funcs to what `unity.codegen` takes."""
    return (
        OpenBlocks(),  # the passes behind it see one scope
        CompactBuffers(),  # while blocks say what they touch
        UnrollRegisters(),  # which makes more loops parts of tiles
        PartitionLoops(),  # while predicates stand at blocks
        MultipleAccumulators(),  # of tiles, when their sizes are known
        MaskLanes(),  # of those that are left
        LowerBlocks(),
        ParallelOutermost(),
        FlattenBuffers(),  # before vectorizing: split indices become linear in the lane again
        SimplifyTir(),
        HoistDivisions(),  # before loops are written out
        HoistPlaces(),  # while indices are those of numbers
        TransposeLanes(),  # while loops say which way they go
        JoinLanes(),  # before loops are vectors
        VectorizeLoops(),
        ForwardStores(),  # of vectors
        HoistFunctions(),  # likewise
        UnrollLoops(),
        SimplifyTir(),  # unrolling makes constants
        HoistMasks(),  # of which a loop that was written out has several
        TileRegisters(),  # which say which tile it is
    )
