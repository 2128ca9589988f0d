"""A program whose kernels run by turns as they are by default and as candidates.

Alone, a kernel finds its operands where its own last call left them. In a program another kernel
has just written them, by the threads that suited it, and weights have left the near caches: what is
faster alone may be slower there. Times vary more there, too, so many runs count: candidates of all
kernels run in the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import cast

import numpy as np

from unity.codegen.workers.child import Message
from unity.ir.dtype import Array, dtype
from unity.runtime.bytecode import CallKernel, KernelInfo, Return
from unity.runtime.executable import Executable
from unity.runtime.kernel_timer import NativeKernel
from unity.runtime.vm import Kernel

from ..race import median_ratio
from ..tasks.task import Place

_LEAST, _MOST = 5, 300
"""How often each version of a program runs, at least (if it is not far too slow) and at most."""

Instead = tuple[Collection[Place], Executable]
"""A candidate, and the places of the program that it takes."""


def written(value: object, folder: Path) -> Message:
    """An argument as a child is told it: arrays in files, shapes, tuples of such.

    Args:
        value: The argument.
        folder: Where files are made.
    """
    if isinstance(value, np.ndarray):
        array: Array = value
        path = folder / f"argument{len(list(folder.iterdir()))}"
        array.tofile(path)
        return {"file": str(path), "dtype": array.dtype.name, "shape": [*array.shape]}
    if isinstance(value, tuple):
        return {"fields": [written(v, folder) for v in cast("tuple[object, ...]", value)]}
    return {"size": value}


def read(told: Message) -> object:
    """What `written` was given."""
    if "file" in told:
        shape = tuple(cast("list[int]", told["shape"]))
        made: Array = np.fromfile(str(told["file"]), dtype(str(told["dtype"])).numpy)
        return made.reshape(shape)
    if "fields" in told:
        return tuple(read(t) for t in cast("Sequence[Message]", told["fields"]))
    return told["size"]


class RunningProgram:
    """Carries a program, what it is called with, and what its kernels took.

    Args:
        program: As it is by default.
        arguments: Of its main function, for each of the sizes that are tuned for.
    """

    def __init__(self, program: Executable, arguments: Sequence[Sequence[object]]) -> None:
        self.program = program
        self.arguments = arguments
        for args in arguments:
            program(*args)

    def kernels(self) -> dict[str, list[list[float]]]:
        """By kernel, for each of the arguments, the seconds of each of its calls in a run."""
        found: dict[str, list[list[float]]] = {}
        for at, args in enumerate(self.arguments):
            version = self._version(at, (), "")
            for _ in range(2):
                version.run(args)
            for name, times in version.times.items():
                found.setdefault(name, []).append(times)
        return found

    def race(
        self, versions: Sequence[Sequence[Instead]], name: str, seconds: float
    ) -> list[dict[Place, float]]:
        """Seconds of a call of each kernel by default, and in some versions of the program.

        The versions run by turns. Of the default's runs the faster half counts, by its mean; what
        a version takes is the median of what it took of the default's time, turn by turn.

        Args:
            versions: Candidates that run in place of kernels.
            name: What candidates are called in their executables.
            seconds: How long all of them take turns, about.

        Returns:
            For the default and each version, by place: there is none where a candidate can't run.
        """
        found: list[dict[Place, float]] = [{} for _ in range(len(versions) + 1)]
        for at, args in enumerate(self.arguments):
            made = [self._version(at, v, name) for v in ((), *versions)]
            runs: list[list[Mapping[str, list[float]]]] = [[] for _ in made]
            order, random = list(range(len(made))), Random(0)
            begin, share = time.perf_counter(), seconds / len(self.arguments)
            for passed in range(_MOST):
                spent = time.perf_counter() - begin
                if passed and spent > share * (1 if passed >= _LEAST else _LEAST):
                    break
                random.shuffle(order)  # none always comes behind the same one
                for k in order:
                    runs[k].append(made[k].run(args))
            for times, each in zip(found, runs, strict=True):
                for kernel, calls in each[0].items():
                    if calls:
                        usual = [sum(run[kernel]) for run in runs[0]]
                        faster = sorted(usual)[: (len(usual) + 1) // 2]
                        by = median_ratio(usual, [sum(run[kernel]) for run in each])
                        times[kernel, at] = by * sum(faster) / len(faster) / len(calls)
        return found

    def _version(self, at: int, candidates: Sequence[Instead], name: str) -> _Version:
        """The program for some arguments with candidates in place of kernels, all timed.

        A kernel whose candidate can't be called in its place runs itself, and is not timed.
        """
        instead = {n: exe for places, exe in candidates for n, k in places if k == at}
        version, kernels = _Version(), list(self.program.kernel_calls)
        for k, info in enumerate(self.program.program.kernels):
            kernel = kernels[k]
            if not isinstance(kernel, NativeKernel):
                continue
            if info.name not in instead:
                kernels[k] = version.watching(info.name, kernel)
                continue
            other = _called(instead[info.name], name)
            if other is not None and _fits(other.info, info):
                kernels[k] = version.watching(info.name, other)
        version.call = self.program.calling(kernels)
        return version


def _fits(candidate: KernelInfo, info: KernelInfo) -> bool:
    """Whether a kernel can take another one's place: a call may have temporaries at its end."""
    return candidate.sizes == info.sizes and candidate.buffers <= info.buffers


def _called(executable: Executable, name: str) -> NativeKernel | None:
    """A kernel of a program that calls it with just what it is given, and for what it gives.

    Others are given temporaries, too: another program has none for them.
    """
    program, index = executable.program, executable.kernels.index(name)
    kernel, (main,) = executable.kernel_calls[index], program.functions
    given = [p.registers for p in main.params]
    called: Sequence[int] = ()
    for instruction in main.code:
        match instruction:
            case CallKernel(kernel=k, args=args) if k == index:
                called = args
            case Return(value=value):
                given += list(value) if isinstance(value, tuple) else [value]
            case _:
                pass
    return kernel if isinstance(kernel, NativeKernel) and list(called) == given else None


class _Version:
    """Carries a program, and what its kernels took in its last run, call by call."""

    def __init__(self) -> None:
        self.call: Callable[..., object] = _nothing
        self.times: dict[str, list[float]] = {}

    def run(self, args: Sequence[object]) -> Mapping[str, list[float]]:
        """What each kernel takes in a run."""
        self.times = {name: [] for name in self.times}
        self.call(*args)
        return self.times

    def watching(self, name: str, kernel: NativeKernel) -> Kernel:
        """A kernel that notes what it takes, called with what it is of what a call has."""
        self.times[name] = []
        count = kernel.info.buffers

        def run(arrays: Sequence[Array], sizes: Sequence[int]) -> int:
            code, seconds = kernel.timed(arrays[:count], sizes)
            self.times[name].append(seconds)
            return code

        return run


def _nothing(*args: object) -> None:
    """No program yet."""
