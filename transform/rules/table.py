"""The table of schedule rules: each lays out one kind of stage, told by its structure.

The first rule that takes a stage wins (`rule.Rule`). Better rules go before more general ones.

All take steps of a `Schedule` (`rule.by_steps`): tails, masks and transposes are the affair of the
lowering, which treats schedules made by hand alike.
"""

from __future__ import annotations

from collections.abc import Collection

from unity.ir.stmt import Stmt
from unity.machine.target import Target

from ..blocks.nest import Nest
from .contraction.dot_products import DOT_PRODUCTS
from .contraction.lane_dots import LANE_DOTS
from .contraction.matrix_tiles import MATRIX_TILES
from .contraction.packed import PACKED
from .contraction.plain import PLAIN
from .contraction.streamed import STREAMED
from .contraction.tiled import CONTRACTION
from .contraction.windows import WINDOWS
from .convolution.blocked import BLOCKED
from .convolution.gathered import GATHERED
from .convolution.interleaved import INTERLEAVED
from .convolution.interleaved_lanes import INTERLEAVED_LANES
from .elementwise import ELEMENTWISE
from .fallback import AS_WRITTEN
from .pad import PAD
from .rule import AnyRule, Found, first_of
from .transpose import TRANSPOSE

RULES: tuple[AnyRule[Nest], ...] = (
    TRANSPOSE,  # read along one axis, written along another
    PAD,  # what there is lies in runs
    ELEMENTWISE,
    INTERLEAVED,  # weights in groups for instructions that multiply tiles
    INTERLEAVED_LANES,  # the same for lanes
    GATHERED,  # lanes already lie innermost; short lines, of an unknown number of pixels
    BLOCKED,  # any others, in whole registers
    MATRIX_TILES,  # columns packed for instructions that multiply tiles
    LANE_DOTS,  # the same for lanes
    PACKED,  # columns packed
    WINDOWS,  # windows of the plain layout, which share nothing but what they see
    STREAMED,  # nothing read twice, and too wide for one tile
    CONTRACTION,  # lanes along the output's rows, if memory runs that way
    DOT_PRODUCTS,  # else lanes along what is summed
    PLAIN,
    AS_WRITTEN,  # no step is known to be legal
)


def found_for(nest: Nest, target: Target, barred: Collection[str] = ()) -> Found:
    """The first rule that takes a stage, of all but some; the last one takes any."""
    asked = [rule for rule in RULES if rule.name not in barred or rule is AS_WRITTEN]
    return first_of(asked, nest, target)


def laid_out(nest: Nest, target: Target) -> Stmt:
    """A stage by the first rule that takes it."""
    return found_for(nest, target).stmt()
