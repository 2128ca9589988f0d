"""The thread pool: every task once, through nesting, concurrent callers, resizing and fork."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unity.codegen.llvm import POOL_SYMBOLS, host_target, pool_text
from unity.codegen.llvm.machine import compile_text
from unity.codegen.llvm.pool.serial import SERIAL
from unity.runtime.linking.link import Library, link

HOST = host_target()
_TASKS = """
define void @count(ptr %e, i64 %t, i64 %n) nounwind {
  %p = getelementptr i64, ptr %e, i64 %t
  %x = atomicrmw add ptr %p, i64 1 monotonic
  ret void
}

define void @nested(ptr %e, i64 %t, i64 %n) nounwind {
  call void @unity_parallel_for(ptr @count, ptr %e, i64 10, i32 1024)
  ret void
}

; raises the second number to how many are inside at a time, the first one
define void @crowd(ptr %e, i64 %t, i64 %n) nounwind {
entry:
  %most = getelementptr i64, ptr %e, i64 1
  %others = atomicrmw add ptr %e, i64 1 seq_cst
  %all = add i64 %others, 1
  %m = atomicrmw max ptr %most, i64 %all seq_cst
  br label %stay
stay:
  %i = phi i32 [ 0, %entry ], [ %i1, %stay ]
  %p = load atomic i64, ptr %most acquire, align 8
  %i1 = add i32 %i, 1
  %more = icmp slt i32 %i1, 3000
  br i1 %more, label %stay, label %out
out:
  %x = atomicrmw sub ptr %e, i64 1 seq_cst
  ret void
}
"""


class Pool:
    """A pool of its own, beside the process's, and tasks that count."""

    def __init__(self, text: str) -> None:
        made = compile_text(text + _TASKS, HOST, "full")
        self.library: Library = link([made.object], [*POOL_SYMBOLS, "count", "nested", "crowd"])
        void, i32 = None, ctypes.c_int32
        address, i64 = ctypes.c_void_p, ctypes.c_int64
        run = ctypes.CFUNCTYPE(void, address, address, i64, i32)
        self._run = run(self.library["unity_parallel_for"])
        self._set = ctypes.CFUNCTYPE(void, i32, i32)(self.library["unity_set_threads"])
        self._workers = ctypes.CFUNCTYPE(i32)(self.library["unity_workers"])

    def threads(self, count: int) -> None:
        self._set(count, 100)

    def workers(self) -> int:
        return int(self._workers())

    def crowd(self, n: int, limit: int) -> int:
        """The most tasks that were running at a time."""
        counters = np.zeros(2, np.int64)
        self._run(self.library["crowd"], counters.ctypes.data, n, limit)
        assert counters[0] == 0
        return int(counters[1])

    def run(self, task: Callable[[int], None], n: int, limit: int) -> None:
        """Run tasks written in Python."""
        made = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        called = made(lambda env, t, n: task(t))
        self._run(ctypes.cast(called, ctypes.c_void_p).value, None, n, limit)

    def exact(
        self,
        task: str,
        calls: int,
        n: int,
        *,
        per: int = 1,
        width: int | None = None,
        limit: int = 1024,
    ) -> None:
        """Run tasks and see that each counter was raised as often as it should."""
        counters = np.zeros(64, np.int64)
        for _ in range(calls):
            self._run(self.library[task], counters.ctypes.data, n, limit)
        used = n if width is None else width
        assert (counters[:used] == calls * per).all(), counters
        assert not counters[used:].any()


def until(condition: Callable[[], bool]) -> None:
    end = time.time() + 20
    while not condition():
        assert time.time() < end, "timed out"
        time.sleep(0.001)


@pytest.fixture(params=["wipe", "pid check"], scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    made = Pool(pool_text(HOST, pid_check=request.param == "pid check"))
    made.threads(4)
    yield made
    made.threads(1)
    until(lambda: made.workers() == 0)


def forked(pool: Pool, depth: int) -> None:
    """Use the pool in a child, and in a child of it."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        status = 1
        try:
            pool.exact("count", 100, 37)
            assert pool.workers() == 3
            if depth:
                forked(pool, depth - 1)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"


def test_each_task_runs_once(pool: Pool) -> None:
    for calls, n in ((300, 37), (5, 0), (5, 1), (5, 2)):
        pool.exact("count", calls, n)
    assert pool.workers() == 3


def test_nested_loops_run_inline(pool: Pool) -> None:
    pool.exact("nested", 100, 7, per=7, width=10)


def test_concurrent_callers(pool: Pool) -> None:
    with ThreadPoolExecutor(6) as callers:
        list(callers.map(lambda n: pool.exact("count", 300, n), (13, 2, 37, 64, 5, 29)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_threads_are_inside(pool: Pool) -> None:
    with ThreadPoolExecutor(2) as callers:
        jobs = [callers.submit(pool.exact, "count", 1000, 13) for _ in range(2)]
        for _ in range(2):
            forked(pool, 1)
        for job in jobs:
            job.result()


def test_the_number_of_threads_changes(pool: Pool) -> None:
    wanted = 0

    def settled() -> bool:
        pool.exact("count", 1, 29)
        return pool.workers() == wanted - 1

    for wanted in (8, 2, 16, 4):
        pool.threads(wanted)
        until(settled)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_job_takes_no_more_threads_than_it_may(pool: Pool, limit: int) -> None:
    most = 0

    def seen() -> bool:
        nonlocal most
        most = max(most, pool.crowd(64, limit))
        return most == limit

    for _ in range(20):
        seen()
    assert most <= limit
    if (os.cpu_count() or 1) >= limit:
        until(seen)


def test_a_thread_takes_tasks_of_its_own_range_first(pool: Pool) -> None:
    """The caller from the first on, one worker from the middle on, and then what is left."""
    took: dict[int, list[int]] = {}
    slow = -1

    def task(t: int) -> None:
        took.setdefault(threading.get_ident(), []).append(t)
        time.sleep(0.2 if t == slow else 0.002)

    def shared() -> bool:
        took.clear()
        pool.run(task, 11, 2)
        assert sorted(t for ts in took.values() for t in ts) == list(range(11))
        return len(took) == 2

    until(shared)
    mine = took.pop(threading.get_ident())
    (others,) = took.values()
    assert (mine[0], others[0]) == (0, 6)
    slow = 0
    until(lambda: shared() and took[threading.get_ident()] == [0])
    took.pop(threading.get_ident())
    assert list(took.values()) == [[6, 7, 8, 9, 10, 1, 2, 3, 4, 5]]


def test_without_threads_tasks_run_in_order() -> None:
    serial = Pool(SERIAL)
    serial.threads(4)
    serial.exact("count", 3, 37)
    assert serial.workers() == 0
