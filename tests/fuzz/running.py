"""Programs judged in child processes: one that crashes or hangs is a failure with a name.

A child judges one seed after another and is replaced when it died, took too long, or has judged so
many that what it holds is not small any more. Time is the child's own on a cpu: machines that run
this beside other work are slow at times.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess

from .kind import Kind, P, said

TURNS = 400
"""Programs that one child judges."""
_WALL = 20
"""How many times its limit a child may take on the clock, for one that waits for ever."""
_FORK = multiprocessing.get_context("fork")


@dataclass(slots=True)
class _Child:
    """A process, the seed it judges now, when that began, and how many it judged."""

    process: ForkProcess
    seed: int = -1
    since: float = 0.0
    judged: int = 0


def judged(kind: Kind[P], seeds: range, jobs: int = 1) -> Iterator[tuple[int, str | None]]:
    """How each seed's program goes, in the order in which they end; None is well.

    Args:
        kind: Of programs.
        seeds: Which ones.
        jobs: How many run at a time.
    """
    waiting = list(seeds)[::-1]
    children: dict[Connection, _Child] = {}

    def hand_out(connection: Connection, child: _Child) -> None:
        child.seed, child.since = waiting.pop(), time.monotonic()
        connection.send(child.seed)

    while waiting or children:
        while waiting and len(children) < jobs:
            connection, process = _started(lambda theirs: _judge_all(kind, theirs))
            children[connection] = _Child(process)
            hand_out(connection, children[connection])
        ready = wait([*children], timeout=1)
        now = time.monotonic()
        for connection, child in list(children.items()):
            if connection not in ready and now - child.since < _WALL * kind.limit:
                continue
            failure, alive = _answer(connection, child.process, connection in ready, kind.limit)
            yield child.seed, failure
            child.judged += 1
            if alive and waiting and child.judged < TURNS:
                hand_out(connection, child)
            else:
                _end(children.pop(connection).process, connection)


def failure_of(kind: Kind[P], program: P) -> str | None:
    """How a program fails, judged in a process of its own; None if it does not."""

    def judge(theirs: Connection) -> None:
        theirs.send(_judge(lambda: program, kind))

    connection, process = _started(judge)
    answered = connection.poll(_WALL * kind.limit)
    failure, _ = _answer(connection, process, answered, kind.limit)
    _end(process, connection)
    return failure


def _started(work: Callable[[Connection], None]) -> tuple[Connection, ForkProcess]:
    gc.freeze()  # children share what there is, as long as no collection touches it
    mine, theirs = _FORK.Pipe()
    process = _FORK.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return mine, process


def _judge_all(kind: Kind[P], connection: Connection) -> None:
    while True:
        try:
            seed = connection.recv()
        except EOFError:
            return
        connection.send(_judge(partial(kind.draw, seed), kind))


def _judge(program: Callable[[], P], kind: Kind[P]) -> str | None:
    signal.setitimer(signal.ITIMER_PROF, kind.limit)  # whose signal ends the process
    try:
        kind.check(program())
    except Exception as error:  # whatever it is, it is what was looked for
        return said(error)
    return None


def _answer(
    connection: Connection, process: ForkProcess, answered: bool, limit: float
) -> tuple[str | None, bool]:
    """What a child says, and whether it lives."""
    if not answered:
        return f"TooLong: more than {limit:.0f} seconds", False
    try:
        return connection.recv(), True
    except (EOFError, ConnectionResetError):
        process.join()
        code = process.exitcode or 0
        if code == -signal.SIGPROF:
            return f"TooLong: more than {limit:.0f} seconds", False
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"Crash: the process ends by {how}", False


def _end(process: ForkProcess, connection: Connection) -> None:
    connection.close()
    process.kill()
    process.join()
