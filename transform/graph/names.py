"""Readable names for the functions that the compiler adds to a module."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 80
"""Names of fused kernels are cut here."""
_OF_DIMS = frozenset({"max", "min"})
"""What printed sizes call: a function of such a name would stand for it when they are read back."""


class Names:
    """Gives out names that are free, numbering those that were taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*_OF_DIMS, *taken}
        self._next: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """The name itself, or with a number at its end."""
        wanted = wanted[:LONGEST].rstrip("_")
        name, count = wanted, self._next.get(wanted, 1)
        while name in self._taken:
            name = f"{wanted}_{count}"
            count += 1
        self._next[wanted] = count
        self._taken.add(name)
        return name
