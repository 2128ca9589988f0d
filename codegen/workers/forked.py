"""A copy of this process that compiles kernels which both have in memory.

Copying takes milliseconds, starting Python and importing the compiler more than a second. But of
the threads only the one that copies is there in a copy, and what others had locked stays locked:
a process with several is not copied (`may_fork`). What libraries' own threads lock, of which
Python does not know, no kernel needs.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

from unity.codegen.kernel_work import KernelWork

from .child import ChildError
from .job import PATIENCE, Job
from .parent import end_with


def may_fork() -> bool:
    """Whether this process can be copied: on Linux, from its only thread."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked:
    """Carries a copy of this process, made at once.

    Args:
        work: What becomes of kernels.
        jobs: What it may be asked to do.

    Raises:
        OSError: The system has no room for another process.
    """

    def __init__(self, work: KernelWork, jobs: Mapping[str, Job]) -> None:
        parent, asking, answers = os.getpid(), os.pipe(), os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            for end in (*asking, *answers):
                os.close(end)
            raise
        if self._pid == 0:
            try:
                os.close(asking[1])
                os.close(answers[0])
                end_with(parent)
                _serve(asking[0], answers[1], work, jobs)
            finally:
                os._exit(0)  # nothing that the program would do at its end
        os.close(asking[0])
        os.close(answers[1])
        self._asking, self._answers = asking[1], answers[0]
        self._is_open = True

    def begin(self) -> None:
        """Nothing: it is ready as soon as there is one."""

    def do(self, job: Job) -> None:
        """Have it do a job.

        Raises:
            ChildError: It did not say that it is done.
        """
        try:
            os.write(self._asking, job.name.encode() + b"\n")
            answer = select.poll()
            answer.register(self._answers, select.POLLIN)
            if not answer.poll(PATIENCE * 1e3):
                raise ChildError(f"no answer in {PATIENCE:g} s")
            if not os.read(self._answers, 1):
                raise ChildError("it ended")
        except OSError as error:
            raise ChildError(str(error)) from None

    def kill(self) -> None:
        """Stop it for good."""
        with suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End it."""
        if not self._is_open:
            return
        self._is_open = False
        self.kill()
        with suppress(ChildProcessError):  # a program may have its children reaped by itself
            os.waitpid(self._pid, 0)
        os.close(self._asking)
        os.close(self._answers)


def _serve(asked: int, answers: int, work: KernelWork, jobs: Mapping[str, Job]) -> None:
    """Do what is asked until nobody asks any more; what fails is left to the parent."""
    os.setsid()  # Ctrl-C is the parent's affair
    with os.fdopen(asked) as names:
        for name in names:
            with suppress(Exception):
                job = jobs[name.rstrip("\n")]
                work.do(job.name, job.func, job.identity)
            os.write(answers, b".")
