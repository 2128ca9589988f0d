"""Measures candidates of a kernel: compiles them in some children, runs them in another one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self, cast

import numpy as np

from unity.codegen.workers.child import Child, ChildError, Message
from unity.codegen.workers.described import described
from unity.errors import UnityError
from unity.ir.graph import Function
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.script import print_module
from unity.transform.schedule.trace import Trace

from ..agreement import tolerance_of
from ..tasks.at_sizes import at_sizes
from ..tasks.task import CALLER, Place, Task
from ..timing import inputs_for, sizes_for
from .folder import SessionFolder
from .intrinsics import registered
from .runner import USUAL, LocalRunner, Measured, Program, Reference, Runner, Timing

BUILD_SECONDS = 30.0
"""How long a candidate may be compiled."""
_UNKNOWN = 3.0
"""How many times as long a kernel is compiled for all sizes as for those that are known."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel laid out: its steps, and where it comes from.

    Attributes:
        trace: The steps; None for what the rules do by default.
        label: For messages.
        at_sizes: Whether it is compiled for the sizes that its kernel is tuned for alone, and
            compared with the default compiled for these. What is used is for all sizes.
        kernel: What the steps make of the kernel, where that is known: they are not taken again
            for what is `at_sizes`.
    """

    trace: Trace | None
    label: str = ""
    at_sizes: bool = False
    kernel: PrimFunc | None = None


class Measurer:
    """Carries children that compile, and who runs what they made. To be used in a ``with`` block.

    Kernels of one thread are run on the last cpu while others are compiled on the rest; kernels of
    several threads have the machine for themselves.

    Args:
        target: The machine that candidates are compiled for and run on.
        runner: Runs them; a child on this machine if not given.
        jobs: How many candidates are compiled at a time; as many as there are cpus if not given.
        build_seconds: How long compiling one may take, and thrice as long for all sizes where they
            are unknown; at most, and the default in any case, half a minute.
    """

    def __init__(
        self,
        target: Target,
        runner: Runner | None = None,
        jobs: int | None = None,
        build_seconds: float = BUILD_SECONDS,
    ) -> None:
        cpus = _cpus()
        alone = runner is None and target.threads == 1 and len(cpus) > 1
        building = cpus[:-1] if alone else cpus
        self._target = target
        self._beside = alone or runner is not None
        self._build_seconds = build_seconds
        count = max(1, min(jobs or len(building), len(building)))
        self._builders = [Child("unity.tuning.workers.build", building) for _ in range(count)]
        self._free: SimpleQueue[Child] = SimpleQueue()
        for builder in self._builders:
            self._free.put(builder)
        self._builds: list[Future[str]] = []
        self._local = LocalRunner(cpus[-1:] if alone else ())
        self._runner: Runner = runner or self._local
        self._task: Task | None = None
        self._at_sizes = False
        self._took: dict[bool, list[float]] = {False: [], True: []}
        """What compiling took: of kernels for all sizes, and of those for their own."""

    def __enter__(self) -> Self:
        """Make a folder for executables and arrays, and start the children that compile."""
        self._folder = SessionFolder()
        self._pool = ThreadPoolExecutor(len(self._builders))
        for builder in self._builders:
            builder.start()
        if self._runner is self._local:
            self._local.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the children."""
        self._pool.shutdown(wait=False, cancel_futures=True)  # none begins with a child anew
        for builder in self._builders:
            builder.close()
        self._runner.close()
        self._local.close()
        self._pool.shutdown()
        for builder in self._builders:  # what was about to begin has
            builder.close()
        self._folder.close()

    def measure(
        self,
        task: Task,
        candidates: Sequence[Candidate],
        timing: Timing = USUAL,
        usual: PrimFunc | None = None,
    ) -> Iterator[Measured]:
        """What each candidate takes, in order, as soon as it is known.

        They begin to be compiled when this is called, and are run when results are asked for: what
        is done in between costs no time.

        Args:
            task: The kernel.
            candidates: How it is laid out, all `at_sizes` or none.
            timing: How each is timed, and the default kernel beside it.
            usual: The kernel as rules lay it out by default, where that is known.

        Raises:
            UnityError: When results are asked for: the kernel as it is by default can't be
                compiled or run.
        """
        for build in self._builds:
            build.cancel()  # of a batch whose results nobody asked for
        default = Candidate(None, "", any(c.at_sizes for c in candidates), usual)
        paths = self._begin(task, [default, *candidates])
        return self._results(task, default, self._builds, paths, timing)

    def built(self, task: Task, candidates: Sequence[Candidate]) -> list[Path | None]:
        """The executable of each candidate; None where it can't be compiled."""
        paths = self._begin(task, candidates)
        return [
            None if build.result() else path
            for build, path in zip(self._builds, paths, strict=True)
        ]

    def _begin(self, task: Task, candidates: Sequence[Candidate]) -> list[Path]:
        """Begin to compile candidates; what was faster than the default is there."""
        paths = [self._candidate_path(task, c) for c in candidates]
        self._builds = [
            self._pool.submit(self._built, task, c, path)
            for c, path in zip(candidates, paths, strict=True)
        ]
        return paths

    def _candidate_path(self, task: Task, candidate: Candidate) -> Path:
        """Where the executable of a candidate is."""
        trace = "" if candidate.trace is None else candidate.trace.to_json()
        text = f"{task.identity} {task.params} {task.sizes} {candidate.at_sizes} {trace}"
        return self._path(f"{sha256(text.encode()).hexdigest()[:32]}.unity")

    def within(
        self, versions: Sequence[Sequence[tuple[Collection[Place], Path]]], seconds: float
    ) -> Sequence[Mapping[Place, float]] | None:
        """As `LocalRunner.within`."""
        return self._local.within(versions, seconds)

    @property
    def build_pace(self) -> float:
        """Seconds in which a kernel for all sizes is compiled, where several are; by what was."""
        whole, own = (sum(t) / len(t) if t else 0.0 for t in self._took.values())
        return (whole or _UNKNOWN * own) / len(self._builders)

    def take_program(self, program: Program) -> None:
        """Time kernels once more, on this machine, in a program."""
        self._local.program = program

    def kernels(self) -> Mapping[Place, Sequence[float]]:
        """What each call of each kernel in a run of the program takes; nothing where none runs."""
        return self._local.kernels()

    def whole(
        self, path: Path, seconds: float, usual: Path | None = None
    ) -> tuple[float, float] | None:
        """Seconds of a call of the program by default and of another one, by turns, here.

        Args:
            path: The other's executable.
            seconds: How long each is run, about.
            usual: The executable that is the default here, if it is not the program's.

        Returns:
            None where there is no program, or one of them does not run.
        """
        return self._local.whole(path, seconds, usual)

    def _results(
        self,
        task: Task,
        default: Candidate,
        builds: Sequence[Future[str]],
        paths: Sequence[Path],
        timing: Timing,
    ) -> Iterator[Measured]:
        if not self._beside:
            wait(builds)  # nothing is compiled while something is timed
        (first, *builds), (reference, *paths) = builds, paths
        if self._task is not task or self._at_sizes != default.at_sizes:
            self._take(task, default, reference, first.result())
        begun = (self._begun(b, path, timing) for b, path in zip(builds, paths, strict=True))
        beaten: list[Path] = []
        for result, path in zip(list(begun) if self._runner.at_once else begun, paths, strict=True):
            measured = result()
            beaten += [path] if measured.ratio >= 1.0 else []
            yield measured
        for path in beaten:
            path.unlink(missing_ok=True)

    def _begun(self, build: Future[str], path: Path, timing: Timing) -> Callable[[], Measured]:
        why = build.result()
        return (lambda: Measured(None, why=why)) if why else self._runner.begin(path, timing)

    def _take(self, task: Task, default: Candidate, path: Path, why: str) -> None:
        """Make the kernel by default the one to compare with.

        Args:
            task: The kernel.
            default: It as it is by default.
            path: Its executable.
            why: Why that can't be compiled, or nothing.
        """
        if why:
            raise UnityError(f"{task.name}: the default kernel can't be compiled: {why}")
        main = task.module()[CALLER]
        assert isinstance(main, Function)
        inputs = self._written(task, inputs_for(main, sizes_for(main, dict(task.sizes))))
        self._runner.take(Reference(task.name, path, inputs, tolerance_of(main)))
        self._task, self._at_sizes = task, default.at_sizes

    def _written(self, task: Task, values: Sequence[object]) -> list[Message]:
        """Inputs in files."""
        found: list[Message] = []
        for k, value in enumerate(values):
            if isinstance(value, np.ndarray):
                path = self._path(f"input{k}")
                value.tofile(path)
                name = task_dtype(task, k)
                copies = task.copies if k in task.constants else 1
                told: Message = {"file": str(path), "dtype": name, "shape": [*value.shape]}
                found.append({**told, "copies": copies})
            else:
                found.append({"shape": [*cast("tuple[int, ...]", value)]})
        return found

    def _built(self, task: Task, candidate: Candidate, path: Path) -> str:
        """Compile a candidate, unless it is there; why it can't be, or nothing."""
        if path.exists():
            return ""
        try:
            request = self._request(task, candidate, path)
        except UnityError as error:
            return f"compiling: {error.message}"
        seconds = BUILD_SECONDS
        if candidate.trace is not None:
            longer = _UNKNOWN if task.takes_sizes and not candidate.at_sizes else 1.0
            seconds = min(seconds, longer * self._build_seconds)
        builder = self._free.get()
        begin = time.monotonic()
        try:
            answer = builder.ask(request, seconds)
        except ChildError as error:
            return f"compiling: {error}"
        finally:
            self._took[candidate.at_sizes].append(time.monotonic() - begin)
            self._free.put(builder)
        return f"compiling: {answer['error']}" if "error" in answer else ""

    def _request(self, task: Task, candidate: Candidate, path: Path) -> Message:
        """What a child that compiles is told.

        Raises:
            UnityError: The kernel can't be made for its sizes alone.
        """
        module, trace, sizes = task.module(), candidate.trace, dict(task.sizes)
        if not candidate.at_sizes:
            sizes = {}
        elif candidate.kernel is not None:
            module, trace, sizes = at_sizes(task.module(candidate.kernel), sizes), None, {}
        return {
            "do": "build",
            "module": print_module(module),
            "target": described(self._target),
            "trace": None if trace is None else trace.to_json(),
            "sizes": sizes,
            "intrinsics": registered(),
            "path": str(path),
        }

    def _path(self, name: str) -> Path:
        return self._folder.path / name


def task_dtype(task: Task, k: int) -> str:
    """The dtype of a task's parameter."""
    found = getattr(task.params[k], "dtype", None)
    assert found is not None
    return str(found.name)


def _cpus() -> list[int]:
    """The cpus that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
