"""Any other reduction: threads share the points, each one sums in a scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.prim_expr import Imm, SizeVar
from unity.machine.target import Target

from ...blocks.access import Reshaped, as_written, part
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.threads import share
from ..rule import by_steps, worth


@dataclass(frozen=True, slots=True)
class PlainSums:
    """A reduction.

    Attributes:
        written: It as it was written.
        shaped: It with axes that are divided inside reads parted.
    """

    written: Nest
    shaped: Reshaped


@dataclass(frozen=True, slots=True)
class PointLoops:
    """The decisions.

    Attributes:
        grain: Statements that are worth waking a thread for.
    """

    grain: int


def _match(nest: Nest, _target: Target) -> PlainSums | None:
    """Any reduction."""
    return None if nest.reduction is None else PlainSums(nest, part(as_written(nest)))


def schedule_plain(sch: Schedule, sums: PlainSums, how: PointLoops, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    reshape(sch, sums.written, sums.shaped, result)
    nest, reduction = sums.shaped.nest, sums.shaped.nest.reduction
    assert reduction is not None
    loops = sch.get_loops(nest.name)
    points, steps = loops[: len(nest.axes)], loops[len(nest.axes) :]
    if points:
        sch.reverse_compute_at(result, points[-1])
        sch.store_at(nest.name, 0, points[-1])
    sch.decompose_reduction(nest.name, steps[0])
    if points:
        begin, end = _fusible(nest.axes)
        inside = (*nest.axes[end:], *reduction.axes)
        count = product([a.extent for a in nest.axes[begin:end]])
        share(sch, points[begin:end], count, product([a.extent for a in inside]), how.grain)


def _fusible(axes: Sequence[Axis]) -> tuple[int, int]:
    """The first of the axes that may be fused, and the one behind them.

    The fused index is divided by all their extents but the first. That points differ then is known
    where these are plain sizes, and not where they are computed of others. An axis of one point
    before them is no use.
    """
    begin = next((k for k, a in enumerate(axes) if number(a.extent) != 1), 0)
    end = begin + 1
    while end < len(axes) and isinstance(axes[end].extent, Imm | SizeVar):
        end += 1
    return begin, end


PLAIN = by_steps(
    "plain",
    _match,
    decide=lambda _, target: PointLoops(target.machine.grain("statements")),
    legal=lambda *_: {"grain": worth("statements")},
    nest=lambda sums: sums.written,
    steps=schedule_plain,
)
