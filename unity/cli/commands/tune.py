"""Commands that search schedules: tune, worker, and db with show, merge, prune."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..options import Options
from .arguments import Dims, Model, Precision, Seed, Threads

Db = Annotated[Path, typer.Argument(help="A file of records.", show_default=False)]


def tune(
    model: Model,
    db: Annotated[
        Path, typer.Option(help="The file of records, made if there is none and added to.")
    ],
    time: Annotated[
        str | None,
        typer.Option(help="How long, besides compiling it: 90s, 10m, 1h.", show_default=False),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Candidates at most.", min=1, show_default=False)
    ] = None,
    dim: Dims = None,
    kernel: Annotated[
        list[str] | None, typer.Option("--kernel", help="A kernel to tune; all of them.")
    ] = None,
    strategy: Annotated[
        Literal["evolution", "annealing", "random"], typer.Option(help="Where candidates come from")
    ] = "evolution",
    report: Annotated[
        Path | None, typer.Option(help="A folder for the report: JSON, and a chart by matplotlib.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="tcp://HOST:PORT of dask's scheduler: its workers measure."),
    ] = None,
    device: Annotated[str, typer.Option(help="The label of workers to measure on.")] = "cpu",
    threads: Threads = None,
    precision: Precision = "f32",
    seed: Seed = 0,
) -> None:
    """Search faster schedules for a model's kernels by measuring; Ctrl-C keeps what was found."""
    from ..tune import tune_model

    options = Options(threads, precision)
    tune_model(
        model, db, time, trials, dim or [], kernel or [], strategy, report, seed, options,
        scheduler, device,
    )  # fmt: skip


def worker(
    address: Annotated[str, typer.Argument(help="tcp://HOST:PORT of dask's scheduler.")],
    device: Annotated[str, typer.Option(help="What this machine is called.")] = "cpu",
) -> None:
    """Measure candidates for `unity tune --scheduler` on this machine, one at a time."""
    from unity.tuning.fleet import serve_device

    serve_device(address, device)


def db_show(db: Db) -> None:
    """Tell what a file of records holds: for each kernel the fastest that was found."""
    from ..tune import show_records

    show_records(db)


def db_merge(
    sources: Annotated[list[Path], typer.Argument(help="Files of records.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
) -> None:
    """Write the records of several files to one, equal ones once."""
    from ..tune import merge_records

    merge_records(sources, output)


def db_prune(db: Db) -> None:
    """Drop what `unity compile --db` does not use: trials, and records that were beaten."""
    from ..tune import prune_records

    prune_records(db)
