"""What executables report of time: benchmarks of whole calls, profiles by instruction."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from unity import notebook
from unity.errors import UnityError
from unity.runtime.bytecode import CallKernel
from unity.runtime.vm import Event


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Times of a call in seconds."""

    seconds: tuple[float, ...]

    @property
    def min(self) -> float:
        """The least."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)

    @property
    def mean(self) -> float:
        """The average."""
        return statistics.fmean(self.seconds)

    def __str__(self) -> str:
        """In a line."""
        times = f"min {_time(self.min)}, median {_time(self.median)}, mean {_time(self.mean)}"
        return f"{times} ({len(self.seconds)} runs)"

    def _repr_html_(self) -> str:
        row = [_time(t) for t in (self.min, self.median, self.mean)]
        title = f"{len(self.seconds)} runs"
        return notebook.page(notebook.table(("min", "median", "mean"), [row], title))


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An instruction's share: what it runs and computes, how often and how long in all."""

    what: str
    label: str
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Times by instruction, the slowest first.

    Attributes:
        rows: What was timed, of one call.
        what: What the times are of.
        whole: The fastest whole call of some, in seconds; None if none was timed.
    """

    rows: tuple[ProfileRow, ...]
    what: str = ""
    whole: float | None = None

    @property
    def total(self) -> float:
        """The sum in seconds."""
        return sum(r.seconds for r in self.rows)

    def __str__(self) -> str:
        """As a table."""
        width = max((len(r.what) for r in self.rows), default=4)
        total = self.total or 1.0
        lines = [f"{'what':{width}}  {'calls':>5}  {'time':>9}  {'share':>6}  computes"]
        for r in self.rows:
            share = f"{r.seconds / total:6.1%}"
            lines.append(
                f"{r.what:{width}}  {r.calls:5}  {_time(r.seconds):>9}  {share}  {r.label}".rstrip()
            )
        lines.append(f"{'in all':{width}}  {'':5}  {_time(self.total):>9}")
        if self.whole is not None:
            lines.append(f"{'a call':{width}}  {'':5}  {_time(self.whole):>9}")
        return "\n".join([*lines, *([self.what] if self.what else [])])

    def _repr_html_(self) -> str:
        total = self.total or 1.0
        rows = [
            (r.what, r.calls, _time(r.seconds), notebook.share(r.seconds / total), r.label)
            for r in self.rows
        ]
        whole = "" if self.whole is None else f"; a call {_time(self.whole)}"
        made = notebook.table(
            ("what", "calls", "time", "share", "computes"),
            rows,
            f"{_time(self.total)} in all{whole}",
        )
        return notebook.page(made, *([notebook.note(self.what)] if self.what else []))


def benchmark(call: Callable[[], object], repeat: int, warmup: int) -> Benchmark:
    """Time a call some times, after some that don't count."""
    if repeat < 1:
        raise UnityError(f"repeat={repeat}: there is nothing to time")
    for _ in range(warmup):
        call()
    seconds: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return Benchmark(tuple(seconds))


def profile(
    events: Iterable[Event], kernels: Sequence[str], what: str = "", whole: float | None = None
) -> Profile:
    """Sum up events by instruction.

    Args:
        events: Instructions that have run.
        kernels: The program's kernels' names.
        what: What the times are of.
        whole: Seconds of a whole call.
    """
    sums: dict[tuple[str, int], ProfileRow] = {}
    for e in events:
        name = type(e.instruction).__name__
        if isinstance(e.instruction, CallKernel):
            name = kernels[e.instruction.kernel]
        old = sums.get((e.function, e.index), ProfileRow(name, e.label, 0, 0.0))
        new = ProfileRow(name, e.label, old.calls + 1, old.seconds + e.seconds)
        sums[e.function, e.index] = new
    rows = tuple(sorted(sums.values(), key=lambda r: -r.seconds))
    return Profile(rows, what, whole)


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
