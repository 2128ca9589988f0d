"""The stages within a block, each laid out by the rule that takes it: for rules of several stages.

What stands in a block is a kernel of its own (`blockize_body`), so a rule takes the same steps
there as anywhere. What is around the block runs on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..blocks.nest import Nest, opened
from ..blocks.tree import block_path
from ..schedule.schedule import Schedule
from .rule import AnyRule, Found, first
from .stages import Stages, parts_of
from .table import found_for


def lay_out_within(sch: Schedule, block: str, groups: Sequence[AnyRule[Stages]] = ()) -> None:
    """Lay out the stages within a block by rules, on one thread.

    Args:
        sch: A schedule.
        block: The block: stages whose sums are parted from what takes them.
        groups: Rules for several stages that are asked before those for one.
    """
    whole = sch.target
    assert whole is not None
    temporaries, stages = opened(block_path(sch.func, block)[1].body)
    parts = parts_of(stages, {*temporaries})
    sch.target = alone = replace(whole, threads=1)
    try:
        at = 0
        while at < len(parts):
            here = Stages([p.stage for p in parts], at, {*temporaries})
            stage = parts[at].stage
            assert isinstance(stage, Nest)
            found = _on_one_thread(first(groups, here, alone, []) or found_for(stage, alone))
            names = [p.names for p in parts[at : at + found.count]]
            if found.take is None:
                sch.lay_out(found.rule, [n for each in names for n in each], found.decisions)
            else:
                found.take(sch, names)
            at += found.count
    finally:
        sch.target = whole


def _on_one_thread(found: Found) -> Found:
    """A rule, no work worth another thread to it."""
    grain = found.legal().get("grain")
    return found if grain is None else found.with_({"grain": grain.values[-1]})
