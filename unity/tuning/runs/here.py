"""Running what a program was compiled to in several ways: whether results agree, and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from unity.runtime.executable import Executable
from unity.transform.graph.resolve.call_site import TIR

from ..agreement import copied, disagreement
from ..kernel_times import Calls, kernel_calls
from ..race import interleaved


class ProgramRuns(Protocol):
    """Runs what a program was compiled to, by name."""

    def take(self, name: str, made: Executable) -> str | None:
        """Keep it, and run it once; why its results are none, or others than ours.

        Raises:
            UnityError: It does not run.
        """
        ...

    def run(self, name: str) -> None:
        """Run what was taken once, at all sizes."""
        ...

    def times(self, names: Sequence[str], seconds: float) -> Sequence[float]:
        """What runs of some of it take, all in turns, each for some seconds."""
        ...

    def kernels(self, names: Sequence[str]) -> Sequence[Calls]:
        """What each call of a kernel takes in some of it, which run by turns."""
        ...

    def forget(self) -> None:
        """Let go of all."""
        ...


class RunsHere:
    """Runs them in this process. Carries them, and the results of the first, which is ours.

    Args:
        inputs: What with: the arguments for each of some sizes.
        tolerance: How far results may be apart, relative to the largest.
    """

    def __init__(self, inputs: Callable[[], Sequence[Sequence[object]]], tolerance: float) -> None:
        self._inputs, self._tolerance = inputs, tolerance
        self._taken: dict[str, Executable] = {}
        self._expected: Sequence[object] | None = None

    def take(self, name: str, made: Executable) -> str | None:
        """Keep it, and run it once."""
        results = [copied(made(*args)) for args in self._inputs()]
        if self._expected is not None:
            why = disagreement(results, self._expected, self._tolerance)
            if why is not None:
                return why
        elif name == TIR:
            self._expected = results
        self._taken[name] = made
        return None

    def run(self, name: str) -> None:
        """Run one once."""
        for args in self._inputs():
            self._taken[name](*args)

    def times(self, names: Sequence[str], seconds: float) -> Sequence[float]:
        """What runs of some take, all in turns."""
        return race_of([self._taken[n] for n in names], self._inputs(), seconds)

    def kernels(self, names: Sequence[str]) -> Sequence[Calls]:
        """What each call of a kernel takes in some."""
        return kernel_calls([self._taken[n] for n in names], self._inputs())

    def forget(self) -> None:
        """Let go of all."""
        self._taken.clear()
        self._expected = None


def race_of(
    executables: Sequence[Executable], inputs: Sequence[Sequence[object]], seconds: float
) -> list[float]:
    """What a run of each takes, all in turns, for all inputs together."""
    many = any(e.target.threads > 1 for e in executables)
    each = [interleaved(executables, args, seconds, spinning=many) for args in inputs]
    return [sum(times) for times in zip(*each, strict=True)]
