"""The fork-join thread pool that parallel loops run on, as an LLVM module of its own.

A process links it once; kernels call it by name:

- ``void unity_parallel_for(ptr task, ptr env, i64 n, i32 limit)`` calls ``task(env, t, n)`` for
  each ``t < n``, on `limit` threads at most, and returns when all are done;
- ``void unity_set_threads(i32 threads, i32 spin_us)``: how many there are, the caller included; a
  negative `spin_us` means 1 ms of spinning before a worker sleeps;
- ``i32 unity_thread_count()`` and ``i32 unity_workers()``: the wish, and the threads that exist.

How many of them a program may use is its own affair: each one is linked with a copy of `LIMIT`.

The library must stay loaded while workers exist. Where there are no threads (bare metal, wasm,
systems other than Linux) the same functions run the tasks in order.
"""

from __future__ import annotations

from unity.machine.target import Target

from ..abilities import abilities
from .serial import SERIAL
from .threaded import THREADED

POOL_SYMBOLS = (
    "unity_parallel_for",
    "unity_set_threads",
    "unity_thread_count",
    "unity_workers",
)
LIMIT_SYMBOLS = ("unity_thread_limit", "unity_limit_threads")
_OPEN, _ACTIVE_BITS, _MAX_THREADS, _LINE = 1024, 11, 1024, 64
_FIELDS = {
    # Offsets in the state page; what different threads write lies on different cache lines.
    "word": 0,
    "fn": 128,
    "env": 136,
    "n": 144,
    "cpu": 152,
    "limit": 156,
    "parts": 160,
    "lock": 192,
    "sleepers": 256,
    "ready": 320,
    "pid": 324,
    "slots": 384,
    "ranges": 4096,  # a line each: the next task, the end
}
_PAGE = _FIELDS["ranges"] + _MAX_THREADS * _LINE
_WIPE_ON_FORK = 18
_REFUSED_ADVICE = 9999
_FUTEX = {"x86_64": 202, "aarch64": 98}
_PAUSE = {
    "x86_64": "call void @llvm.x86.sse2.pause()",
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
}


def pool_text(target: Target, *, pid_check: bool = False) -> str:
    """The pool's LLVM IR for a target.

    Args:
        target: Where it is to run.
        pid_check: Behave as on a kernel that cannot wipe memory on fork (for tests).
    """
    can = abilities(target)
    if not can.pool:
        return SERIAL
    constants: dict[str, int | str] = {
        "DECL": "",
        "PAUSE": _PAUSE[can.arch],
        "FUTEX": _FUTEX[can.arch],
        "PAGE": _PAGE,
        "LINE": _LINE,
        "ACTIVE": _ACTIVE_BITS,
        "OPEN": _OPEN,
        "MASK": _OPEN - 1,
        "CLOSED": ~_OPEN,
        "MAX": _MAX_THREADS,
        "PIDCHECK": int(pid_check),
        "WIPE": _REFUSED_ADVICE if pid_check else _WIPE_ON_FORK,
        "ONES": ", ".join(["i64 -1"] * 16),
    }
    text = THREADED
    for name, value in constants.items():
        text = text.replace(f"<{name}>", str(value))
    for name, offset in _FIELDS.items():
        text = text.replace(f"<at {name}>", str(offset))
    return text


LIMIT = """
@unity_limit = internal global i32 1

define i32 @unity_thread_limit() nounwind {
  %n = load atomic i32, ptr @unity_limit monotonic, align 4
  ret i32 %n
}

define void @unity_limit_threads(i32 %threads) nounwind {
  store atomic i32 %threads, ptr @unity_limit monotonic, align 4
  ret void
}
"""
"""How many threads the kernels linked with it may use, as an LLVM module."""
