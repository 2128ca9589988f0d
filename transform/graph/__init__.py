"""Passes over graph functions, from A-normal form to planned memory: one pass a file.

Passes lie in folders by what they are for; what all of them share (`rewriter`, `symbols`, `uses`,
`names` ...) lies here.
"""

from typing import TYPE_CHECKING

from ..relax_names import finder
from .fuse.fuse_attention import FuseAttention
from .fuse.fuse_ops import FuseOps
from .fuse.fuse_readers import FuseReaders
from .fuse.fuse_tir import FuseTir
from .layout.convert_layout import ConvertLayout
from .layout.convert_lines import ConvertLines
from .layout.convert_precision import ConvertPrecision
from .layout.convert_winograd import ConvertWinograd
from .layout.fold_quantization import FoldQuantization
from .layout.pack_weights import PackWeights
from .layout.widen_products import WidenProducts
from .lower.legalization import Legalization, LegalizeRule
from .lower.legalize import LegalizeOps
from .lower.lift_temporaries import LiftTemporaries
from .lower.lower_calls import LowerCalls
from .lower.match_kernel_calls import MatchKernelCalls
from .memory.mark_copies import MarkCopies
from .memory.mark_in_place import MarkInPlace
from .memory.plan_memory import PlanMemory, arena_bytes, peak_bytes
from .merge.merge_convolutions import MergeConvolutions
from .merge.merge_parallel import MergeParallel
from .quantized.integer_products import IntegerProducts
from .quantized.join_dequantize import JoinDequantize
from .quantized.quantize_weights import QuantizeWeights
from .rewrite.rewrite import Rewrite
from .rewrite.rewrite_rule import RewriteRule
from .signature.bind_params import BindParams
from .signature.bind_symbolic_vars import BindSymbolicVars
from .signature.lift_transform_params import LiftTransformParams
from .signature.remove_unused import RemoveUnused
from .signature.remove_unused_outputs import RemoveUnusedOutputs
from .signature.remove_unused_parameters import RemoveUnusedParameters
from .simplify.convert_frames import ConvertFrames
from .simplify.convert_transposed import ConvertTransposed
from .simplify.count_nonzero import CountNonzero
from .simplify.cse import EliminateCommonSubexpr
from .simplify.dce import EliminateDeadCode
from .simplify.expand_ops import ExpandOps
from .simplify.flatten_points import FlattenPoints
from .simplify.fold import FoldConstants
from .simplify.fold_batch_norm import FoldBatchNorm
from .simplify.inline_functions import InlineFunctions
from .simplify.normalize import Normalize
from .simplify.real_products import RealProducts
from .simplify.reciprocals import MultiplyByReciprocals
from .simplify.require_elements import RequireElements
from .simplify.simplify import SimplifyOps, SimplifyParts

__all__ = [
    "BindParams",
    "BindSymbolicVars",
    "ConvertFrames",
    "ConvertLayout",
    "ConvertLines",
    "ConvertPrecision",
    "ConvertTransposed",
    "ConvertWinograd",
    "CountNonzero",
    "EliminateCommonSubexpr",
    "EliminateDeadCode",
    "ExpandOps",
    "FlattenPoints",
    "FoldBatchNorm",
    "FoldConstants",
    "FoldQuantization",
    "FuseAttention",
    "FuseOps",
    "FuseReaders",
    "FuseTir",
    "InlineFunctions",
    "IntegerProducts",
    "JoinDequantize",
    "Legalization",
    "LegalizeOps",
    "LegalizeRule",
    "LiftTemporaries",
    "LiftTransformParams",
    "LowerCalls",
    "MarkCopies",
    "MarkInPlace",
    "MatchKernelCalls",
    "MergeConvolutions",
    "MergeParallel",
    "MultiplyByReciprocals",
    "Normalize",
    "PackWeights",
    "PlanMemory",
    "QuantizeWeights",
    "RealProducts",
    "RemoveUnused",
    "RemoveUnusedOutputs",
    "RemoveUnusedParameters",
    "RequireElements",
    "Rewrite",
    "RewriteRule",
    "SimplifyOps",
    "SimplifyParts",
    "WidenProducts",
    "arena_bytes",
    "peak_bytes",
]
if not TYPE_CHECKING:
    __getattr__ = finder(__name__)
