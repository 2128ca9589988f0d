"""``python -m tests.fuzz <kind> --count N --seed S``: random programs, judged; failures shrunk.

Each program is judged in a child process, so that one that crashes or hangs is a failure like
others. A failing program is made smaller as long as it fails in the same way, and written as a
short script to ``--folder``. What was found is noted in ``--output`` (`notes`); a run without
``--seed`` goes on where the last one noted there ended. Exit code 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from tests.bench.machine import machine

from .kind import Kind, P, said
from .kinds import KINDS
from .notes import Slice, next_seed, note
from .running import judged
from .shrink import shrunk

RESULTS = Path(__file__).with_name("results.json")
FOLDER = Path("fuzz_failures")
EVERY = 200
"""Programs between two lines of progress."""


def fuzz(kind: Kind[P], seeds: range, jobs: int, folder: Path) -> dict[int, str]:
    """Judge the programs of seeds; the failures by seed, each written to the folder."""
    failures: dict[int, str] = {}
    start = time.monotonic()
    for done, (seed, failure) in enumerate(judged(kind, seeds, jobs), 1):
        if failure is not None:
            print(f"seed {seed}: {failure[:300]}", flush=True)
            failures[seed] = failure[:300]
            write(kind, seed, failure, folder)
        if done % EVERY == 0:
            print(f"{done} programs, {time.monotonic() - start:.0f} s", flush=True)
    return failures


def write(kind: Kind[P], seed: int, failure: str, folder: Path) -> Path:
    """The script of a seed's failure, as short as it was made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind.name}_{seed}.py"
    try:
        with at_most(kind.limit):
            program = kind.draw(seed)
    except Exception as error:  # nothing to make smaller: the draw itself fails
        text = f"{said(error)}\n"
        path.write_text(
            f"from tests.fuzz.kinds import KINDS\n\nKINDS[{kind.name!r}]().draw({seed})\n"
        )
        print(f"  can't be drawn: {text}  {path}", flush=True)
        return path
    program, failure = shrunk(kind, program, failure)
    path.write_text(kind.script(program, failure))
    print(f"  {path}", flush=True)
    return path


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in what takes longer on the cpu."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"more than {seconds:.0f} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def main(args: list[str] | None = None) -> int:
    """Judge, shrink, write; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="the first; else the next one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of scripts that fail")
    parser.add_argument("--output", type=Path, default=None, help=f"for instance {RESULTS}")
    given = parser.parse_args(args)
    os.environ.setdefault("UNITY_COMPILE_PROCESSES", "1")
    start, at = time.monotonic(), commit()
    first = next_seed(given.output, given.kind) if given.seed is None else given.seed
    seeds = range(first, first + given.count)
    failures = fuzz(KINDS[given.kind](), seeds, given.jobs, given.folder)
    seconds = time.monotonic() - start
    print(f"{given.kind}: {given.count} programs, {len(failures)} wrong, {seconds:.0f} s")
    if given.output is not None:
        ran = Slice(seeds, at, date.today().isoformat(), machine(), round(seconds))
        note(given.output, given.kind, ran, failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
