"""The table of schedule rules: each lays out one kind of stage, told by its structure.

The first rule that takes a stage wins (`rule.Rule`). Better rules go before more general ones.

Some rules take steps of a `Schedule` (`default.STEPS`): tails, masks and transposes are the affair
of the lowering, which treats schedules made by hand alike. The others write their loops at once.
"""

from __future__ import annotations

from unity.ir.stmt import Stmt
from unity.machine.target import Target

from ..blocks.access import parted
from ..blocks.nest import Nest
from .contraction.dot_products import dot_products
from .contraction.lane_dots import LANE_DOTS
from .contraction.matrix_tiles import MATRIX_TILES
from .contraction.packed import PACKED
from .contraction.panels import PANELS
from .contraction.plain import plain
from .contraction.streamed import streamed
from .contraction.tiled import contraction
from .convolution.blocked import BLOCKED
from .convolution.interleaved import INTERLEAVED
from .elementwise import elementwise
from .pad import PADDED
from .rule import AnyRule, Found, at_once
from .transpose import CROSSWISE

RULES: tuple[AnyRule[Nest], ...] = (
    CROSSWISE,  # read along one axis, written along another
    PADDED,  # what there is lies in runs
    at_once("elementwise", elementwise),
    INTERLEAVED,  # weights in groups for dot products
    BLOCKED,  # lanes already lie innermost, in whole registers
    MATRIX_TILES,  # columns packed for instructions that multiply tiles
    LANE_DOTS,  # the same for lanes
    PACKED,  # columns packed, rows known
    PANELS,  # columns packed
    at_once("streamed", streamed),  # nothing read twice, and too wide for one tile
    at_once("contraction", contraction),  # lanes along the output's rows, if memory runs that way
    at_once("dot_products", dot_products),  # else lanes along what is summed
    at_once("plain", plain),
)

OF_PARTS = frozenset({"streamed"})
"""Rules that want axes that are divided inside reads parted first (`parted`).

Those for weights in groups and panels read the division itself.
"""


def found_for(nest: Nest, target: Target) -> Found:
    """The first rule that takes a stage."""
    parts = parted(nest)
    for rule in RULES:
        found = rule.on(parts if rule.name in OF_PARTS else nest, target)
        if found is not None:
            return found
    raise AssertionError(f"no rule applies to {nest.name}")


def laid_out(nest: Nest, target: Target) -> Stmt:
    """A stage by the first rule that takes it."""
    return found_for(nest, target).stmt()
