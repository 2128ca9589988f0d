"""Memory that a measuring process frees stays with it, as it does in a program that runs for long.

Else the C library gives it back to the system or not by what else lies around it: a kernel that
asks for megabytes gets new pages at each call in one process and none in the next, and takes ten
times as long (max_pool that pads first, 813 pages, a virtual machine on AMD Zen 3: 2.8 ms and 0.3).
Of that a search learns nothing.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What `mallopt` calls them in GNU's C library."""
_MOST_KEPT, _LARGEST = 1 << 30, 32 << 20
"""Bytes at the heap's end that are kept; of one block, the most that may be asked of it there."""


def keep_freed_memory() -> None:
    """Keep what is freed from now on, where the C library can be told to (``mallopt``)."""
    try:
        told = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    told.argtypes, told.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    told(_TRIM_THRESHOLD, _MOST_KEPT)
    told(_MMAP_THRESHOLD, _LARGEST)
