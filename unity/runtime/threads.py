"""How many threads a program's kernels use: the process's pool, and each program's own limit."""

from __future__ import annotations

import ctypes

from unity.errors import UnityError

from .linking.link import Library

LIMIT_SYMBOL = "unity_limit_threads"
"""What a program exports to be told its limit."""


class Threads:
    """A program's number of threads, the caller included; the pool grows to the largest one."""

    __slots__ = ("_count", "_library", "_pool")

    def __init__(self, pool: Library, library: Library, count: int) -> None:
        self._pool, self._library = pool, library
        self.count = count

    @property
    def count(self) -> int:
        """How many there may be."""
        return self._count

    @count.setter
    def count(self, count: int) -> None:
        if not isinstance(count, int) or count < 1:
            raise UnityError(f"threads={count!r}", hint="a whole number, at least 1")
        self._count = count
        present = ctypes.CFUNCTYPE(ctypes.c_int32)(self._pool["unity_thread_count"])
        if count > present():
            grow = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32)
            grow(self._pool["unity_set_threads"])(count, -1)
        limit = ctypes.CFUNCTYPE(None, ctypes.c_int32)
        limit(self._library[LIMIT_SYMBOL])(count)
