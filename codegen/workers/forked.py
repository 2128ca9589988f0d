"""A copy of this process that compiles kernels which both have in memory.

Copying takes milliseconds, starting Python and importing the compiler more than a second. But of
the threads only the one that copies is there in a copy, and what others had locked stays locked:
where Python has several, no copy is made (`may_fork`). What libraries' own threads lock, of which
Python does not know, no kernel needs; a copy that waits for ever all the same is given up.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress

from unity.codegen.kernel_work import KernelWork

from .child import ChildError
from .job import Job
from .parent import end_with


def may_fork() -> bool:
    """Whether this process can be copied: on Linux, from Python's only thread."""
    return sys.platform == "linux" and threading.active_count() == 1


class Forked:
    """Carries a copy of this process; `fork` makes it."""

    def __init__(self, pid: int, talk: socket.socket) -> None:
        self._pid = pid
        self._talk = talk
        self._is_there = True

    def begin(self) -> None:
        """Nothing: it is ready as soon as there is one."""

    def do(self, job: Job) -> None:
        """Have it do a job.

        Raises:
            ChildError: It did not say that it is done.
        """
        try:
            self._talk.settimeout(job.patience)
            self._talk.sendall(job.name.encode() + b"\n", socket.MSG_NOSIGNAL)
            if not self._talk.recv(1):
                raise ChildError("it ended")
        except OSError as error:
            raise ChildError(f"no answer: {error}") from None

    def kill(self) -> None:
        """Stop it for good."""
        if not self._is_there:
            return
        with suppress(OSError):  # gone, where a program has its children reaped by itself
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """End it."""
        if not self._is_there:
            return
        self.kill()
        try:
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        finally:
            self._is_there = False
            self._talk.close()

    def forget(self) -> None:
        """Leave it to the process that made it: what a copy made later does."""
        self._is_there = False
        self._talk.close()


def fork(copies: list[Forked], work: KernelWork, jobs: Mapping[str, Job]) -> None:
    """Copy this process.

    No signal comes between, by which a copy would go on with the program, or be lost.

    Args:
        copies: Those there are; the new one is put there.
        work: What becomes of kernels.
        jobs: What it may be asked to do.

    Raises:
        OSError: The system has no room for another process.
    """
    ours, its = socket.socketpair()
    parent, mask = os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with warnings.catch_warnings():  # of libraries' threads, in Python 3.12 and later
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                for earlier in copies:
                    earlier.forget()
                _serve(parent, its, work, jobs)
            finally:
                os._exit(0)  # nothing that the program would do at its end
        copies.append(Forked(pid, ours))
    except OSError:
        ours.close()
        raise
    finally:
        its.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _serve(parent: int, talk: socket.socket, work: KernelWork, jobs: Mapping[str, Job]) -> None:
    """Do what is asked until nobody asks any more; what fails is left to the parent.

    Signals stay blocked: Ctrl-C and the like are the parent's affair.
    """
    end_with(parent)
    with talk.makefile("r", encoding="utf-8", newline="\n") as names:
        for name in names:
            with suppress(Exception):
                job = jobs[name.rstrip("\n")]
                work.do(job.name, job.func, job.identity)
            talk.sendall(b".", socket.MSG_NOSIGNAL)
