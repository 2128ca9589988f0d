"""The stages of a kernel as rules for several of them see it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from unity.ir.stmt import Buffer, Stmt, Store
from unity.ir.visit import stmt_loads, walk_stmt

from ..blocks.nest import Nest


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a kernel, from one of them on.

    Attributes:
        every: All of them; what is no stage is a statement.
        at: The one.
        temporaries: The kernel's.
    """

    every: Sequence[Nest | Stmt]
    at: int
    temporaries: AbstractSet[Buffer]

    @property
    def rest(self) -> Sequence[Nest | Stmt]:
        """The stages from that one on."""
        return self.every[self.at :]

    def private(self, count: int) -> set[Buffer]:
        """The temporaries that none but the next `count` stages touch."""
        others = (*self.every[: self.at], *self.every[self.at + count :])
        return {*self.temporaries} - {b for s in others for b in touched(s)}


def pair_of(stages: Stages) -> tuple[Nest, Nest] | None:
    """A stage and the next one, which alone reads its result; None if it is no such pair."""
    match stages.rest[:2]:
        case [Nest() as first, Nest() as second] if first.output in stages.private(2):
            return first, second
        case _:
            return None


def touched(stage: Nest | Stmt) -> set[Buffer]:
    """The buffers that a stage reads or stores to."""
    if isinstance(stage, Nest):
        return read_by(stage) | {x.buffer for x in stage.stores()}
    return read_by(stage) | {s.buffer for s in walk_stmt(stage) if isinstance(s, Store)}


def read_by(stage: Nest | Stmt) -> set[Buffer]:
    """The buffers that a stage reads."""
    if isinstance(stage, Nest):
        return {x.buffer for x in stage.loads()}
    return {x.buffer for s in walk_stmt(stage) for x in stmt_loads(s)}
