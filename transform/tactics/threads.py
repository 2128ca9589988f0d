"""Work shared among threads: loops in chunks that are worth a thread's time."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.prim_expr import PrimExpr
from unity.machine.machine import Work

from ..blocks.extents import number
from ..schedule.refs import LoopRef
from ..schedule.schedule import Schedule

TASKS = 8
"""Tasks for each thread, so that none has much more to do than another."""
UNEVEN = 1.1
"""How many times its fair part the thread that has most may have."""


def is_fair(length: int | None, threads: int) -> bool:
    """Whether a loop can be cut in a run for each thread, all of about the same length."""
    return length is not None and -(-length // threads) * threads <= UNEVEN * length


def enough_tasks(counts: Sequence[PrimExpr], threads: int) -> int:
    """How many loops over tasks, from the outermost, have work for all threads.

    No more of them are joined than need be: their index is divided in each iteration.
    """
    total = 1
    for k, count in enumerate(counts, 1):
        known = number(count)
        total *= known or 0
        if total >= TASKS * threads:
            return k
    return len(counts)


def share(
    sch: Schedule,
    loops: Sequence[LoopRef],
    points: PrimExpr,
    work: PrimExpr,
    grain: Work | int,
) -> LoopRef:
    """Loops shared among the threads, in chunks that are worth waking one of the machine's for.

    Args:
        sch: The schedule.
        loops: Neighbours, outermost first.
        points: How many iterations they have together.
        work: Units of work in one of them.
        grain: Units that are worth waking a thread for; the machine's of what is counted.

    Returns:
        The innermost of the loops as they are then.
    """
    assert sch.target is not None
    if sch.target.threads == 1:
        return loops[-1]
    enough = grain if isinstance(grain, int) else sch.target.machine.grain(grain)
    each = number(work)
    chunk = 1 if each is None else -(-enough // max(each, 1))
    total = number(points)
    if total is not None and total <= chunk:
        return loops[-1]
    loop = inner = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if chunk > 1 and len(loops) == 1:  # else the pool makes tasks of several
        loop, inner = sch.split(loop, [None, chunk])
    sch.parallel(loop)
    return inner
