"""What each kernel of an executable takes, told by the variables of the program it was made from.

Kernels are labelled by what they compute. A variable that has none of its own is computed where the
next one is that it alone goes into: bias and activation behind a product. So any two ways to
resolve a program can be compared part by part, each as it runs within the whole.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from unity.ir.graph import Var
from unity.runtime.bytecode import CallKernel
from unity.runtime.executable import Executable
from unity.runtime.vm import Event
from unity.transform.graph.origins import LAID_OUT
from unity.transform.pattern import Graph

_RUNS, _SECONDS = 4, 0.6
"""Runs at least, and how long there may be more of them."""

Calls: TypeAlias = Sequence[tuple[str, float]]
"""The label of each call of a kernel in a program, in order, and the seconds that it takes."""


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Seconds by kernel of one executable.

    Attributes:
        seconds: Of each call of a kernel, in order.
        of: For variables of the program, the call that computes them.
    """

    seconds: tuple[float, ...]
    of: Mapping[Var, int]

    @property
    def rest(self) -> float:
        """What belongs to no variable: transposes between layouts, products merged."""
        known = set(self.of.values())
        return sum(t for i, t in enumerate(self.seconds) if i not in known)

    def groups(self) -> list[tuple[Var, ...]]:
        """The variables that are computed together, in order."""
        found: dict[int, list[Var]] = {}
        for var, at in self.of.items():
            found.setdefault(at, []).append(var)
        return [tuple(found[at]) for at in sorted(found)]

    def time(self, members: Collection[Var]) -> float:
        """What some variables take: their share of every kernel that computes any of them."""
        inside: dict[int, int] = {}
        for var in members:
            if var in self.of:
                inside[self.of[var]] = inside.get(self.of[var], 0) + 1
        every: dict[int, int] = {}
        for at in self.of.values():
            if at in inside:
                every[at] = every.get(at, 0) + 1
        return sum(self.seconds[at] * count / every[at] for at, count in inside.items())


def kernel_times(calls: Calls, graphs: Sequence[Graph]) -> KernelTimes:
    """What each kernel takes, told by variables.

    Args:
        calls: What `kernel_calls` gives of an executable.
        graphs: The program it was made from: its body, and those nested in it.
    """
    called = {_name(label): i for i, (label, _) in enumerate(calls)}
    found = {var: g.computed_with(var, called) for g in graphs for var in g.values}
    of = {var: called[name] for var, name in found.items() if name is not None}
    return KernelTimes(tuple(seconds for _, seconds in calls), of)


def kernel_calls(
    executables: Sequence[Executable], inputs: Sequence[Sequence[object]]
) -> list[Calls]:
    """Run executables by turns in the bytecode interpreter; the fastest run of each kernel counts.

    Args:
        executables: What to run.
        inputs: Arguments to run on, each in turn; their times are added up.
    """
    runs = [_Runs() for _ in executables]
    for args in inputs:
        for of in runs:
            of.begin()
        begin, limit = time.perf_counter(), _SECONDS * len(runs)
        turn = 0
        while turn <= _RUNS or (turn < 10 * _RUNS and time.perf_counter() - begin < limit):
            for of, executable in zip(runs, executables, strict=True):
                of.run(executable, args, counts=turn > 0)  # the first one warms up
            turn += 1
        for of in runs:
            of.end()
    return [of.calls() for of in runs]


class _Runs:
    """Carries what the kernels of an executable take: for all arguments, and for those at hand."""

    def __init__(self) -> None:
        self.totals: dict[tuple[str, int], float] = {}
        self.labels: dict[tuple[str, int], str] = {}
        self.best: dict[tuple[str, int], float] = {}

    def begin(self) -> None:
        self.best = {}

    def run(self, executable: Executable, args: Sequence[object], *, counts: bool) -> None:
        events: list[Event] = []
        executable.trace(events.append, *args)
        once: dict[tuple[str, int], float] = {}
        for event in events:
            if isinstance(event.instruction, CallKernel):
                key = (event.function, event.index)
                self.labels[key] = event.label
                once[key] = once.get(key, 0.0) + event.seconds
        for key, seconds in once.items() if counts else ():
            self.best[key] = min(self.best.get(key, seconds), seconds)

    def end(self) -> None:
        for key, seconds in self.best.items():
            self.totals[key] = self.totals.get(key, 0.0) + seconds

    def calls(self) -> Calls:
        return [(self.labels[key], self.totals[key]) for key in sorted(self.totals)]


def _name(label: str) -> str:
    """The variable that a label begins with."""
    return label.partition(", ")[0].removesuffix(LAID_OUT)
