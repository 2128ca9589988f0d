"""Constants on cache lines: a vector load that crosses a line costs two.

Arrays come from files and from numpy, which place them anywhere. Those that do not begin on a line
are copied to one piece of memory; the others stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity.ir.dtype import Array

LINE = 64
"""Bytes of a cache line, and of the widest register."""


def on_lines(constants: Sequence[Array]) -> tuple[Array, ...]:
    """The constants, each that is as long as a line beginning on one.

    >>> odd = np.zeros(65, np.float32)[1:]
    >>> [c.ctypes.data % LINE for c in on_lines([odd, odd + 1])]
    [0, 0]
    """
    places: dict[int, int] = {}
    end = 0
    for k, c in enumerate(constants):
        if _moves(c):
            places[k] = end
            end += -(-c.nbytes // LINE) * LINE
    room = np.empty(end + LINE, np.uint8)
    first = -room.ctypes.data % LINE
    result = list(constants)
    for k, place in places.items():
        c = constants[k]
        moved = room[first + place : first + place + c.nbytes].view(c.dtype).reshape(c.shape)
        moved[...] = c
        moved.flags.writeable = c.flags.writeable
        result[k] = moved
    return tuple(result)


def _moves(c: Array) -> bool:
    plain = type(c) is np.ndarray and c.flags.c_contiguous and not c.dtype.hasobject
    return plain and c.nbytes >= LINE and c.ctypes.data % LINE != 0
