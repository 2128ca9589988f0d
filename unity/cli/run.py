"""`unity run`: compile a model or load an executable, run it once, show or store the outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from unity.ir.dtype import Array

from .feeds import flat
from .options import Options
from .source import ready


def run_model(
    model: Path,
    files: list[str],
    dims: list[str],
    output: Path | None,
    seed: int,
    options: Options,
    hosts: Sequence[str] = (),
) -> None:
    """Run and report; `files` and `dims` are the options as given."""
    console = Console(highlight=False)
    given = ready(model, files, dims, seed, console, options, hosts)
    start = time.perf_counter()
    found = given.run()
    first = time.perf_counter() - start
    results = flat(found)
    console.print(f"{model.name}: {given.report}, first run {first * 1e3:.2f} ms")
    table = Table("output", "dtype", "shape", "first values")
    for name, value in results.items():
        table.add_row(name, str(value.dtype), str(list(value.shape)), preview(value))
    console.print(table)
    if output is not None:
        np.savez(output, allow_pickle=False, **results)
        console.print(f"wrote {output}")


def preview(value: Array) -> str:
    """The first few numbers."""
    items = [f"{v:.5g}" if value.dtype.kind == "f" else str(v) for v in value.ravel()[:6]]
    return ", ".join(items) + (" ..." if value.size > 6 else "")
