"""The stages of a kernel as rules for several of them see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from unity.ir.prim_expr import PrimVar
from unity.ir.stmt import Buffer, Stmt, Store
from unity.ir.visit import stmt_loads, walk_stmt

from ..blocks.nest import Nest, nest_of
from ..blocks.tree import blocks_below
from ..tactics.epilogue import fused


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
        case [Nest() as first, Nest() as second] if first.output in stages.private(2) & read_by(
            second
        ):
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


@dataclass(frozen=True, slots=True)
class Part:
    """A stage, with what is done in its write-back.

    Attributes:
        stage: The stage, or a statement that is none.
        behind: The names of the stages that it does in its write-back.
    """

    stage: Nest | Stmt
    behind: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names; of what is no stage, those of its blocks."""
        if isinstance(self.stage, Nest):
            return (self.stage.name, *self.behind)
        return tuple(b.name for b in blocks_below(self.stage))


def parts_of(
    stages: Sequence[Stmt],
    temporaries: set[Buffer],
    around: Collection[PrimVar] = (),
    *,
    parted: bool = False,
) -> list[Part]:
    """The stages, each reduction with the elementwise one behind it that alone reads its result.

    Args:
        stages: The nests, in order.
        temporaries: The kernel's.
        around: The axes of a block that they stand in.
        parted: Whether sums are parted from what takes them already, which may be less than all.
    """
    nests = [nest_of(s, around) or s for s in stages]
    readers = Counter(b for stage in nests for b in read_by(stage))
    result: list[Part] = []
    for nest in nests:
        last = result[-1] if result else None
        if last is not None and isinstance(last.stage, Nest) and isinstance(nest, Nest):
            private = last.stage.output in temporaries and readers[last.stage.output] == 1
            joined = fused(last.stage, nest, padded=parted) if private else None
            if joined is not None:
                result[-1] = Part(joined, (*last.behind, nest.name))
                continue
        result.append(Part(nest))
    return result
