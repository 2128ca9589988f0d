"""What several sets of rows add to their scores, a mask or a bias: turned once for all of them.

Lanes run over rows, and a mask's rows lie apart: each set would gather its elements one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

from unity.ir.prim_expr import Load

from ...blocks.access import depends, known_of, place, step
from ...blocks.extents import number, product
from ...blocks.nest import Nest
from ...blocks.tree import block_path
from ...schedule.index_map import IndexMap
from ...schedule.schedule import Schedule
from ..within import lay_out_stage
from .stages import Attention, Places, loops_in_order


def turn_shared(sch: Schedule, found: Attention, places: Places, names: Mapping[str, str]) -> None:
    """What lies along rows and is read between the products is copied, lanes' rows side by side.

    Args:
        sch: A schedule.
        found: The attention, whose rows have an axis.
        places: For each block, where the loops over its axes are to stand.
        names: The block of each stage; of one that sums up, the one that takes the sums.
    """
    for nest, stage in zip(found.written[:-1], found.chain.stages, strict=False):
        name = names[nest.name]
        for own in _along_rows(found, nest, stage):
            reads = [r.buffer for r in block_path(sch.func, name)[1].reads]
            if own.buffer in reads:
                _turn(
                    sch, name, reads.index(own.buffer), places[name].index(len(found.chain.outer))
                )


def _along_rows(found: Attention, nest: Nest, stage: Nest) -> list[Load]:
    """What a stage loads, as it was written, that lies along rows and belongs to several sets."""
    chain = found.chain
    assert chain.row is not None
    known = known_of((*chain.outer, chain.row, chain.inner))
    loads: dict[Load, None] = {}
    for own, load in zip(nest.loads(), stage.loads(), strict=True):
        at = place(load, known)
        sharing = product([a.extent for a in chain.outer if not depends(load, a.var)])
        along, across = step(at, chain.inner.var), step(at, chain.row.var)
        if along == 1 and across not in (0, 1) and number(sharing) != 1:
            loads[own] = None
    return [*loads]


def _turn(sch: Schedule, name: str, index: int, row: int) -> None:
    """A block reads a copy whose last axis is that over rows."""
    block = block_path(sch.func, name)[1]
    axes, ranges = tuple(a.var for a in block.axes), block.reads[index].ranges
    used = [k for k, v in enumerate(axes) if any(depends(r.begin, v) for r in ranges)]
    order = [*(k for k in used if k != row), row]
    turned = IndexMap(axes, tuple(axes[k] for k in order))
    copy = sch.reindex_cache_read(name, index, "global", turned).name
    loops, at = loops_in_order(sch, copy), [used.index(k) for k in order]
    sch.reorder(*(loops[k] for k in at))
    sch.reorder_block_iter_var(copy, at)
    lay_out_stage(sch, copy)
