"""What a program changed of the compiler in its process: what is kept on disk is of none of it."""

from __future__ import annotations

INTRINSICS = "tensor intrinsics"
OPERATORS = "operators and converters"
_CHANGED: set[str] = set()


def changed(what: str) -> None:
    """Note that a program gave a kind of target another backend, or added to the others here."""
    _CHANGED.add(what)


def is_changed(*whats: str) -> bool:
    """Whether one changed any of these."""
    return not _CHANGED.isdisjoint(whats)
