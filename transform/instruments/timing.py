"""How long each pass takes, as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from unity import notebook
from unity.arguments import public_class
from unity.ir.module import IRModule

from ..passes import Context, Pass


@public_class
@dataclass(slots=True)
class Timing:
    """Measures wall-clock time; `str` of it is the table, in the order the passes ran.

    A pass that occurs several times has one row.
    """

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    _started: float = field(default=0.0, init=False)

    def before(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Start the clock."""
        self._started = perf_counter()

    def after(self, step: Pass, module: IRModule, ctx: Context) -> None:
        """Stop the clock and add to the pass's row."""
        elapsed = perf_counter() - self._started
        self.seconds[step.name] = self.seconds.get(step.name, 0.0) + elapsed
        self.calls[step.name] = self.calls.get(step.name, 0) + 1

    @property
    def total(self) -> float:
        """Seconds in all passes."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        """The table: pass, runs, milliseconds, share."""
        width = max((len(name) for name in self.seconds), default=4)
        whole = self.total or 1.0
        rows = [
            f"{name:<{width}} {self.calls[name]:>4} {s * 1e3:>10.2f} ms {s / whole:>6.1%}"
            for name, s in self.seconds.items()
        ]
        total = f"{'total':<{width}} {'':>4} {self.total * 1e3:>10.2f} ms"
        return "\n".join([*rows, total])

    def _repr_html_(self) -> str:
        whole = self.total or 1.0
        rows = [
            (name, self.calls[name], f"{s * 1e3:.2f}", notebook.share(s / whole))
            for name, s in self.seconds.items()
        ]
        title = f"{self.total * 1e3:.2f} ms in all passes"
        return notebook.page(notebook.table(("pass", "runs", "ms", "share"), rows, title))
