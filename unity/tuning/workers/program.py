"""A program in which one kernel runs by turns as it is by default and as a candidate.

Alone, a kernel finds its operands where its own last call left them. In a program another kernel
has just written them, by the threads that suited it, and weights have left the near caches: what is
faster alone may be slower there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path
from typing import cast

import numpy as np

from unity.codegen.workers.child import Message
from unity.ir.dtype import Array, dtype
from unity.runtime.executable import Executable
from unity.runtime.kernel_timer import NativeKernel
from unity.runtime.vm import Kernel

from ..tasks.task import Place

_HOPELESS = 1.5
"""How many times the default's time a candidate may take after the first passes to go on."""
_FIRST, _LONG = 2, 4.0
"""Passes after which it may end: if it is hopeless, or if they have taken so many seconds."""


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
        begin = time.perf_counter()
        for args in arguments:
            program(*args)
        self.seconds = time.perf_counter() - begin
        """What a call takes at first, for all arguments together."""

    def kernels(self) -> dict[str, list[list[float]]]:
        """By kernel, for each of the arguments, the seconds of each of its calls in a run."""
        found: dict[str, list[list[float]]] = {}
        for args in self.arguments:
            watches = {name: _Watched() for name in self.program.kernels}
            kernels = [
                watches[info.name].watching(kernel) if isinstance(kernel, NativeKernel) else kernel
                for info, kernel in zip(
                    self.program.program.kernels, self.program.kernel_calls, strict=True
                )
            ]
            call = self.program.calling(kernels)
            for _ in range(_FIRST):
                for watched in watches.values():
                    watched.times.clear()
                call(*args)
            for name, watched in watches.items():
                found.setdefault(name, []).append(watched.times)
        return found

    def race(
        self,
        places: Collection[Place],
        candidate: Executable,
        name: str,
        passes: int,
        seconds: float,
    ) -> tuple[float, float] | None:
        """Seconds of a call of a kernel by default and of a candidate within the program.

        Both run by turns at the kernel's places, the rest of the program around them; of each call
        in a run the fastest counts.

        Args:
            places: Where the program calls the kernel.
            candidate: Has the candidate, as a kernel of the same arrays and sizes.
            name: What it is called there.
            passes: How often each runs at least.
            seconds: How long they take turns at least, for all arguments together.

        Returns:
            None where the program does not call the kernel there, or is not asked for the same.
        """
        totals, calls = [0.0, 0.0], 0
        turns = sorted({at for _, at in places})
        for at in turns:
            here = {n for n, k in places if k == at}
            watches = [self._swapped(here, None, ""), self._swapped(here, candidate, name)]
            if watches[0] is None or watches[1] is None:
                return None
            fastest = _by_turns(
                [w for w in watches if w is not None],
                self.arguments[at],
                passes,
                seconds / len(turns),
            )
            for k, times in enumerate(fastest):
                totals[k] += sum(times)
            calls += len(fastest[0])
        return None if not calls else (totals[0] / calls, totals[1] / calls)

    def _swapped(
        self, names: Collection[str], candidate: Executable | None, name: str
    ) -> _Watched | None:
        """The program with the kernels of some names timed, or a candidate in their place."""
        infos, kernels = self.program.program.kernels, list(self.program.kernel_calls)
        found = _Watched()
        instead = _kernel(candidate, name) if candidate is not None else None
        for k, info in enumerate(infos):
            if info.name not in names:
                continue
            kernel = kernels[k] if candidate is None else instead
            if not isinstance(kernel, NativeKernel):
                return None
            if (kernel.info.buffers, kernel.info.sizes) != (info.buffers, info.sizes):
                return None
            kernels[k] = found.watching(kernel)
        found.call = self.program.calling(kernels)
        return found


def _kernel(executable: Executable, name: str) -> Kernel:
    """A kernel by name."""
    return executable.kernel_calls[executable.kernels.index(name)]


class _Watched:
    """Carries a program, and what some of its kernels took in its last run, call by call."""

    def __init__(self) -> None:
        self.call: Callable[..., object] = _nothing
        self.times: list[float] = []

    def watching(self, kernel: NativeKernel) -> Kernel:
        """A kernel that notes what it takes."""

        def run(arrays: Sequence[Array], sizes: Sequence[int]) -> int:
            code, seconds = kernel.timed(arrays, sizes)
            self.times.append(seconds)
            return code

        return run


def _nothing(*args: object) -> None:
    """No program yet."""


def _by_turns(
    programs: Sequence[_Watched], args: Sequence[object], passes: int, seconds: float
) -> list[list[float]]:
    """The fastest run of each call of the kernels that are watched, by program."""
    fastest: list[list[float]] = [[] for _ in programs]
    begin = time.perf_counter()
    for passed in count():
        spent = time.perf_counter() - begin
        if (passed >= passes and spent > seconds) or (passed >= _FIRST and spent > _LONG):
            break
        if passed == _FIRST and sum(fastest[-1]) > _HOPELESS * sum(fastest[0]):
            break
        for k, program in enumerate(programs):
            program.times.clear()
            program.call(*args)
            if passed:
                fastest[k] = list(map(min, fastest[k], program.times))
            else:
                fastest[k] = list(program.times)
    return fastest
