"""Memory that was freed, given back to the system: the C library may keep it for the process."""

from __future__ import annotations

import ctypes
import gc

MUCH = 16 << 20
"""Bytes of constants from on which a model's reading and packing leave enough behind to matter."""


def trim() -> None:
    """Collect cycles and give back what is free, where the C library can (``malloc_trim``).

    Functions within functions that call themselves are cycles, and hold what they saw: weights as
    they were before passes laid them out anew.
    """
    gc.collect()
    try:
        release = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    release.argtypes, release.restype = [ctypes.c_size_t], ctypes.c_int
    release(0)
