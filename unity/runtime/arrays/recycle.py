"""Memory of large results, used again once nobody holds them.

What a C library gives for a large array it takes from the system and gives back when the array
goes: the next call meets fresh pages, each of which the system clears and maps when it is first
written to. For the 72 MiB of caches that a decoder gives after 1000 tokens that is 20 ms a call, a
third of it. So entries get such memory here, in whole cache lines, and an executable keeps as much
as the results of one call take.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any

import numpy as np

from unity.ir.arrays.aligned import LINE, aligned_empty
from unity.ir.dtype import Array

LEAST = 1 << 17
"""Bytes from which on a result's memory is worth some microseconds: glibc's malloc maps blocks of
so many anew (M_MMAP_THRESHOLD), unless the process happened to free a larger one before. Those of
256 KiB then take 400 us, not 12 (AMD Zen 4, a busy machine), and 10, not 7, otherwise."""


class Recycler:
    """What the results of one executable leave behind.

    >>> home = Recycler()
    >>> first = home.lease(1 << 20, 0)
    >>> place, first = first.ctypes.data, None
    >>> again = home.lease((1 << 20) - 4096, 0)  # somewhat smaller ones fit in
    >>> again.ctypes.data == place, again.nbytes
    (True, 1044480)
    """

    __slots__ = ("_back", "_before", "_free", "_kept", "_last", "_lock", "_now")

    def __init__(self) -> None:
        # Collecting garbage may bring memory back at any time, inside the lock as well: it waits
        # here then. So nothing waits for the lock; who doesn't get it does without.
        self._back: deque[Array] = deque()
        self._lock = Lock()
        self._free: dict[int, list[Array]] = {}  # by size, the one that came first is the oldest
        self._kept = 0  # bytes in `_free`
        self._last = 0  # the result asked for last, by number
        self._now = self._before = 0  # bytes asked for in this call and in the last one

    @property
    def kept(self) -> int:
        """Bytes that wait to be used again."""
        return self._kept

    def lease(self, size: int, nth: int) -> Array:
        """Bytes for the nth result of a call, given back when nothing refers to them any more."""
        room = rounded(size)
        memory = None
        if self._lock.acquire(blocking=False):
            try:
                self._sort()
                if nth <= self._last:
                    self._before, self._now = self._now, 0
                self._last = nth
                self._now += room
                memory = self._taken(room) if room in self._free else None
            finally:
                self._lock.release()
        if memory is None:
            memory = aligned_empty((room,), np.uint8)
        return np.asarray(_Lease(memory, size, self))

    def take_back(self, memory: Array) -> None:
        """Keep memory for the next lease of its size, and let go what is too much."""
        self._back.append(memory)
        if self._lock.acquire(blocking=False):
            try:
                self._sort()
            finally:
                self._lock.release()

    def _sort(self) -> None:
        """Put what came back in its place; the caller has the lock."""
        while self._back:
            memory = self._back.popleft()
            self._free.setdefault(memory.nbytes, []).append(memory)
            self._kept += memory.nbytes
        while self._kept > max(self._before, self._now):
            self._taken(next(iter(self._free)))

    def _taken(self, room: int) -> Array:
        memory = self._free[room].pop()
        if not self._free[room]:
            del self._free[room]
        self._kept -= room
        return memory


class _Lease:
    """Holds memory as long as an array over it lives."""

    __slots__ = ("__array_interface__", "_home", "_memory")

    def __init__(self, memory: Array, size: int, home: Recycler) -> None:
        self._memory, self._home = memory, home
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (memory.ctypes.data, False),
        }

    def __del__(self) -> None:
        self._home.take_back(self._memory)


def rounded(size: int) -> int:
    """The next size of a few in each octave, so that results that grow find what others left.

    >>> [rounded(n) for n in (1000, 1024, 1025, 1153)]
    [1024, 1024, 1152, 1280]
    """
    step = max(LINE, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step
