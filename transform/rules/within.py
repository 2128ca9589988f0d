"""The stages within a block, each laid out by the rule that takes it: for rules of several stages.

What stands in a block is a kernel of its own (`blockize_body`), so a rule takes the same steps
there as anywhere. What is around the block runs on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from unity.ir.stmt import Block, PrimFunc, Stmt
from unity.ir.visit import stmt_children

from ..blocks.nest import Nest, opened
from ..blocks.tree import NOTHING, Path, all_blocks, block_path, replaced, scope_path, sequence
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
    whole, target = sch.func, sch.target
    assert target is not None
    path, around = block_path(whole, block)
    temporaries, stages = opened(around.body)
    parts = parts_of(stages, {*temporaries}, [a.var for a in around.axes], parted=True)
    sch.target = alone = replace(target, threads=1)
    sch.func = _on_the_way(whole, path)
    try:
        at = 0
        while at < len(parts):
            here = Stages([p.stage for p in parts], at, {*temporaries})
            stage = parts[at].stage
            assert isinstance(stage, Nest)
            found = _on_one_thread(first(groups, here, alone, []) or found_for(stage, alone))
            names = [p.names for p in parts[at : at + found.count]]
            found.take(sch, names)
            at += found.count
        sch.func = replaced(whole, [(around, block_path(sch.func, block)[1])])
    finally:
        sch.target = target


def lay_out_stage(sch: Schedule, name: str) -> None:
    """Lay out a stage by the rule that takes it.

    Args:
        sch: A schedule.
        name: Its first block. Sums are parted from what takes them.
    """
    assert sch.target is not None
    temporaries, stages = opened(scope_path(block_path(sch.func, name)[0])[0])
    part = next(p for p in parts_of(stages, {*temporaries}, parted=True) if p.names[0] == name)
    assert isinstance(part.stage, Nest)
    found = found_for(part.stage, sch.target)
    found.take(sch, [part.names])


def _on_the_way(func: PrimFunc, path: Path) -> PrimFunc:
    """The prim func with what is on a path, and of what stands beside it the names of blocks.

    Steps within a block see nothing else: the less there is, the sooner they are taken.
    """
    changes: list[tuple[Stmt, Stmt]] = []
    for s, below in pairwise(path):
        if not isinstance(s, Block):
            changes += [(x, _names_of(x)) for x in stmt_children(s) if x is not below]
    return replaced(func, changes)


def _names_of(s: Stmt) -> Stmt:
    """The blocks of a statement, empty."""
    return sequence([Block(b.name, (), (), (), NOTHING) for b in all_blocks(s)])


def _on_one_thread(found: Found) -> Found:
    """A rule, no work worth another thread to it."""
    grain = found.legal().get("grain")
    return found if grain is None else found.with_({"grain": grain.values[-1]})
