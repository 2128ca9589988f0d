"""Memories of a machine that kernels place buffers in, beside those that every machine has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from unity.arguments import public_class
from unity.errors import UnityError

NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)+")
"""What a backend may call a scope: words with dots between them; ours have none, but `amx.tile`."""


@public_class
@dataclass(frozen=True, slots=True)
class MemoryScope:
    """A memory that a backend gives its targets: a scratchpad, the registers of a unit.

    Attributes:
        name: As kernels write it, with a dot: ``acme.sram``.
        bytes: How much of it a thread of a kernel has.
    """

    name: str
    bytes: int

    def __post_init__(self) -> None:
        """Refuse what is none.

        Raises:
            UnityError: The name has no dot, or there is nothing of it.
        """
        if NAME.fullmatch(self.name) is None:
            raise UnityError(
                f"MemoryScope: {self.name!r}", hint="words with a dot between them: acme.sram"
            )
        if self.bytes < 1:
            raise UnityError(
                f"MemoryScope: {self.name!r} has bytes={self.bytes}", hint="at least 1"
            )
