"""Many kernels compiled by several processes, this one among them.

Lowering kernels is Python's work, which threads of one process do not share. Processes are started
once what is left is seen to take long: each costs the import of the compiler. What none of them
could do is left as it is: the compiler does it then in its ordinary way, and says what is wrong.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from unity.codegen.kernel_work import KernelWork
from unity.errors import UnityError
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
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
"""Kernels below which there is nothing to share."""
WORTH = 1.5
"""Seconds of work that another process is started for."""
PACE = 6000.0
"""Characters of kernels' texts that are compiled in a second, before that is seen (AMD Zen 4)."""
_SEEN = 0.3
"""Seconds of work after which it is."""
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


def compile_beside(
    work: KernelWork, kernels: Mapping[str, tuple[PrimFunc, str]], count: int
) -> None:
    """Put kernels into the cache, with the help of other processes once that pays.

    Args:
        work: What becomes of them.
        kernels: Each one and its fingerprint, by name.
        count: Processes, this one included.
    """
    if count < 2 or len(kernels) < FEW or not _can_share(work):
        return
    crew = _Crew.of(work, kernels)
    texts, start, pace = crew.texts, time.perf_counter(), PACE
    total = sum(map(len, texts.values()))
    with ThreadPoolExecutor(count - 1) as threads:
        try:
            while True:
                if not crew.children:
                    left = sum(len(texts[name]) for name in crew.waiting)
                    spent = time.perf_counter() - start
                    if spent > _SEEN:
                        pace = (total - left) / spent
                    if left > 2 * WORTH * pace:
                        for _ in range(min(count - 1, int(left / pace / WORTH))):
                            threads.submit(crew.run, crew.child())
                name = crew.next()
                if name is None:
                    break
                func, identity = kernels[name]
                with suppress(Exception):  # told when it is compiled in the ordinary way
                    work.do(name, func, identity)
            threads.shutdown()
        finally:
            crew.close()


def _can_share(work: KernelWork) -> bool:
    """Whether another process would do the same, and can be started."""
    kind = work.ctx.target.kind
    python = Path(sys.executable or "").name.startswith("python")  # not a program that embeds it
    if os.name != "posix" or not python or is_changed(kind, INTRINSICS):
        return False
    return split(pipeline(kind))[1].identity == work.tail.identity


@dataclass(frozen=True, slots=True)
class _Crew:
    """What is still to be done, and who does it.

    Attributes:
        work: What becomes of kernels.
        kernels: Each one and its fingerprint.
        texts: What children are told of each: the longer, the longer it takes.
        waiting: Those that nobody does yet, what takes longest first.
        children: Who else is there.
    """

    work: KernelWork
    kernels: Mapping[str, tuple[PrimFunc, str]]
    texts: Mapping[str, str]
    waiting: deque[str]
    children: list[Child] = field(default_factory=list[Child])

    @classmethod
    def of(cls, work: KernelWork, kernels: Mapping[str, tuple[PrimFunc, str]]) -> _Crew:
        """All is to be done, and nobody else is there."""
        texts = {name: print_module(IRModule({name: f})) for name, (f, _) in kernels.items()}
        longest_first = deque(sorted(texts, key=lambda name: -len(texts[name])))
        return cls(work, kernels, texts, longest_first)

    def next(self) -> str | None:
        """The next kernel to compile; None if there is none."""
        try:
            return self.waiting.popleft()
        except IndexError:
            return None

    def child(self) -> Child:
        """Another child."""
        made = Child("unity.codegen.workers.kernels")
        self.children.append(made)
        return made

    def run(self, child: Child) -> None:
        """Give a child kernels until there are none, or it does not do what we would."""
        request = {
            "do": "start",
            "target": described(self.work.ctx.target),
            "folder": str(self.work.store.folder.absolute()),
            "setting": self.work.store.setting,
            "checks": self.work.checks,
        }
        try:
            if child.ask(request, _PATIENCE).get("same") is not True:
                return
            while (name := self.next()) is not None:
                kernel = {
                    "do": "kernel",
                    "name": name,
                    "module": self.texts[name],
                    "identity": self.kernels[name][1],
                }
                child.ask(kernel, _PATIENCE)
        except ChildError:
            return

    def close(self) -> None:
        """End the children."""
        self.waiting.clear()
        for child in self.children:
            child.close()
