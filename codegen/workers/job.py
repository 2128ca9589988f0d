"""A kernel to compile, and who does that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.script.printer import print_module

PACE = 2500.0
"""Characters of kernels' texts that are compiled in a second, before that is seen (AMD Zen 3)."""
_PATIENCE, _SLOWER = 30.0, 20.0
"""Seconds that a job may take another process, and how many times as long as usual beyond them."""


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel to compile into the cache.

    Attributes:
        name: What the kernel is called.
        func: The kernel before the tail of the pipeline.
        identity: Its fingerprint.
        text: Its module of one; the longer, the longer it takes.
    """

    name: str
    func: PrimFunc
    identity: str
    text: str

    @property
    def patience(self) -> float:
        """Seconds that it may take another process, which is given up then."""
        return _PATIENCE + _SLOWER * len(self.text) / PACE

    @staticmethod
    def of(name: str, func: PrimFunc, identity: str) -> Job:
        """The job of a kernel."""
        return Job(name, func, identity, print_module(IRModule({name: func})))


class Worker(Protocol):
    """Another process, which was started; one thread begins and asks it, another may end it."""

    def begin(self) -> None:
        """Wait until it is ready.

        Raises:
            ChildError: It is not, or would not do what we would.
        """

    def do(self, job: Job) -> None:
        """Have it do a job.

        Raises:
            ChildError: It did not say that it is done.
        """

    def kill(self) -> None:
        """Stop it for good; whoever waits for it, in another thread, gets a `ChildError`."""

    def close(self) -> None:
        """End it."""
