"""Work done in processes of their own, that may hang or be lost; another one takes their place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from os import sysconf
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
LATE = "not done in time"
"""Why a result is lost of what took too long."""
START = 60.0
"""Seconds that a process may take to start, beside those for its first piece of work."""
WAITS = 20.0
"""How many times as long as it may run a process may take where others run as well."""


def isolated(
    work: Callable[[T], R],
    lost: Callable[[str], R],
    given: Sequence[T],
    jobs: int,
    limit: float,
) -> Iterator[tuple[T, R]]:
    """What becomes of each piece of work, in no order.

    Args:
        work: What is done; a function of a module, since another process imports it.
        lost: The result where the process ended or took too long, given why.
        given: What it is done with.
        jobs: Processes at a time.
        limit: Seconds that a processor may work at one piece; with others beside, it takes longer.
    """
    workers = [_Worker(work, lost) for _ in range(min(jobs, len(given)))]
    left = list(reversed(given))
    busy: list[_Worker[T, R]] = []
    while left or busy:
        for worker in workers:
            if worker not in busy and left:
                worker.begin(left.pop())
                busy.append(worker)
        wait([worker.connection for worker in busy], timeout=0.5)
        for worker in tuple(busy):
            found = worker.result(limit)
            if found is not None:
                busy.remove(worker)
                yield found
    for worker in workers:
        worker.end()


class _Worker(Generic[T, R]):
    """A process that does one piece of work after another; a new one if it is lost."""

    def __init__(self, work: Callable[[T], R], lost: Callable[[str], R]) -> None:
        self.work, self.lost = work, lost
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.work, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.given: list[T] = []
        self.since = self.before = 0.0
        self.warm = False

    def begin(self, given: T) -> None:
        """Hand it a piece of work."""
        self.given, self.since = [given], time.monotonic()
        self.before = self._worked()
        self.connection.send(given)

    def result(self, limit: float) -> tuple[T, R] | None:
        """What became of its piece of work; None while it is at it."""
        (given,) = self.given
        if self.connection.poll():
            try:
                found: R = self.connection.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                return given, self._ended(f"the process ended with {self.process.exitcode}")
            self.warm = True
            return given, found
        allowed = limit + (0 if self.warm else START)
        since = time.monotonic() - self.since
        if min(self._worked() - self.before, since) > allowed or since > WAITS * allowed:
            return given, self._ended(LATE)
        return None

    def _worked(self) -> float:
        """Seconds that a processor worked for it; the time of day where that is not said."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / sysconf("SC_CLK_TCK")

    def _ended(self, why: str) -> R:
        self.end()
        self._start()
        return self.lost(why)

    def end(self) -> None:
        """Stop the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(work: Callable[[T], object], connection: Connection) -> None:
    while True:
        connection.send(work(connection.recv()))
