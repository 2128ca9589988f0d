"""What rules for reductions share: the block that takes the sums."""

from __future__ import annotations

from collections.abc import Sequence

from ..schedule.schedule import Schedule


def with_result(sch: Schedule, sums: str, behind: Sequence[str]) -> str:
    """Part a block that sums up from one that takes the sums, and does what stood behind it.

    Args:
        sch: A schedule.
        sums: The block that sums up; its sums are local from now on.
        behind: The names of the blocks behind that transform its result.

    Returns:
        The name of the block that takes the sums.
    """
    result = sch.reindex(sums, "write", 0)
    sch.set_scope(sums, 0, "local")
    for name in behind:
        sch.reverse_compute_inline(name)
    return result.name
