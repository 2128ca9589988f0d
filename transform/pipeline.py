"""The default pipelines, as data; users edit what `pipeline` gives.

Every line is a pass; a comment stands where the order matters.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from unity.errors import UnityError
from unity.ir.dtype import BFLOAT16, FLOAT16, DType
from unity.ir.target import TargetKind

from .graph import (
    ConvertLayout,
    ConvertPrecision,
    ConvertWinograd,
    EliminateCommonSubexpr,
    EliminateDeadCode,
    FoldBatchNorm,
    FoldConstants,
    FuseAttention,
    FuseOps,
    FuseTir,
    LegalizeOps,
    LiftTemporaries,
    LowerCalls,
    MarkCopies,
    MarkInPlace,
    MergeParallel,
    MultiplyByReciprocals,
    Normalize,
    PackWeights,
    PlanMemory,
    SimplifyOps,
)
from .graph.resolve import LowerLibraryCalls, Resolve, SealEngines
from .passes import Pipeline
from .schedule import ScheduleDefault
from .tensor import (
    CompactBuffers,
    FlattenBuffers,
    LowerBlocks,
    ParallelOutermost,
    PartitionLoops,
    SimplifyTir,
    UnrollLoops,
    UnrollRegisters,
    VectorizeLoops,
)

GRAPH = Pipeline(
    (
        SealEngines(),  # before any pass looks into what engines are given
        Normalize(),  # every later pass expects A-normal form with types
        FoldConstants(),  # shapes and weights become known, which the rules look for
        SimplifyOps(),
        Resolve(),  # while ops are those that users wrote; what follows makes kernels better
        MergeParallel(),  # before anything is made of constant weights
        FuseAttention(),  # after transposes are joined and products merged
        FoldBatchNorm(),  # while convolutions are still ops
        ConvertLayout(),  # after all that looks for plain convolutions
        EliminateCommonSubexpr(),
        EliminateDeadCode(),
        ConvertWinograd(),  # after layouts; none of the weights is dead
        PackWeights(),  # last: what looks for products is done, and none of them is dead
    )
)
"""Rewriting over operators; the result is still a graph of operators."""

KERNELS = Pipeline(
    (
        LowerLibraryCalls(),
        LegalizeOps(),
        FuseOps(),
        FuseTir(),
        EliminateDeadCode(),  # kernels that only fused ones were made from
        MarkCopies(),
        MarkInPlace(),  # while kernels have the form they were made in
        ScheduleDefault(),
        CompactBuffers(),  # of kernels scheduled by hand; before what is left of them is lifted
        LiftTemporaries(),  # those that the schedule left
        LowerCalls(),
        EliminateDeadCode(),  # tuples of outputs, taken apart
        PlanMemory(),  # while buffers have their shapes, which tell sizes
    )
)
"""From operators to scheduled kernels and planned memory."""

TENSOR = Pipeline(
    (
        UnrollRegisters(),  # which makes more loops parts of tiles
        PartitionLoops(),  # while predicates stand at blocks
        LowerBlocks(),
        ParallelOutermost(),
        FlattenBuffers(),  # before vectorizing: split indices become linear in the lane again
        SimplifyTir(),
        VectorizeLoops(),
        UnrollLoops(),
        SimplifyTir(),  # unrolling makes constants
    )
)
"""From scheduled kernels to what code generators take."""

DEFAULT: dict[TargetKind, Pipeline] = {"cpu": GRAPH + KERNELS + TENSOR}

Precision: TypeAlias = Literal["f32", "bf16", "f16"]
"""In what contractions of float32 compute: as they are, or with operands in a narrow float."""
NARROW: dict[Precision, DType] = {"bf16": BFLOAT16, "f16": FLOAT16}


def pipeline(kind: TargetKind = "cpu", precision: Precision = "f32") -> Pipeline:
    """The default pipeline of a kind of target.

    Args:
        kind: Of target.
        precision: What `ConvertPrecision` is to do; ``"f32"`` leaves it out.

    Raises:
        UnityError: There is no such kind or precision.

    >>> [p.name for p in pipeline("cpu").until(LegalizeOps).passes][:3]
    ['SealEngines', 'Normalize', 'FoldConstants']
    """
    found = DEFAULT.get(kind)
    if found is None:
        raise UnityError(f"no pipeline for {kind!r}", hint=f"there are: {', '.join(DEFAULT)}")
    if precision not in get_args(Precision):
        known = ", ".join(map(repr, get_args(Precision)))
        raise UnityError(f"no precision {precision!r}", hint=f"there are: {known}")
    if precision == "f32":
        return found
    # After all that looks for plain float32 ops and weights.
    # Winograd's transforms would lose too much of a narrow float.
    narrow = NARROW[precision]
    found = found.without(ConvertWinograd).without(PackWeights)
    return found.replace(ConvertLayout, ConvertLayout(narrow)).insert_before(
        LegalizeOps,
        MultiplyByReciprocals(),  # their error is far below that of rounding
        ConvertPrecision(narrow),
        EliminateDeadCode(),
        PackWeights(),  # weights as they are rounded
    )
