"""Leave to use the tile registers of AMX: Linux gives it to a process that asks, threads included.

Tiles are 8 KB of state a thread; the kernel makes room for it in signal frames only where wanted.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import lru_cache

_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XTILEDATA = 18


@lru_cache(maxsize=1)
def permit_tiles() -> bool:
    """Ask for leave, once a process (children inherit it); whether it was given."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    call = ctypes.CDLL(None).syscall
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 3
    return bool(call(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA) == 0)
