"""Which kinds of targets a program changed in its process: what is kept on disk is not of those."""

from __future__ import annotations

_CHANGED: set[str] = set()


def changed(kind: str) -> None:
    """Note that a program gave a kind of target another backend than its package has."""
    _CHANGED.add(kind)


def is_changed(kind: str) -> bool:
    """Whether one did."""
    return kind in _CHANGED
