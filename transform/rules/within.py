"""The stages within a block, each laid out by the rule that takes it: for rules of several stages.

What stands in a block is a kernel of its own (`blockize_body`), so a rule takes the same steps
there as anywhere. What is around the block runs on threads.
"""

from __future__ import annotations

from dataclasses import replace

from ..blocks.nest import Nest, opened
from ..blocks.tree import block_path
from ..schedule.schedule import Schedule
from .rule import Found
from .stages import parts_of
from .table import found_for


def lay_out_within(sch: Schedule, block: str) -> None:
    """Lay out the stages within a block by rules for one stage, on one thread.

    Args:
        sch: A schedule.
        block: The block: stages whose sums are parted from what takes them.
    """
    whole = sch.target
    assert whole is not None
    temporaries, stages = opened(block_path(sch.func, block)[1].body)
    sch.target = alone = replace(whole, threads=1)
    try:
        for part in parts_of(stages, {*temporaries}):
            assert isinstance(part.stage, Nest)
            found = _on_one_thread(found_for(part.stage, alone))
            if found.take is None:
                sch.lay_out(found.rule, part.names, found.decisions)
            else:
                found.take(sch, part.names[-1])
    finally:
        sch.target = whole


def _on_one_thread(found: Found) -> Found:
    """A rule, no work worth another thread to it."""
    grain = found.legal().get("grain")
    return found if grain is None else found.with_({"grain": grain.values[-1]})
