"""Keys and values whose rows lie far apart: copied first, those of each head side by side.

Where heads lie side by side in each token, a head's rows are a power of two apart, or a small
multiple of one, and share few sets of the second cache: blocks of queries would read them from
behind it, each row in a page of its own. 12 heads of 2,048 by 64 floats took 99 ms so, and 71 where
the heads lay one behind the other (Xeon with AMX, one thread).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unity.arith import bounds
from unity.ir.prim_expr import Compare, Load, PrimExpr, imm
from unity.machine.target import Target

from ...blocks.access import depends, known_of, place, step
from ...blocks.extents import number, product
from ...blocks.nest import Axis, Nest
from ...blocks.tree import block_path, conjunction
from ...schedule.index_map import IndexMap
from ...schedule.schedule import Schedule
from ..within import lay_out_stage
from .stages import ALONG, WITHIN, Attention, Places, loops_in_order

BLOCKS = 8
"""Blocks of queries from which on a copy is read often enough."""
LONG = 4096
"""Keys of unknown number that are worth a version of the kernel, at most: others seldom have it."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Operands of products that are to be laid together.

    Attributes:
        loads: They, as they were written.
        needs: What has to hold of sizes for that to pay; None where that is known.
    """

    loads: tuple[Load, ...]
    needs: PrimExpr | None


def operands_apart(found: Attention, rows: int, target: Target | None) -> Apart | None:
    """Keys and values that would not stay in the second cache while all blocks of rows read them.

    Args:
        found: The attention, whose rows have an axis.
        rows: Of a block.
        target: The machine.
    """
    chain = found.chain
    assert target is not None
    assert chain.row is not None
    assert chain.head.reduction is not None
    loads: list[Load] = []
    most = 0
    operands = ((0, chain.head, chain.head.reduction.axes), (-1, chain.tail, chain.columns))
    for at, stage, within in operands:
        for own, load in zip(found.written[at].loads(), stage.loads(), strict=True):
            kept = _kept(found, load, stage, within, target)
            if kept is not None:
                loads.append(own)
                most = max(most, kept)
    sizes = ((chain.inner.extent, most + 1), (chain.row.extent, BLOCKS * rows))
    needs = [Compare("ge", e, imm(least)) for e, least in sizes if number(e) is None]
    if not loads or any(_is_below(e, least) for e, least in sizes):
        return None
    if needs and most > LONG:
        return None
    return Apart(tuple(loads), conjunction(needs))


def _is_below(extent: PrimExpr, least: int) -> bool:
    """Whether an extent is never so much."""
    most = bounds(extent)[1]
    return most is not None and most < least


def _kept(
    found: Attention, load: Load, stage: Nest, within: tuple[Axis, ...], target: Target
) -> int | None:
    """How many of a head's rows stay in the cache beside as many others; None of no such load."""
    chain = found.chain
    assert chain.row is not None
    depth = number(product([a.extent for a in within]))
    if depth is None or load.predicate is not None or load.buffer in found.private:
        return None
    if depends(load, chain.row.var):
        return None
    reduced = () if stage.reduction is None else stage.reduction.axes
    apart = step(place(load, known_of((*stage.axes, *reduced))), chain.inner.var)
    if not apart or abs(apart) <= depth:
        return None
    row = depth * load.dtype.bytes
    shared = math.gcd(target.l2_bytes, abs(apart) * load.dtype.bytes)
    return int(target.l2_kept * min(1, row / shared)) // (2 * row)


def lay_together(sch: Schedule, loads: Sequence[Load], places: Places) -> None:
    """The products read copies.

    Args:
        sch: A schedule.
        loads: What is to be copied.
        places: For each block, where the loops over its axes are to stand.
    """
    for name, own in places.items():
        for load in loads:
            if any(r.buffer is load.buffer for r in block_path(sch.func, name)[1].reads):
                _copy(sch, name, load, own)


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
