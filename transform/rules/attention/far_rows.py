"""Keys and values whose rows lie far apart: copied first, those of each head side by side.

Where heads lie side by side in each token, a head's rows are a power of two apart, or a small
multiple of one, and share few sets of the second cache: blocks of queries would read them from
behind it, each row in a page of its own. 12 heads of 2,048 by 64 floats took 99 ms so, and 71 where
the heads lay one behind the other (Xeon with AMX, one thread).
"""

from __future__ import annotations

import math

from unity.ir.prim_expr import Load
from unity.machine.target import Target

from ...blocks.access import depends, known_of, place, step
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path
from ...schedule.index_map import IndexMap
from ...schedule.schedule import Schedule
from ..within import lay_out_stage
from .stages import ALONG, WITHIN, Attention, Places, loops_in_order

BLOCKS = 8
"""Blocks of queries from which on a copy is read often enough."""


def lay_together(sch: Schedule, found: Attention, places: Places, rows: int) -> None:
    """Keys and values that would not stay in the second cache are copied for all blocks of rows.

    Args:
        sch: A schedule.
        found: The attention, whose rows have an axis.
        places: For each block, where the loops over its axes are to stand.
        rows: Of a block.
    """
    chain, target = found.chain, sch.target
    assert target is not None
    assert chain.head.reduction is not None
    if found.count is None or found.count < BLOCKS * rows:
        return
    operands = ((0, chain.head, chain.head.reduction.axes), (-1, chain.tail, chain.columns))
    for at, stage, within in operands:
        written = found.written[at]
        for own, load in zip(written.loads(), stage.loads(), strict=True):
            if _is_far(found, load, stage, within, target):
                _copy(sch, written.name, own, places[written.name])


def _is_far(
    found: Attention, load: Load, stage: Nest, within: tuple[Axis, ...], target: Target
) -> bool:
    """Whether a head's rows of a load lie apart, and in too few sets to stay in the cache."""
    chain = found.chain
    assert chain.row is not None
    keys, depth = number(chain.inner.extent), number(product([a.extent for a in within]))
    if keys is None or depth is None or load.predicate is not None or load.buffer in found.private:
        return False
    if depends(load, chain.row.var):
        return False
    reduced = () if stage.reduction is None else stage.reduction.axes
    known = known_of((*stage.axes, *reduced))
    apart = step(place(load, known), chain.inner.var)
    if not apart or abs(apart) <= depth:
        return False
    row = depth * load.dtype.bytes
    shared = math.gcd(target.l2_bytes, abs(apart) * load.dtype.bytes)
    return 2 * keys * row > target.l2_kept * min(1, row / shared)


def _copy(sch: Schedule, name: str, own: Load, at: list[int]) -> None:
    """A block reads a copy whose rows lie one behind the other; of heads that are shared none."""
    block = block_path(sch.func, name)[1]
    index = next(k for k, r in enumerate(block.reads) if r.buffer is own.buffer)
    axes = [a.var for a in block.axes]
    begins = [r.begin for r in block.reads[index].ranges]
    if any(depends(b, v) and b is not v for b in begins for v in axes):
        return
    used = [k for k, v in enumerate(axes) if any(b is v for b in begins)]
    order = sorted(used, key=lambda k: WITHIN - 1 if at[k] == ALONG else at[k])
    map_to = IndexMap(tuple(axes), tuple(axes[k] for k in order))
    copy = sch.reindex_cache_read(name, index, "global", map_to).name
    loops, turned = loops_in_order(sch, copy), [used.index(k) for k in order]
    if turned != sorted(turned):
        sch.reorder(*(loops[k] for k in turned))
        sch.reorder_block_iter_var(copy, turned)
    lay_out_stage(sch, copy)
