"""The table of schedule rules: each lays out one kind of stage, told by its structure.

A rule takes a stage and the target and gives a statement, or None where it does not apply; the
first that applies wins. Better rules go before more general ones.

Some rules take steps of a `Schedule` (`default.STEPS`): tails, masks and transposes are the affair
of the lowering, which treats schedules made by hand alike. The others write their loops at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unity.ir.stmt import Stmt
from unity.machine.target import Target

from ..blocks.access import parted
from ..blocks.nest import Nest
from .contraction.dot_products import dot_products
from .contraction.lane_dots import lane_dots
from .contraction.matrix_tiles import matrix_tiles
from .contraction.panels import panels
from .contraction.plain import plain
from .contraction.streamed import streamed
from .contraction.tiled import contraction
from .convolution.blocked import blocked
from .convolution.interleaved import interleaved
from .elementwise import elementwise
from .pad import padded
from .transpose import crosswise


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of stage is laid out.

    Attributes:
        name: Of the rule.
        apply: Lays a stage out, or gives None.
        of_parts: Whether axes that are divided inside reads are to be parted first (`parted`);
            rules for weights in groups and panels read the division itself.
    """

    name: str
    apply: Callable[[Nest, Target], Stmt | None]
    of_parts: bool = False


RULES: tuple[Rule, ...] = (
    Rule("crosswise", crosswise),  # read along one axis, written along another
    Rule("padded", padded),  # what there is lies in runs
    Rule("elementwise", elementwise),
    Rule("interleaved", interleaved),  # weights in groups for dot products
    Rule("blocked", blocked),  # lanes already lie innermost, in whole registers
    Rule("matrix_tiles", matrix_tiles),  # columns packed for instructions that multiply tiles
    Rule("lane_dots", lane_dots),  # the same for lanes
    Rule("panels", panels),  # columns packed
    Rule("streamed", streamed, of_parts=True),  # nothing read twice, and too wide for one tile
    Rule(
        "contraction", contraction, of_parts=True
    ),  # lanes along the output's rows, if memory runs that way
    Rule("dot_products", dot_products, of_parts=True),  # else lanes along what is summed
    Rule("plain", plain, of_parts=True),
)


def chosen(nest: Nest, target: Target) -> tuple[str, Stmt]:
    """The first rule that applies to a stage, by name, and the stage as it lays it out."""
    parts = parted(nest)
    for rule in RULES:
        result = rule.apply(parts if rule.of_parts else nest, target)
        if result is not None:
            return rule.name, result
    raise AssertionError(f"no rule applies to {nest.name}")


def laid_out(nest: Nest, target: Target) -> Stmt:
    """A stage by the first rule that applies."""
    return chosen(nest, target)[1]
