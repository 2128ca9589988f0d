"""What a schedule hands out for blocks, loops and sampled numbers; they survive rewrites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeAlias


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block, by its name; a schedule keeps the names of blocks distinct."""

    name: str


@dataclass(frozen=True, slots=True)
class LoopRef:
    """A loop, by a token that the schedule maps to the loop's variable."""

    token: str


class Decision(int):
    """A sampled number; where it is used, a trace records that, not the number."""

    token: str

    def __new__(cls, value: int, token: str) -> Self:
        """The number under a token."""
        made = super().__new__(cls, value)
        made.token = token
        return made


AnyBlock: TypeAlias = BlockRef | str
Name: TypeAlias = str
"""Letters, digits, underscores and dots."""
Memory: TypeAlias = str
"""One of `unity.ir.marks.SCOPES`, or one that the target's backend names."""
