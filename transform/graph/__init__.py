"""Passes over graph functions, from A-normal form to planned memory: one pass a file."""

from .convert_layout import ConvertLayout
from .convert_precision import ConvertPrecision
from .convert_transposed import ConvertTransposed
from .convert_winograd import ConvertWinograd
from .cse import EliminateCommonSubexpr
from .dce import EliminateDeadCode
from .fold import FoldConstants
from .fold_batch_norm import FoldBatchNorm
from .fuse_attention import FuseAttention
from .fuse_ops import FuseOps
from .fuse_readers import FuseReaders
from .fuse_tir import FuseTir
from .inline_functions import InlineFunctions
from .legalization import Legalization, LegalizeRule
from .legalize import LegalizeOps
from .lift_temporaries import LiftTemporaries
from .lower_calls import LowerCalls
from .mark_copies import MarkCopies
from .mark_in_place import MarkInPlace
from .merge_convolutions import MergeConvolutions
from .merge_parallel import MergeParallel
from .normalize import Normalize
from .pack_weights import PackWeights
from .plan_memory import PlanMemory, arena_bytes, peak_bytes
from .reciprocals import MultiplyByReciprocals
from .rewrite import Rewrite
from .rewrite_rule import RewriteRule
from .simplify import SimplifyOps, SimplifyParts

__all__ = [
    "ConvertLayout",
    "ConvertPrecision",
    "ConvertTransposed",
    "ConvertWinograd",
    "EliminateCommonSubexpr",
    "EliminateDeadCode",
    "FoldBatchNorm",
    "FoldConstants",
    "FuseAttention",
    "FuseOps",
    "FuseReaders",
    "FuseTir",
    "InlineFunctions",
    "Legalization",
    "LegalizeOps",
    "LegalizeRule",
    "LiftTemporaries",
    "LowerCalls",
    "MarkCopies",
    "MarkInPlace",
    "MergeConvolutions",
    "MergeParallel",
    "MultiplyByReciprocals",
    "Normalize",
    "PackWeights",
    "PlanMemory",
    "Rewrite",
    "RewriteRule",
    "SimplifyOps",
    "SimplifyParts",
    "arena_bytes",
    "peak_bytes",
]
