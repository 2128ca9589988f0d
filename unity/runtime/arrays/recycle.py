"""Memory of large results, used again once nobody holds them.

What a C library gives for a large array it takes from the system and gives back when the array
goes: the next call meets fresh pages, each of which the system clears and maps when it is first
written to. For the 72 MiB of caches that a decoder gives after 1000 tokens that is 20 ms a call, a
third of it. So entries get such memory here, in whole cache lines. Who holds a result, a view of it
or what another library made of it holds a reference to its memory: where there is none but ours,
the memory is free. So nothing has to be done when a result goes, and a lease takes 0.4 us.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from sys import getrefcount
from threading import Lock

import numpy as np

from unity.ir.arrays.aligned import LINE, aligned_empty
from unity.ir.dtype import Array

LEAST = 1 << 17
"""Bytes from which on a result's memory is worth some microseconds: glibc's malloc maps blocks of
so many anew (M_MMAP_THRESHOLD), unless the process happened to free a larger one before. Those of
256 KiB then take 400 us, not 12 (AMD Zen 4, a busy machine), and 10, not 7, otherwise."""
GENERATIONS = 2
"""Calls whose results may lie here: where ``y = f(x)`` is repeated, the last one's is held yet."""


class Recycler:
    """The memory of one executable's results.

    >>> home = Recycler()
    >>> first = home.lease(1 << 20, 0)
    >>> place, first = first.ctypes.data, None
    >>> again = home.lease((1 << 20) - 4096, 0)  # somewhat smaller ones fit in
    >>> again.ctypes.data == place, again.nbytes
    (True, 1048576)
    """

    __slots__ = ("_before", "_blocks", "_kept", "_last", "_lock", "_now")

    def __init__(self) -> None:
        self._blocks: dict[int, list[Array]] = {}  # by size, the oldest first
        self._lock = Lock()  # of those who add to them; who looks for one needs none
        self._kept = 0  # bytes in `_blocks`
        self._last = 0  # the result asked for last, by number
        self._now = self._before = 0  # bytes asked for in this call and in the last one

    @property
    def kept(self) -> int:
        """Bytes that lie here, whether somebody holds them or not."""
        return self._kept

    def lease(self, size: int, nth: int) -> Array:
        """So many bytes or more for the nth result of a call."""
        if nth <= self._last:
            if self._kept > self._most():  # of calls that gave more
                self._locked(0)
            self._before, self._now = self._now, 0
        self._last = nth
        room = rounded(size)
        self._now += room
        found = _unheld(self._blocks.get(room, ()), _ALONE)
        return found if found is not None else self._locked(room)

    def _most(self) -> int:
        return GENERATIONS * max(self._before, self._now)

    def _locked(self, room: int) -> Array:
        """New memory, if any is wanted, and what is too much left to those who hold it.

        Collecting garbage may ask for some at any time, inside the lock as well: nothing waits.
        """
        memory = aligned_empty((room,), np.uint8)
        if self._lock.acquire(blocking=False):
            try:
                self._keep(room, memory)
            finally:
                self._lock.release()
        return memory

    def _keep(self, room: int, memory: Array) -> None:
        """Lists are made anew: others may be looking at them."""
        if room:
            self._blocks[room] = [*self._blocks.pop(room, ()), memory]
            self._kept += room
        while self._kept > self._most():
            size = next(iter(self._blocks))
            _, *rest = self._blocks.pop(size)
            self._kept -= size
            if rest:
                self._blocks = {size: rest, **self._blocks}


def _unheld(blocks: Sequence[Array], alone: int) -> Array | None:
    """The latest of some blocks that nobody holds but their list: it is in a cache.

    Of two threads that look at a block both count the other's look, or the first one has it.

    Args:
        blocks: The blocks.
        alone: The references that such a block and what it is a part of are counted to have.
    """
    for memory in reversed(blocks):
        if getrefcount(memory) + getrefcount(memory.base) == alone:
            return memory
    return None


def _count_alone() -> int:
    """What `_unheld` counts for a block that nobody holds; 0 where references can't be counted."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return 0
    blocks = [aligned_empty((LINE,), np.uint8)]
    return next((n for n in range(1, 16) if _unheld(blocks, n) is not None), 0)


@lru_cache(256)
def rounded(size: int) -> int:
    """The next size of a few in each octave, so that results that grow find what others left.

    >>> [rounded(n) for n in (1000, 1024, 1025, 1153)]
    [1024, 1024, 1152, 1280]
    """
    step = max(LINE, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


_ALONE = _count_alone()
