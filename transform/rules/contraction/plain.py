"""Any other reduction: threads share the points, each one sums in a scalar."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.ir.prim_expr import Imm, SizeVar
from unity.ir.stmt import Stmt
from unity.machine.target import Target

from ...blocks.access import as_written, part
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...blocks.stage import stage_of
from ...schedule.schedule import Schedule
from ...tactics.reshaping import reshape
from ...tactics.result import with_result
from ...tactics.threads import share


def plain(nest: Nest, target: Target) -> Stmt | None:
    """Applies to every reduction."""
    if nest.reduction is None:
        return None
    stage = stage_of(nest)
    sch = Schedule(stage.func, target)
    try:
        schedule_plain(sch, nest, f"{nest.name}_result")
    except UnityError:
        return stage.around(stage.func.body)  # slow, but right: a step is not known to be legal
    return stage.around(sch.func.body)


def steps_of_plain(sch: Schedule, nest: Nest, behind: Sequence[str]) -> None:
    """Lay out a block as it was written, and those behind it that transform its result.

    Args:
        sch: A schedule for a target.
        nest: The stage that they are.
        behind: The names of the blocks behind.
    """
    schedule_plain(sch, nest, with_result(sch, nest.name, behind))


def schedule_plain(sch: Schedule, written: Nest, result: str) -> None:
    """Lay out a block that sums up, and the one that takes the sums, by steps of a schedule."""
    shaped = part(as_written(written))
    reshape(sch, written, shaped, result)
    nest, reduction = shaped.nest, shaped.nest.reduction
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
        share(sch, points[begin:end], count, product([a.extent for a in inside]), "statements")


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
