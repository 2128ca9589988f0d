"""Which kernels somebody laid out: by hand, by a rule of a target's, by a record, or by default."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.stmt import Block, PrimFunc
from unity.ir.visiting.visit_stmt import walk_stmt

SCHEDULED = "scheduled"
"""The attribute of a kernel whose loops stay as they are."""


def is_scheduled(func: PrimFunc) -> bool:
    """Whether somebody laid it out."""
    return bool(func.attrs.get(SCHEDULED))


def as_scheduled(func: PrimFunc) -> PrimFunc:
    """The same, its loops to be left as they are."""
    return replace(func, attrs=func.attrs.with_(**{SCHEDULED: True}))


def awaits_layout(func: PrimFunc) -> bool:
    """Whether there is anything to lay out that nobody did."""
    return not is_scheduled(func) and has_blocks(func)


def has_blocks(func: PrimFunc) -> bool:
    """Whether there is anything that can be laid out."""
    return any(isinstance(s, Block) for s in walk_stmt(func.body))
