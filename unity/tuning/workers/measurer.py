"""Measures candidates of a kernel: compiles them in some children, runs them in another one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self, cast

import numpy as np

from unity.errors import UnityError
from unity.ir.graph import Function
from unity.machine.target import Target
from unity.script import print_module
from unity.transform.schedule.trace import Trace

from ..agreement import tolerance_of
from ..tasks.task import CALLER, Task
from ..timing import inputs_for, sizes_for
from .child import Child, ChildError, Message
from .describe import described

BUILD_SECONDS, RUN_SECONDS = 30.0, 10.0
"""How long a candidate may be compiled, and run besides what it is timed for."""
_SECONDS = 0.08
"""How long a candidate is timed, and the default kernel beside it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel laid out: its steps, and where it comes from.

    Attributes:
        trace: The steps; None for what the rules do by default.
        label: For messages.
    """

    trace: Trace | None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What measuring a candidate gave.

    Attributes:
        seconds: The fastest run; None if it failed.
        reference: The fastest run of the kernel as it is by default, by turns with it.
        why: What was wrong with it, if it failed.
    """

    seconds: float | None
    reference: float | None = None
    why: str = ""

    @property
    def ratio(self) -> float:
        """What it takes of the default kernel's time; infinite if it failed."""
        if self.seconds is None or not self.reference:
            return float("inf")
        return self.seconds / self.reference


class Measurer:
    """Carries children, and the task that they know. To be used in a ``with`` block.

    Kernels of one thread are run on the last cpu while others are compiled on the rest; kernels of
    several threads have the machine for themselves.

    Args:
        target: The machine, which this one must be.
        jobs: How many candidates are compiled at a time; as many as there are cpus if not given.
        build_seconds: How long compiling one may take.
        run_seconds: How long running one may take, besides its timing.
    """

    def __init__(
        self,
        target: Target,
        jobs: int | None = None,
        build_seconds: float = BUILD_SECONDS,
        run_seconds: float = RUN_SECONDS,
    ) -> None:
        cpus = _cpus()
        alone = target.threads == 1 and len(cpus) > 1
        building = cpus[:-1] if alone else cpus
        self._target = target
        self._beside = alone
        self._limits = (build_seconds, run_seconds)
        count = max(1, min(jobs or len(building), len(building)))
        self._builders = [Child("unity.tuning.workers.build", building) for _ in range(count)]
        self._free: SimpleQueue[Child] = SimpleQueue()
        for builder in self._builders:
            self._free.put(builder)
        self._builds: list[Future[str]] = []
        self._runner = Child("unity.tuning.workers.run", cpus[-1:] if alone else ())
        self._task: Task | None = None
        self._known_to = self._count = 0

    def __enter__(self) -> Self:
        """Make a folder for executables and arrays."""
        self._folder = TemporaryDirectory(prefix="unity-tune-")
        self._pool = ThreadPoolExecutor(len(self._builders))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the children."""
        for child in (*self._builders, self._runner):
            child.close()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def measure(self, task: Task, candidates: Sequence[Candidate]) -> Iterator[Measured]:
        """What each candidate takes, in order, as soon as it is known.

        They begin to be compiled when this is called, and are run when results are asked for: what
        is done in between costs no time.

        Args:
            task: The kernel.
            candidates: How it is laid out.

        Raises:
            UnityError: The kernel as it is by default can't be compiled or run here.
        """
        for build in self._builds:
            build.cancel()  # of a batch whose results nobody asked for
        self._take(task)
        paths = [self._path(f"candidate{self._count + k}.unity") for k in range(len(candidates))]
        self._count += len(candidates)
        self._builds = builds = [
            self._pool.submit(self._built, task, c.trace, path)
            for c, path in zip(candidates, paths, strict=True)
        ]
        return self._results(task, builds, paths)

    def _results(
        self, task: Task, builds: Sequence[Future[str]], paths: Sequence[Path]
    ) -> Iterator[Measured]:
        if not self._beside:
            wait(builds)  # nothing is compiled while something is timed
        for build, path in zip(builds, paths, strict=True):
            why = build.result()
            yield Measured(None, why=why) if why else self._run(task, path)
            path.unlink(missing_ok=True)

    def _take(self, task: Task) -> None:
        """Make the kernel by default the one to compare with."""
        if self._task is not task:
            why = self._built(task, None, self._path("reference.unity"))
            if why:
                raise UnityError(f"{task.name}: the default kernel can't be compiled: {why}")
            self._write_inputs(task)
            self._task, self._known_to = task, 0
        if self._known_to != self._runner.started or not self._known_to:
            self._introduce(task)

    def _introduce(self, task: Task) -> None:
        request: Message = {
            "do": "reference", "path": str(self._path("reference.unity")), "inputs": self._inputs,
        }  # fmt: skip
        try:
            answer = self._runner.ask(request, self._limits[1])
        except ChildError as error:
            raise UnityError(f"{task.name}: the default kernel did not run: {error}") from None
        if "error" in answer:
            raise UnityError(f"{task.name}: the default kernel did not run: {answer['error']}")
        self._known_to = self._runner.started

    def _write_inputs(self, task: Task) -> None:
        main = task.module()[CALLER]
        assert isinstance(main, Function)
        self._tolerance = tolerance_of(main)
        values = inputs_for(main, sizes_for(main, dict(task.sizes)))
        self._inputs: list[Message] = []
        for k, value in enumerate(values):
            if isinstance(value, np.ndarray):
                path = self._path(f"input{k}")
                value.tofile(path)
                name = task_dtype(task, k)
                self._inputs.append({"file": str(path), "dtype": name, "shape": [*value.shape]})
            else:
                self._inputs.append({"shape": [*cast("tuple[int, ...]", value)]})

    def _built(self, task: Task, trace: Trace | None, path: Path) -> str:
        """Compile a candidate; why it can't be, or nothing."""
        request: Message = {
            "do": "build",
            "module": print_module(task.module()),
            "target": described(self._target),
            "trace": None if trace is None else trace.to_json(),
            "path": str(path),
        }
        builder = self._free.get()
        try:
            answer = builder.ask(request, self._limits[0])
        except ChildError as error:
            return f"compiling: {error}"
        finally:
            self._free.put(builder)
        return f"compiling: {answer['error']}" if "error" in answer else ""

    def _run(self, task: Task, path: Path) -> Measured:
        self._take(task)  # to a child that was started anew
        request: Message = {
            "do": "candidate", "path": str(path), "tolerance": self._tolerance, "seconds": _SECONDS,
        }  # fmt: skip
        try:
            answer = self._runner.ask(request, self._limits[1])
        except ChildError as error:
            return Measured(None, why=f"running: {error}")
        if "wrong" in answer or "error" in answer:
            return Measured(None, why=str(answer.get("wrong", answer.get("error"))))
        return Measured(float(str(answer["seconds"])), float(str(answer["reference"])))

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name


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
