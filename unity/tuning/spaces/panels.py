"""Panels: a factor of a product copied so that what a tile's steps read lies side by side.

Lanes run along a factor's columns; of a wide one each step's columns lie a whole row apart, so few
of its lines fit the first cache together, and each is on a page of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Block
from unity.ir.visit import variables
from unity.transform.blocks.tree import block_path
from unity.transform.schedule.index_map import IndexMap
from unity.transform.schedule.refs import BlockRef
from unity.transform.schedule.schedule import Schedule


def lay_out_panel(sch: Schedule, main: BlockRef, columns: int) -> BlockRef | None:
    """Copy the factor that lanes run along: panels of a tile's columns, step by step.

    Args:
        sch: The schedule.
        main: The product, a loop for each of its axes; lanes run along its last spatial axis.
        columns: Of a tile.

    Returns:
        The block that copies; None where no factor is indexed by axes alone, that one among them.

    Raises:
        UnityError: It can't be copied.
    """
    block = block_path(sch.func, main.name)[1]
    for k, axes in factors(block):
        return sch.reindex_cache_read(main, k, "global", panels(block, axes, columns))
    return None


def factors(block: Block) -> Iterator[tuple[int, list[PrimVar]]]:
    """Which reads of a product lanes run along, and by which axes they are indexed, in order.

    Those indexed by more than axes are left out: what is copied of them would be larger.
    """
    made = {w.buffer for w in block.writes}
    for k, read in enumerate(block.reads):
        begins = [r.begin for r in read.ranges if variables(r.begin)]
        axes = [x for x in begins if isinstance(x, PrimVar)]
        if read.buffer not in made and lane_axis(block) in axes and len({*axes}) == len(begins):
            yield k, axes


def lane_axis(block: Block) -> PrimVar:
    """The axis that lanes run along: the last one that nothing is summed over."""
    return [a.var for a in block.axes if a.kind == "S"][-1]


def panels(block: Block, axes: list[PrimVar], columns: int) -> IndexMap:
    """Where elements of a factor are in panels.

    Args:
        block: The product.
        axes: Of it that the factor is indexed by.
        columns: Of a panel.
    """
    lane = lane_axis(block)
    kinds = {a.var: a.kind for a in block.axes}
    outer = [v for v in axes if kinds[v] == "S" and v is not lane]
    summed = [v for v in axes if kinds[v] != "S"]
    return IndexMap(tuple(kinds), (*outer, lane // columns, *summed, lane % columns))
