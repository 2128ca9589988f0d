"""The standard pipeline, as data; users edit what `pipeline` gives, backends what they start from.

Every line is a pass; a comment stands where the order matters.
"""

from __future__ import annotations

from dataclasses import replace

from unity.arguments import public
from unity.ir.dtype import BFLOAT16, FLOAT16, DType
from unity.options import Precision

from .backend import Backend, backend_of, check_precision
from .graph import (
    ConvertFrames,
    ConvertLayout,
    ConvertLines,
    ConvertPrecision,
    ConvertTransposed,
    ConvertWinograd,
    CountNonzero,
    EliminateCommonSubexpr,
    EliminateDeadCode,
    ExpandOps,
    FlattenPoints,
    FoldBatchNorm,
    FoldConstants,
    FoldQuantization,
    FuseAttention,
    FuseOps,
    FuseReaders,
    FuseTir,
    InlineFunctions,
    IntegerProducts,
    JoinDequantize,
    LegalizeOps,
    LiftTemporaries,
    LowerCalls,
    MarkCopies,
    MarkInPlace,
    MatchKernelCalls,
    MergeConvolutions,
    MergeParallel,
    MultiplyByReciprocals,
    Normalize,
    PackWeights,
    PlanMemory,
    RealProducts,
    RequireElements,
    SimplifyOps,
    SimplifyParts,
    WidenProducts,
)
from .graph.resolve import LowerLibraryCalls, Resolve, SealEngines, policy_of
from .passes import Pass, Pipeline
from .schedule import ScheduleByRule, ScheduleDefault
from .tensor import (
    CheckScopes,
    CompactBuffers,
    FlattenBuffers,
    ForwardStores,
    HoistDivisions,
    HoistFunctions,
    HoistMasks,
    HoistPlaces,
    JoinLanes,
    LowerBlocks,
    MaskLanes,
    MultipleAccumulators,
    OpenBlocks,
    ParallelOutermost,
    PartitionLoops,
    SimplifyTir,
    TileRegisters,
    TransposeLanes,
    UnrollLoops,
    UnrollRegisters,
    VectorizeLoops,
)

GRAPH = Pipeline(
    (
        SealEngines(),  # before any pass looks into what engines are given
        Normalize(),  # every later pass expects A-normal form with types
        InlineFunctions(),  # the rules look into one function; shapes are those of the call
        RequireElements(),  # while argmax and median are ops
        ExpandOps(),  # before anything asks what a call is
        MatchKernelCalls(),  # before kernels are joined, whose sizes are then one
        FoldConstants(),  # shapes and weights become known, which the rules look for
        JoinDequantize(),  # weights become what the next three look for
        IntegerProducts(),  # while quantized weights are integers
        RealProducts(),  # whose operands and weights are dequantized next
        FoldQuantization(),  # before the rules, which see reals then
        FoldConstants(),  # of what was dequantized
        EliminateDeadCode(),  # integers that nothing reads any more
        SimplifyOps(),
        CountNonzero(),  # before call sites are told: its parts are kernels
        EliminateDeadCode(),  # what rules went around: some passes go by who reads a value
        Resolve(),  # while ops are those that users wrote; what follows makes kernels better
        MergeParallel(),  # before anything is made of constant weights
        SimplifyParts(),  # of products, and the views of them
        FuseAttention(),  # after transposes are joined and products merged
        FoldBatchNorm(),  # while convolutions are still ops
        ConvertFrames(),  # while convolutions are still ops; normalizations are in their weights
        FlattenPoints(),  # while a map is sampled by an op
        ConvertTransposed(),  # normalizations are in the weights, and each is a convolution now
        EliminateDeadCode(),  # convolutions before their normalizations, lest they be widened, too
        WidenProducts(),  # normalizations are in the weights; layouts are those of float32
        ConvertLines(),  # once convolutions are those of a signal, or of narrow floats, no more
        MergeConvolutions(),  # after biases are there; before layouts, which keep parts in place
        EliminateDeadCode(),  # convolutions as they were, lest their weights be laid out, too
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
        FuseReaders(),  # of kernels as they were fused: what is left between them
        EliminateDeadCode(),  # kernels that only fused ones were made from
        MarkCopies(),
        MarkInPlace(),  # while kernels have the form they were made in
        ScheduleDefault(),
        OpenBlocks(),  # the passes behind it see one scope
        CompactBuffers(),  # of kernels scheduled by hand; before what is left of them is lifted
        CheckScopes(),  # when temporaries have their sizes
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
)
"""From scheduled kernels to what code generators take."""

NARROW: dict[Precision, DType] = {"bf16": BFLOAT16, "f16": FLOAT16}


@public
def pipeline(kind: str = "cpu", precision: Precision = "f32", *, winograd: bool = True) -> Pipeline:
    """The pipeline of a kind of target. `print` shows it as the Python that makes it.

    Args:
        kind: Of target: the name of a backend.
        precision: What `ConvertPrecision` is to do; ``"f32"`` leaves it out.
        winograd: Whether convolutions may be computed by Winograd's tiles (`ConvertWinograd`).

    Raises:
        UnityError: There is no such kind or precision.

    >>> from unity.transform import pipeline
    >>> from unity.transform.graph import LegalizeOps
    >>> pipeline("cpu").until(LegalizeOps).names[:3]
    ('SealEngines', 'Normalize', 'InlineFunctions')
    """
    check_precision(precision)
    backend = backend_of(kind)
    found = (backend.pipeline or standard_pipeline)(backend, precision)
    return found if winograd else _without_winograd(found)


def _without_winograd(found: Pipeline) -> Pipeline:
    """Each output of a convolution as the sum over the pixels it sees, and of no others."""
    passes = (p for p in found.passes if not isinstance(p, ConvertWinograd))
    return Pipeline(tuple(_direct(p) for p in passes))


def _direct(p: Pass) -> Pass:
    """A pass that counts on no Winograd."""
    match p:
        case Resolve():
            return replace(p, forms=False)
        case IntegerProducts():
            return replace(p, winograd=False)
        case _:
            return p


@public
def standard_pipeline(backend: Backend, precision: Precision = "f32") -> Pipeline:
    """The passes above, with a backend's rules where they belong."""
    found = GRAPH + KERNELS + TENSOR
    if backend.resolve != "tir":
        found = found.replace(Resolve, Resolve(policy_of(backend.resolve)))
    if backend.legalizations:
        found = found.replace(LegalizeOps, LegalizeOps(backend.legalizations))
    if backend.schedule_rules:
        found = found.insert_before(ScheduleDefault, ScheduleByRule(backend.schedule_rules))
    if backend.decide is not None:
        found = found.replace(ScheduleDefault, ScheduleDefault(backend.decide))
    if precision == "f32":
        return found
    # After all that looks for plain float32 ops and weights.
    # Winograd's transforms would lose too much of a narrow float; integers lie in other blocks.
    narrow = NARROW[precision]
    found = found.without(
        IntegerProducts, ConvertLines, ConvertWinograd, PackWeights, MergeConvolutions
    )
    if narrow == FLOAT16:
        found = found.without(WidenProducts)
    found = found.replace(FoldQuantization, FoldQuantization(narrow=False))
    found = found.replace(Resolve, Resolve(policy_of(backend.resolve), forms=False))
    return found.replace(ConvertLayout, ConvertLayout(narrow)).insert_before(
        LegalizeOps,
        MultiplyByReciprocals(),  # their error is far below that of rounding
        ConvertPrecision(narrow),
        EliminateDeadCode(),
        PackWeights(),  # weights as they are rounded
    )
