"""`unity run`: compile a model, run it once, show or store the outputs."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from unity.compiler import compile as unity_compile
from unity.compiler import load
from unity.ir.dtype import Array
from unity.runtime.executable import Executable
from unity.transform import Precision

from .feeds import feeds_for, main_function


def compiled(
    model: Path, threads: int | None, console: Console, precision: Precision = "f32"
) -> tuple[Executable, float, float]:
    """The executable, and the seconds that importing and compiling took."""
    start = time.perf_counter()
    with console.status(f"importing {model.name}"):
        module = load(model)
    imported = time.perf_counter()
    with console.status(f"compiling {model.name}"):
        executable = unity_compile(module, threads=threads, precision=precision)
    return executable, imported - start, time.perf_counter() - imported


def run_model(
    model: Path,
    files: list[str],
    dims: list[str],
    output: Path | None,
    threads: int | None,
    seed: int,
    precision: Precision = "f32",
) -> None:
    """Run and report; `files` and `dims` are the options as given."""
    console = Console(highlight=False)
    function = main_function(load(model))
    feeds = feeds_for(function, files, dims, seed)
    executable, imported, took = compiled(model, threads, console, precision)
    start = time.perf_counter()
    results = executable.run(feeds)
    first = time.perf_counter() - start
    console.print(
        f"{model.name}: imported in {imported:.2f} s, compiled in {took:.2f} s, "
        f"first run {first * 1e3:.2f} ms"
    )
    table = Table("output", "dtype", "shape", "first values")
    for name, value in results.items():
        table.add_row(name, str(value.dtype), str(list(value.shape)), preview(value))
    console.print(table)
    if output is not None:
        arrays = {name: np.asarray(value) for name, value in results.items()}
        np.savez(output, allow_pickle=False, **arrays)
        console.print(f"wrote {output}")


def preview(value: Array) -> str:
    """The first few numbers."""
    items = [f"{v:.5g}" if value.dtype.kind == "f" else str(v) for v in value.ravel()[:6]]
    return ", ".join(items) + (" ..." if value.size > 6 else "")
