"""A reduction over other axes than it was written over, as steps: axes parted and joined."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import Binary, PrimExpr, PrimVar

from ..blocks.access import Reshaped, all_axes
from ..blocks.nest import Axis, Nest
from ..schedule.index_map import IndexMap
from ..schedule.schedule import Schedule


def joining(axes: Sequence[Axis], groups: Sequence[Sequence[int]]) -> IndexMap:
    """A map that makes each group of axes one, the last of a group running fastest.

    Args:
        axes: All of them.
        groups: Their positions.
    """
    at = [PrimVar(a.var.name) for a in axes]
    outputs: list[PrimExpr] = []
    for first, *rest in groups:
        whole: PrimExpr = at[first]
        for k in rest:
            whole = Binary("add", Binary("mul", whole, axes[k].extent), at[k])
        outputs.append(whole)
    return IndexMap(tuple(at), tuple(outputs))


def reshape(
    sch: Schedule, written: Nest, shaped: Reshaped, result: str, sums: str | None = None
) -> None:
    """Lay a block that sums up, its sums, and the block that takes them out over other axes.

    Args:
        sch: The schedule.
        written: The stage as it was written.
        shaped: The stage over the axes that are wanted.
        result: The block that takes the sums.
        sums: The one that sums up; None where it bears the stage's name.
    """
    sums = sums or written.name
    before = tuple(a.var for a in all_axes(written))
    if shaped.places == before:
        return
    sch.transform_block_layout(sums, IndexMap(before, shaped.places))
    points = before[: len(written.axes)]
    spatial = IndexMap(points, shaped.places[: len(shaped.nest.axes)])
    if spatial.outputs != points:
        sch.transform_block_layout(result, spatial)
        sch.transform_layout(sums, 0, spatial)
