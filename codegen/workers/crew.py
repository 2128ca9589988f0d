"""Many kernels compiled by several processes, this one among them.

Lowering kernels is Python's work, which threads of one process do not share. Another process costs
the import of the compiler, so the first is started for programs of many operators while the graph
passes run, and more once what is left is seen to take long. What none of them could do is left as
it is: the compiler does it then in its ordinary way, and says what is wrong.
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

from unity.codegen.kernel_work import KernelWork
from unity.errors import UnityError
from unity.ir.graph import Call, Op
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.visit import walk_bindings
from unity.machine.changed import INTRINSICS, is_changed
from unity.machine.target import Target
from unity.runtime.host import available_cpus
from unity.script.printer import print_module
from unity.transform import pipeline
from unity.transform.tail import split

from .child import Child, ChildError
from .described import described

VARIABLE = "UNITY_COMPILE_PROCESSES"
FEW = 6
"""Kernels below which there is nothing to share, where no process was started before."""
MANY_CALLS = 8
"""Operators' calls for which a process is started before it is known what kernels they make."""
WORTH = 1.5
"""Seconds of work that another process is started for."""
PACE = 2500.0
"""Characters of kernels' texts that are compiled in a second, before that is seen (AMD Zen 3)."""
_SEEN = 0.3
"""Seconds of work after which it is; less of it is not shared at all."""
_PATIENCE = 300.0
"""Seconds that a kernel may take a child."""


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
        self._count = count if count > 1 and _can_share(work) else 1
        self._children: list[Child] = []
        self._threads = ThreadPoolExecutor(max(1, count - 1))
        self._known = threading.Event()  # what there is to do
        self._kernels: Mapping[str, tuple[PrimFunc, str]] = {}
        self._texts: Mapping[str, str] = {}  # what children are told: the longer, the longer
        self._waiting: deque[str] = deque()  # nobody does them yet; what takes longest first
        self._lock = threading.Lock()
        self._busy = set[Child]()  # with a kernel; changes together with what is waiting

    def expect(self, module: IRModule) -> None:
        """Start a process for a program of so many operators that there will be work for it.

        Args:
            module: The program before its graph passes.
        """
        functions = module.graph_functions().values()
        bound = [b.value for f in functions for b in walk_bindings(f)]
        calls = sum(isinstance(v, Call) and isinstance(v.callee, Op) for v in bound)
        if calls >= MANY_CALLS:
            self._hire(1)

    def compile(self, kernels: Mapping[str, tuple[PrimFunc, str]]) -> None:
        """Put kernels into the cache, with the help of other processes where that pays.

        Args:
            kernels: Each one and its fingerprint, by name.
        """
        if self._count == 1 or (not self._children and len(kernels) < FEW):
            return
        self._kernels = kernels
        self._texts = {n: print_module(IRModule({n: f})) for n, (f, _) in kernels.items()}
        total = sum(map(len, self._texts.values()))
        if total < _SEEN * PACE:
            return
        self._waiting.extend(sorted(self._texts, key=lambda name: -len(self._texts[name])))
        self._known.set()
        start, pace = time.perf_counter(), PACE
        while True:
            with self._lock:
                left = sum(len(self._texts[name]) for name in self._waiting)
            spent = time.perf_counter() - start
            if spent > _SEEN and left < total:
                pace = (total - left) / spent / (1 + len(self._children))
            if left > 2 * WORTH * pace:
                self._hire(int(left / pace / WORTH))
            name = self._next(None)
            if name is None:
                break
            func, identity = kernels[name]
            with suppress(Exception):  # told when it is compiled in the ordinary way
                self._work.do(name, func, identity)
        self._end()

    def close(self) -> None:
        """End all processes; what is not done yet is left."""
        with self._lock:
            self._waiting.clear()
            self._busy.clear()
        self._end()

    def _hire(self, wanted: int) -> None:
        """Have as many children as wanted, at most as many as there may be processes."""
        while len(self._children) < min(wanted, self._count - 1):
            child = Child("unity.codegen.workers.kernels")
            child.start()
            self._children.append(child)
            self._threads.submit(self._run, child)

    def _end(self) -> None:
        """End the children, those that have a kernel after it; nothing is waiting any more."""
        self._known.set()
        with self._lock:
            idle = [c for c in self._children if c not in self._busy]
        for child in idle:
            child.kill()  # it may have just begun to import the compiler
        self._threads.shutdown()
        for child in self._children:
            child.close()

    def _next(self, child: Child | None) -> str | None:
        """The next kernel for a child, or for this process; None if there is none."""
        with self._lock:
            name = self._waiting.popleft() if self._waiting else None
            if child is not None and name is not None:
                self._busy.add(child)
            elif child is not None:
                self._busy.discard(child)
            return name

    def _run(self, child: Child) -> None:
        """Give a child kernels until there are none, or it does not do what we would."""
        request = {
            "do": "start",
            "target": described(self._work.ctx.target),
            "folder": str(self._work.store.folder.absolute()),
            "setting": self._work.store.setting,
            "checks": self._work.checks,
        }
        try:
            if self._known.is_set() and not self._waiting:
                return
            if child.ask(request, _PATIENCE).get("same") is not True:
                return
            self._known.wait()
            while (name := self._next(child)) is not None:
                kernel = {
                    "do": "kernel",
                    "name": name,
                    "module": self._texts[name],
                    "identity": self._kernels[name][1],
                }
                child.ask(kernel, _PATIENCE)
        except ChildError:
            return


def _can_share(work: KernelWork) -> bool:
    """Whether another process would do the same, and can be started."""
    kind = work.ctx.target.kind
    python = Path(sys.executable or "").name.startswith("python")  # not a program that embeds it
    if os.name != "posix" or not python or is_changed(kind, INTRINSICS):
        return False
    return split(pipeline(kind))[1].identity == work.tail.identity
