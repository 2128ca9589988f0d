"""Those of Relay's passes that change a module of Relay; the others leave it to the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from unity.frontend.relay import syntax

from .common_subexpr import eliminate_common_subexpr
from .convert_layout import convert_layout
from .dead_code import eliminate_dead_code, remove_unused_functions
from .fold_constant import fold_constant
from .simplify_inference import simplify_inference

Rewrite: TypeAlias = Callable[[syntax.Module], syntax.Module]

REWRITES: Mapping[str, Rewrite] = {
    "DeadCodeElimination": eliminate_dead_code,
    "EliminateCommonSubexpr": eliminate_common_subexpr,
    "FoldConstant": fold_constant,
    "RemoveUnusedFunctions": remove_unused_functions,
    "SimplifyInference": simplify_inference,
}
"""Passes by the names that TVM gave them; `convert_layout` takes layouts besides."""
__all__ = ["REWRITES", "Rewrite", "convert_layout"]
