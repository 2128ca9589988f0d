"""`unity tune` and `unity db`: a search with a line that tells how far it is, and its records."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import unity
from unity.errors import UnityError
from unity.tuning.records import Best, FormRecord, Records, merge, prune
from unity.tuning.session import Progress as State

from .explain import WHOLE
from .feeds import sizes_of
from .model import read_model
from .options import Options
from .paths import program_in
from .source import only_models

_HEADINGS = ("kernel or call", "sizes", "us", "by default", "gain", "by", "machine", "date")
_SHARES = {"kernel or call": 5, "sizes": 3, "by": 3}
"""How what is cut shares what the other columns leave."""
_NARROW, _LONG = 120, {"by default", "machine", "date"}
"""Columns below which a terminal is shown records without some of it."""
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(text: str) -> float:
    """A time in words.

    Raises:
        UnityError: It is none.

    >>> seconds_of("90s"), seconds_of("10m"), seconds_of("1.5h")
    (90.0, 600.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None or not float(found[1]):
        raise UnityError(f"--time {text!r} is no time", hint="90s, 10m, 1h")
    return float(found[1]) * _UNITS[found[2]]


def tune_model(
    model: Path,
    db: Path,
    time: str | None,
    trials: int | None,
    dims: Sequence[str],
    kernels: Sequence[str],
    strategy: str,
    report: Path | None,
    seed: int,
    options: Options,
    scheduler: str | None,
    device: str,
) -> None:
    """Tune a model and print what was found.

    Raises:
        UnityError: An option is wrong, or the model can't be tuned here.
    """
    console = Console(highlight=False, markup=False)  # names are followed by sizes: k[h=224]
    only_models(model, "tune")
    seconds = None if time is None else seconds_of(time)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[told]}", markup=False),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        line = bar.add_task("tuning", total=seconds or trials, told="")

        def watch(state: State) -> None:
            done = state.seconds if seconds is not None else state.trials
            gain = state.before / state.now if state.now else 1.0
            told = (
                f"{state.trials} trials, kernels {state.now * 1e3:.3f} ms ({gain:.2f}x), "
                f"{state.pace:.1f} s a trial, {state.kernel}"
            )
            bar.update(line, completed=done, told=told)

        def steps(step: str) -> None:
            bar.update(line, description=step)

        found = unity.tune(
            str(model) if program_in(model) is None else read_model(model),
            db=db,
            trials=trials,
            seconds=seconds,
            sizes={**sizes_of(list(dims))},
            threads=options.threads,
            precision=options.precision,
            kernels=kernels,
            strategy=strategy,
            seed=seed,
            report=report,
            watch=watch,
            steps=steps,
            scheduler=scheduler,
            device=device,
        )
    told = found.text(console.width) if console.is_terminal else str(found)
    console.print(told, soft_wrap=True)
    also = "" if options.threads is None else f" --threads {options.threads}"  # a record's are so
    also += "" if options.precision == "f32" else f" --precision {options.precision}"
    console.print(f"unity run {model} --db {db}{also}   uses what is in {db}", soft_wrap=True)


def show_records(db: Path) -> None:
    """Print a table of the fastest of each kernel.

    Raises:
        UnityError: There is no such file, or it can't be read.
    """
    if not db.exists():
        raise UnityError(f"there is no file {db}")
    records = Records(db, read_only=True)
    found: list[tuple[Best | FormRecord, str, str]] = []
    found += [(r, r.kernel, r.space) for r in records.bests()]
    found += [(r, r.call, f"{r.form}, not {r.usual}") for r in records.forms() if r.worth]
    rows = [_row(*each) for each in sorted(found, key=lambda f: f[0].ratio)]
    console = Console(highlight=False, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WHOLE
    console.print(_table(rows, console.width))
    if console.width < _NARROW:
        machines = sorted({_machine(record.target) for record, _, _ in found})
        console.print("measured on", ", ".join(machines))
    console.print(f"{len(records)} records, {len(records.trials())} of them trials")


def _row(record: Best | FormRecord, of: str, by: str) -> tuple[str, ...]:
    """The cells of a record of some kernel or call, which something makes so fast."""
    return (
        f"{record.about} ({of[:8]})",
        ",".join(f"{name}={size}" for name, size in record.sizes),
        f"{record.seconds * 1e6:.1f}",
        f"{record.reference * 1e6:.1f}",
        f"{1 / record.ratio:.2f}x",
        by,
        _machine(record.target),
        record.date[:10],
    )


def _table(rows: Sequence[Sequence[str]], width: int) -> Table:
    """Records as a table; names are cut where there is no room for all."""
    shown = [k for k, h in enumerate(_HEADINGS) if width >= _NARROW or h not in _LONG]
    needed = sum(3 + max(len(row[k]) for row in (_HEADINGS, *rows)) for k in shown) + 1
    table = Table(expand=needed > width)
    for k in shown:
        share = _SHARES.get(_HEADINGS[k]) if needed > width else None
        table.add_column(_HEADINGS[k], no_wrap=True, ratio=share)
    for row in rows:
        table.add_row(*(row[k] for k in shown))
    return table


def _machine(target: str) -> str:
    """What a record calls a machine, in short: its cpu and how many threads."""
    words = target.split()
    return " ".join((words[2], *words[-2:])) if len(words) > 4 else target


def merge_records(sources: Sequence[Path], output: Path) -> None:
    """Merge files of records.

    Raises:
        UnityError: A file is missing, or can't be read or written.
    """
    count = merge(sources, output)
    Console(highlight=False, markup=False).print(f"{output}: {count} records")


def prune_records(db: Path) -> None:
    """Prune a file of records.

    Raises:
        UnityError: It is missing, or can't be read or written.
    """
    before, after = prune(db)
    Console(highlight=False, markup=False).print(f"{db}: {before} -> {after} records")
