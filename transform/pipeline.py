"""The default pipelines, as data; users edit what `pipeline` gives.

Every line is a pass; a comment stands where the order matters.
"""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.target import TargetKind

from .graph import (
    ConvertLayout,
    EliminateCommonSubexpr,
    EliminateDeadCode,
    FoldBatchNorm,
    FoldConstants,
    FuseOps,
    FuseTir,
    LegalizeOps,
    LiftTemporaries,
    LowerCalls,
    MarkInPlace,
    Normalize,
    PlanMemory,
    SimplifyOps,
)
from .passes import Pipeline
from .schedule import ScheduleDefault
from .tensor import (
    FlattenBuffers,
    LowerBlocks,
    ParallelOutermost,
    SimplifyTir,
    UnrollLoops,
    VectorizeLoops,
)

GRAPH = Pipeline(
    (
        Normalize(),  # every later pass expects A-normal form with types
        FoldConstants(),  # shapes and weights become known, which the rules look for
        SimplifyOps(),
        FoldBatchNorm(),  # while convolutions are still ops
        ConvertLayout(),  # after all that looks for plain convolutions
        EliminateCommonSubexpr(),
        EliminateDeadCode(),
    )
)
"""Rewriting over operators; the result is still a graph of operators."""

KERNELS = Pipeline(
    (
        LegalizeOps(),
        FuseOps(),
        FuseTir(),
        EliminateDeadCode(),  # kernels that only fused ones were made from
        MarkInPlace(),  # while kernels have the form they were made in
        ScheduleDefault(),
        LiftTemporaries(),  # those that the schedule left
        LowerCalls(),
        EliminateDeadCode(),  # tuples of outputs, taken apart
        PlanMemory(),  # while buffers have their shapes, which tell sizes
    )
)
"""From operators to scheduled kernels and planned memory."""

TENSOR = Pipeline(
    (
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


def pipeline(kind: TargetKind = "cpu") -> Pipeline:
    """The default pipeline of a kind of target.

    >>> [p.name for p in pipeline("cpu").until(LegalizeOps).passes][:3]
    ['Normalize', 'FoldConstants', 'SimplifyOps']
    """
    found = DEFAULT.get(kind)
    if found is None:
        raise UnityError(f"no pipeline for {kind!r}", hint=f"there are: {', '.join(DEFAULT)}")
    return found
