"""Cases run in child processes, a few at a time: one that crashes or hangs is a result line.

Each case has a process of its own, forked when all cases were read, and a limit of time.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess

from .suite import Case, Status

Judge = Callable[[Case], tuple[Status, str]]
"""How a case goes, and why if it does not pass."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A case that runs.

    Attributes:
        name: Of the case.
        process: Which runs it.
        until: When it has taken too long.
    """

    name: str
    process: ForkProcess
    until: float


def run_isolated(
    cases: Mapping[str, Case],
    names: Iterable[str],
    judge: Judge,
    *,
    workers: int = 2,
    limit: float = 300,
) -> Iterator[tuple[str, Status, str]]:
    """How cases go, in the order in which they end.

    Args:
        cases: All, by name.
        names: Which to run.
        judge: What runs one.
        workers: How many run at a time.
        limit: How many seconds one may take.
    """
    fork = multiprocessing.get_context("fork")
    waiting = list(names)[::-1]
    running: dict[Connection, _Running] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            name = waiting.pop()
            mine, theirs = fork.Pipe(duplex=False)
            process = fork.Process(target=_run, args=(judge, cases[name], theirs))
            process.start()
            theirs.close()
            running[mine] = _Running(name, process, time.monotonic() + limit)
        ready = [c for c in wait([*running], timeout=1) if isinstance(c, Connection)]
        late = [c for c, of in running.items() if time.monotonic() > of.until and c not in ready]
        for connection in (*ready, *late):
            of = running.pop(connection)
            yield (of.name, *_ended(connection, of.process, limit, is_late=connection in late))


def _run(judge: Judge, case: Case, result: Connection) -> None:
    result.send(judge(case))


def _ended(
    connection: Connection, process: ForkProcess, limit: float, *, is_late: bool
) -> tuple[Status, str]:
    if is_late:
        process.kill()
        process.join()
        return "failed", f"takes more than {limit:.0f} seconds"
    try:
        status, why = connection.recv()
    except EOFError:
        process.join()
        return "failed", f"the process ends by {_ending(process.exitcode)}"
    process.join()
    return status, why


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the signal {signal.Signals(-code).name}"
    return f"the exit code {code}"
