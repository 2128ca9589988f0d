"""Many kernels compiled by several processes, this one among them.

Lowering kernels is Python's work, which threads of one process do not share. Where this process can
be copied (`forked`), copies start as soon as the kernels are known. Elsewhere another process costs
the import of the compiler (`spawned`): the first is started for programs of many operators while
the graph passes run, and more once what is left is seen to take long. What none of them could do is
left as it is: the compiler does it then in its ordinary way, and says what is wrong.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from unity.codegen.kernel_work import KernelWork, import_all
from unity.errors import UnityError
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.visit import walk_bindings
from unity.machine.changed import INTRINSICS, is_changed
from unity.machine.target import Target
from unity.runtime.host import available_cpus
from unity.transform import pipeline
from unity.transform.tail import split

from .child import ChildError
from .forked import Forked, fork, may_fork
from .job import PACE, Job, Worker
from .spawned import Spawned

VARIABLE = "UNITY_COMPILE_PROCESSES"
FEW = 6
"""Kernels below which no process is spawned that was not before."""
MANY_CALLS = 8
"""Operators' calls for which a process is spawned before it is known what kernels they make."""
WORTH = 1.5
"""Seconds of work that a process is spawned for."""
_SEEN = 0.3
"""Seconds of work after which its pace is seen; less of it is not shared at all, nor by copies."""


def processes(target: Target) -> int:
    """How many processes may compile: as kernels may use threads, and as there are cpus.

    The environment's ``UNITY_COMPILE_PROCESSES`` says another number; 1 starts none. Only entry
    points ask.

    Raises:
        UnityError: It is no number.
    """
    told = os.environ.get(VARIABLE)
    if told is None:
        return min(target.threads, available_cpus())
    if not told.isdecimal() or int(told) < 1:
        raise UnityError(f"{VARIABLE} is {told!r}", hint="1 or more processes")
    return int(told)


class Crew:
    """Who compiles a program's kernels: carries what is still to be done, and the processes.

    Whoever makes one closes it, which ends its processes.

    Args:
        work: What becomes of kernels.
        count: Processes, this one included.
    """

    def __init__(self, work: KernelWork, count: int) -> None:
        self._work = work
        self._forks = may_fork()
        able = _is_python() and (self._forks or _does_the_same(work))
        self._count = count if able else 1
        self._workers: list[Worker] = []
        self._threads = ThreadPoolExecutor(max(1, count - 1))
        self._known = threading.Event()  # what there is to do
        self._waiting: deque[Job] = deque()  # nobody does them yet; what takes longest first
        self._lock = threading.Lock()
        self._busy = set[Worker]()  # with a job; changes together with what is waiting

    def expect(self, module: IRModule) -> None:
        """Start a process for a program of so many operators that there will be work for it.

        Args:
            module: The program before its graph passes.
        """
        if self._forks:
            return
        functions = module.graph_functions().values()
        bound = [b.value for f in functions for b in walk_bindings(f)]
        calls = sum(isinstance(v, Call) and isinstance(v.callee, Op) for v in bound)
        if calls >= MANY_CALLS:
            self._spawn(1)

    def compile(self, kernels: Mapping[str, tuple[PrimFunc, str]]) -> None:
        """Put kernels into the cache, with the help of other processes where that pays.

        Args:
            kernels: Each one and its fingerprint, by name.
        """
        few = not self._forks and not self._workers and len(kernels) < FEW
        if self._count == 1 or few:
            return
        jobs = {name: Job.of(name, func, identity) for name, (func, identity) in kernels.items()}
        total = sum(len(job.text) for job in jobs.values())
        if total < _SEEN * PACE:
            return
        self._waiting.extend(sorted(jobs.values(), key=lambda job: -len(job.text)))
        if self._forks:
            self._fork(jobs, min(len(jobs) - 1, int(total / PACE / _SEEN)))
        self._known.set()
        start, pace = time.perf_counter(), PACE
        while True:
            with self._lock:
                left = sum(len(job.text) for job in self._waiting)
            spent = time.perf_counter() - start
            if spent > _SEEN and left < total:
                pace = (total - left) / spent / (1 + len(self._workers))
            if not self._forks and left > 2 * WORTH * pace:
                self._spawn(int(left / pace / WORTH))
            job = self._next(None)
            if job is None:
                break
            with suppress(Exception):  # told when it is compiled in the ordinary way
                self._work.do(job.name, job.func, job.identity)
        self._end()

    def close(self) -> None:
        """End all processes; what is not done yet is left."""
        with self._lock:
            self._waiting.clear()
            self._busy.clear()
        self._end()

    def _fork(self, jobs: Mapping[str, Job], wanted: int) -> None:
        """Copy this process as often as wanted, at most as many as there may be processes."""
        import_all()
        copies: list[Forked] = []
        try:
            if may_fork():  # a pass may have started threads
                for _ in range(min(wanted, self._count - 1)):
                    fork(copies, self._work, jobs)
        except OSError:
            pass  # as many as there are
        finally:
            self._workers += copies
        if not copies and _does_the_same(self._work):
            self._forks = False
        for worker in self._workers:  # no thread of ours before the last copy
            self._threads.submit(self._run, worker)

    def _spawn(self, wanted: int) -> None:
        """Have as many spawned as wanted, at most as many as there may be processes."""
        while len(self._workers) < min(wanted, self._count - 1):
            worker = Spawned(self._work)
            self._workers.append(worker)
            self._threads.submit(self._run, worker)

    def _end(self) -> None:
        """End the processes, those that have a job after it; nothing is waiting any more."""
        self._known.set()
        with self._lock:
            idle = [w for w in self._workers if w not in self._busy]
        for worker in idle:
            worker.kill()  # it may have just begun to import the compiler
        self._threads.shutdown()
        for worker in self._workers:
            worker.close()

    def _next(self, worker: Worker | None) -> Job | None:
        """The next job for a worker, or for this process; None if there is none."""
        with self._lock:
            job = self._waiting.popleft() if self._waiting else None
            if worker is not None and job is not None:
                self._busy.add(worker)
            elif worker is not None:
                self._busy.discard(worker)
            return job

    def _run(self, worker: Worker) -> None:
        """Give a worker jobs until there are none, or it does not do what we would."""
        with suppress(ChildError):
            if self._known.is_set() and not self._waiting:
                return
            worker.begin()
            self._known.wait()
            while (job := self._next(worker)) is not None:
                worker.do(job)


def _is_python() -> bool:
    """Whether this process is Python's, not a program that embeds it."""
    return os.name == "posix" and Path(sys.executable or "").name.startswith("python")


def _does_the_same(work: KernelWork) -> bool:
    """Whether a process that is spawned would do the same."""
    kind = work.ctx.target.kind
    same = split(pipeline(kind))[1].identity == work.tail.identity
    return same and not is_changed(kind, INTRINSICS)
