"""Memory that was freed, given back to the system: the C library may keep it for the process."""

from __future__ import annotations

import ctypes

MUCH = 16 << 20
"""Bytes of constants from on which a model's reading and packing leave enough behind to matter."""


def trim() -> None:
    """Give back what is free, where the C library can (``malloc_trim``).

    Cycles are not collected before: that takes half a second after a model was compiled, and arrays
    are in none of them.
    """
    try:
        release = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    release.argtypes, release.restype = [ctypes.c_size_t], ctypes.c_int
    release(0)
