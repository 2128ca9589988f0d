"""What an executable asks the compiler for, while that is there: texts, schedules, libraries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from unity.runtime.image import Image

if TYPE_CHECKING:  # what only the compiler has, told to type checkers alone
    from unity.ir.stmt import PrimFunc
    from unity.transform.rules.decisions import AppliedRule
    from unity.transform.schedule.schedule import Schedule

Changes: TypeAlias = Mapping[str, Mapping[str, int | bool]]
"""Decisions of default rules by name, for a block that a rule takes."""


class Listings(Protocol):
    """What only the compiler can give, made when asked for: texts, schedules, code for others."""

    def ir(self, kernel: str | None = None) -> str:
        """The lowered module, or one kernel of it, in the language."""
        ...

    def llvm(self, kernel: str | None = None) -> str:
        """LLVM IR."""
        ...

    def asm(self, kernel: str | None = None) -> str:
        """Assembly."""
        ...

    def kernel(self, kernel: str) -> PrimFunc:
        """A kernel before it is laid out."""
        ...

    def schedule(self, kernel: str, decisions: Changes | None) -> Schedule:
        """What the default rules do to it."""
        ...

    def rules(self, kernel: str, decisions: Changes | None) -> tuple[AppliedRule, ...]:
        """Which of them take which of its blocks."""
        ...

    def export_library(self, image: Image, path: Path, threads: int) -> Path:
        """A shared library and a header for C; where the header is."""
        ...
