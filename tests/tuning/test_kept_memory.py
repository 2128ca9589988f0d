"""What a measuring process frees is not asked of the system again."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

CALLS = 50
ASKING = f"""
import ctypes, resource
from unity.tuning.kept_memory import keep_freed_memory
if {{kept}}:
    keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def call():
    block = libc.malloc(3 << 20)
    ctypes.memset(block, 1, 3 << 20)
    libc.free(block)
call()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({CALLS}):
    call()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, kept: bool) -> float:
    """New pages a call, in a process whose C library gives back all that is large."""
    giving = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    command = [sys.executable, "-c", ASKING.format(kept=kept)]
    found = subprocess.run(
        command, env={**os.environ, **giving}, check=True, capture_output=True, text=True
    )
    return int(found.stdout) / CALLS


@pytest.mark.skipif(
    not (sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")),
    reason="another C library",
)
def test_what_is_freed_is_kept() -> None:
    assert faults(kept=False) > 100
    assert faults(kept=True) < 10
