"""Arrays that begin on a cache line, where constants are to lie in the end.

numpy begins large arrays 16 bytes behind a page. What is laid out anew is laid out here, so that it
need not be moved once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
import numpy.typing as npt

from unity.ir.dtype import Array

LINE = 64
"""Bytes of a cache line, and of the widest register."""


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


def aligned_copy(data: Array, dtype: npt.DTypeLike | None = None) -> Array:
    """The array in row-major order on a cache line, in another dtype if one is given."""
    made = aligned_empty(data.shape, data.dtype if dtype is None else dtype)
    made[...] = data
    return made
