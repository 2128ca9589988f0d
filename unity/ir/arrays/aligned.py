"""Arrays that begin on a cache line, where constants are to lie in the end.

numpy begins large arrays 16 bytes behind a page. What is laid out anew is laid out here, so that it
need not be moved once more.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from contextlib import suppress
from math import prod

import numpy as np
import numpy.typing as npt

from unity.ir.dtype import Array

LINE = 64
"""Bytes of a cache line, and of the widest register."""

PAGED = 1 << 17
"""Bytes from which on a constant has pages of its own."""

HUGE_PAGE = 1 << 21
"""Bytes of a large page, of which fewer are looked up."""


def places(sizes: Iterable[int]) -> list[int]:
    """Where pieces begin that lie behind each other, each on a cache line.

    >>> places([100, 64, 0, 1])
    [0, 128, 192, 192]
    """
    found: list[int] = []
    end = 0
    for size in sizes:
        found.append(-(-end // LINE) * LINE)
        end = found[-1] + size
    return found


def aligned_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array on a cache line, its elements not set.

    >>> aligned_empty((3, 100), np.float32).ctypes.data % LINE
    0
    """
    kind: np.dtype[np.generic] = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    room = np.empty(size + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size].view(kind).reshape(shape)


def paged_empty(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array for a constant, on a cache line, its elements not set.

    A large one has pages of its own, which go back to the system as soon as it is freed: among what
    else is allocated while compiling, weights would leave holes that the next ones do not fit in.
    """
    kind: np.dtype[np.generic] = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    if size < PAGED or not hasattr(mmap, "MAP_PRIVATE"):
        return aligned_empty(shape, kind)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # the system has none
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, kind).reshape(shape)


def paged_copy(data: Array) -> Array:
    """The array in row-major order, as `paged_empty` places it."""
    made = paged_empty(data.shape, data.dtype)
    made[...] = data
    return made
