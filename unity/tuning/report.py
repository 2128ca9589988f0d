"""What a session of tuning found, for people: a table, a chart, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from logging import getLogger
from pathlib import Path
from typing import Any

from unity import notebook
from unity.errors import UnityError

log = getLogger("unity")
_WIDE, _NAME, _SHORT = 104, 40, 12
"""Columns that a table needs, and those of a kernel's name: usually, and at least."""


@dataclass(frozen=True, slots=True)
class FormReport:
    """What became of a call that is computed in another form than by default.

    Attributes:
        site: Its name: ``function/variable``.
        usual: Its form by default.
        form: Its form now.
        before: Seconds of its kernel in the first.
        after: In the second, by the schedule that this has by default.
    """

    site: str
    usual: str
    form: str
    before: float
    after: float

    def __str__(self) -> str:
        """As a line."""
        times = f"{self.before * 1e6:.1f} -> {self.after * 1e6:.1f} us"
        gain = f"{self.before / self.after:.2f}x" if self.after else ""
        return f"{self.site} by {self.form}, not {self.usual}: {times} ({gain})"


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What became of a kernel.

    Attributes:
        name: What the program calls it.
        kernel: What records call it.
        sizes: At which sizes.
        calls: How often the program calls it.
        trials: Candidates measured.
        before: Seconds of a call by default.
        after: Seconds of a call now.
        space: Where the fastest is from.
        point: What is decided there.
        curve: After each trial what the fastest took of the default's time.
    """

    name: str
    kernel: str
    sizes: tuple[tuple[str, int], ...]
    calls: int
    trials: int
    before: float
    after: float
    space: str
    point: str
    curve: tuple[float, ...]

    @property
    def shown(self) -> str:
        """The kernel, with its sizes."""
        sizes = ",".join(f"{n}={v}" for n, v in self.sizes)
        return f"{self.name}[{sizes}]" if sizes else self.name

    @property
    def gain(self) -> float:
        """How many times as fast as before."""
        return self.before / self.after if self.after else 1.0


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What a session found.

    Attributes:
        target: The machine.
        trials: Candidates measured.
        seconds: How long it took.
        kernels: What became of each, those that take most first.
        whole: Seconds of a call of the whole program by default and tuned; None if not measured,
            as it is not where nothing faster was found.
        over_time: Seconds since the begin, trials, what all kernels take together.
        stopped: Whether it was stopped before its end.
        short: Whether there was no time to confirm something that was found.
        forms: Calls that are computed in another form than by default.
        steps: What was done, and the seconds that each of it took.
        forms_short: What a program of other forms takes to compile, about, where there was no time
            to compile one more.
    """

    target: str
    trials: int
    seconds: float
    kernels: tuple[KernelReport, ...]
    whole: tuple[float, float] | None = None
    over_time: tuple[tuple[float, int, float], ...] = ()
    stopped: bool = False
    short: bool = False
    forms: tuple[FormReport, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    forms_short: float | None = None

    @property
    def before(self) -> float:
        """Seconds of all kernels together by default."""
        return sum(k.before * k.calls for k in self.kernels)

    @property
    def after(self) -> float:
        """Seconds of all kernels together now."""
        return sum(k.after * k.calls for k in self.kernels)

    @property
    def gained(self) -> bool:
        """Whether a kernel is faster than by default, or a call in another form."""
        return bool(self.forms) or any(k.gain > 1 for k in self.kernels)

    def __str__(self) -> str:
        """As a table."""
        return self.text()

    def text(self, width: int = _WIDE) -> str:
        """As a table.

        Args:
            width: Columns that there are: in few, names are cut, and neither calls nor spaces told.
        """
        wide = width >= _WIDE
        name = _NAME if wide else max(_SHORT, width - len(_heading("", 0, wide=False)))
        lines = [*self._told(), _heading("kernel", name, wide=wide)]
        for k in self.kernels:
            shown = k.shown if len(k.shown) <= name else f"{k.shown[: name - 1]}…"
            line = f"{shown:{name}} {k.calls:5}" if wide else f"{shown:{name}}"
            line += f" {k.trials:6} "
            if not k.before:
                lines.append(f"{line}not measured")
                continue
            line += f"{k.before * 1e6:10.1f} {k.after * 1e6:10.1f} {k.gain:5.2f}x"
            lines.append(f"{line}  {k.space}" if wide and k.gain > 1 else line)
        return "\n".join(lines)

    def _told(self) -> list[str]:
        """What was gained in all, in a few lines."""
        lines = [
            f"{self.trials} trials in {self.seconds:.0f} s{' (stopped)' if self.stopped else ''}; "
        ]
        if self.after:
            gain = self.before / self.after
            lines[0] += (
                f"kernels together {self.before * 1e3:.3f} -> {self.after * 1e3:.3f} ms "
                f"({gain:.2f}x)"
            )
        else:
            lines[0] += "the time was too short for one: what to try has to be found first"
        if self.whole is not None:
            was, now = self.whole
            lines.append(f"whole program {was * 1e3:.3f} -> {now * 1e3:.3f} ms ({was / now:.2f}x)")
        lines += [str(f) for f in self.forms]
        if self.steps:
            lines.append(", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.steps))
        if self.forms_short is not None:
            lines.append(
                "there was no time to measure all forms of calls: the program in other forms takes "
                f"{self.forms_short:.0f} s to compile"
            )
        if self.short:
            lines.append(
                "there was no time to confirm all that was found: what is left is not used, and "
                "another session begins with it"
            )
        elif not self.gained:
            lines.append("nothing faster was found: the program stays what it is")
        return lines

    def _repr_html_(self) -> str:
        rows: list[Sequence[notebook.Cell]] = []
        for k in self.kernels:
            times = (f"{k.before * 1e6:.1f}", f"{k.after * 1e6:.1f}", f"{k.gain:.2f}x")
            space = k.space if k.gain > 1 else ""
            measured = (*times, space) if k.before else ("not measured", "", "", "")
            rows.append((k.shown, k.calls, k.trials, *measured))
        headings = ("kernel", "calls", "trials", "us", "tuned us", "gain", "space")
        title, *notes = self._told()
        made = notebook.table(headings, rows, title)
        return notebook.page(made, *map(notebook.note, notes))

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=1)

    def save(self, folder: Path | str) -> list[Path]:
        """Write ``tuning.json``, and ``tuning.png`` where matplotlib is installed.

        Where it is not, the logger ``unity`` tells that there is no chart.

        Returns:
            The files that were written.

        Raises:
            UnityError: They can't be written.
        """
        where = Path(folder)
        try:
            where.mkdir(parents=True, exist_ok=True)
            written = [where / "tuning.json"]
            written[0].write_text(self.to_json() + "\n")
            if _chart(self, where / "tuning.png"):
                written.append(where / "tuning.png")
            else:
                log.warning("%s has no chart: matplotlib is not installed (unity[tune])", where)
        except OSError as error:
            raise UnityError(f"the report can't be written to {where}: {error.strerror}") from error
        return written


def _heading(kernel: str, name: int, *, wide: bool) -> str:
    calls = f" {'calls':>5}" if wide else ""
    return f"{kernel:{name}}{calls} {'trials':>6} {'us':>10} {'tuned us':>10} {'gain':>6}"


def _chart(report: TuningReport, path: Path) -> bool:
    """The chart, if it can be drawn: the whole over time, and each kernel by trials."""
    try:
        import_module("matplotlib").use("Agg")
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError:
        return False
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.5))
    seconds: Sequence[float] = [p[0] for p in report.over_time]
    left.step(seconds, [p[2] * 1e3 for p in report.over_time], where="post")
    left.axhline(report.before * 1e3, linestyle="--", color="grey", label="by default")
    left.set(xlabel="seconds", ylabel="ms, all kernels together", title="The program over time")
    left.legend()
    for k in report.kernels[:10]:
        right.step(range(1, len(k.curve) + 1), k.curve, where="post", label=k.name[:28])
    right.set(xlabel="trials", ylabel="share of the default's time", title="Kernels by trials")
    if report.kernels:
        right.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True
