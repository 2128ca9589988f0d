"""A failing program made smaller, as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .kind import Kind, P, sort_of
from .running import failure_of

T = TypeVar("T")


def shrunk(kind: Kind[P], program: P, failure: str, seconds: float = 180.0) -> tuple[P, str]:
    """The smallest program found, and how it fails.

    Each smaller program is judged in a process of its own, so that crashes shrink as well.

    Args:
        kind: Of the program.
        program: Which fails.
        failure: How it does.
        seconds: When to be content with what there is.
    """
    until, wanted = time.monotonic() + seconds, sort_of(failure)
    found = True
    while found and time.monotonic() < until:
        found = False
        for candidate in kind.smaller(program):
            said = failure_of(kind, candidate)
            if said is not None and sort_of(said) == wanted:
                program, failure, found = candidate, said, True
                break
            if time.monotonic() > until:
                break
    return program, failure


def parts_removed(items: Sequence[T], least: int = 1) -> Iterator[tuple[T, ...]]:
    """The sequence without one of its halves, quarters and so on: the cuts of ddmin.

    >>> list(parts_removed("abc"))
    [('c',), ('a', 'b'), ('b', 'c'), ('a', 'c'), ('a', 'b')]
    """
    size = (len(items) + 1) // 2
    while size >= least and items:
        for begin in range(0, len(items), size):
            yield (*items[:begin], *items[begin + size :])
        if size == 1:
            return
        size = (size + 1) // 2


def tried(make: Callable[[], T], refused: type[Exception]) -> T | None:
    """What `make` gives; None where it is refused."""
    try:
        return make()
    except refused:
        return None
