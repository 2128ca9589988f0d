"""`unity cache`: what the disk cache holds, and how to empty it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rich.console import Console
from rich.table import Table

from unity.codegen.kernel_cache import FOLDER as KERNELS
from unity.codegen.llvm import default_folder
from unity.codegen.llvm.cache import FOLDER as OBJECTS
from unity.tune.database import FILE as MEASUREMENTS

KINDS = ((OBJECTS, "object code, by the LLVM text it was made from"),
         (KERNELS, "kernels, by what they were before their schedule"))  # fmt: skip


def entries(folder: Path, kind: str) -> list[Path]:
    """The files of one kind in the cache's folder."""
    return [file for file in (folder / kind).glob("*/*") if file.is_file()]


def summary(folder: Path) -> str:
    """The folder and how much it holds, in a line."""
    counts = [f"{len(entries(folder, kind))} {kind}" for kind, _ in KINDS]
    total = sum(f.stat().st_size for kind, _ in KINDS for f in entries(folder, kind))
    return f"{folder}: {', '.join(counts)}, {total >> 10} KiB"


def show_cache(clear: bool, clear_measurements: bool) -> None:
    """Print what there is; remove compiled code, or what was measured, first if asked to."""
    console = Console(highlight=False)
    folder = default_folder()
    if folder is None:
        console.print("no cache: UNITY_CACHE_DIR is off")
        return
    measured = folder / MEASUREMENTS
    if clear or clear_measurements:
        files = [f for kind, _ in KINDS for f in entries(folder, kind)] if clear else []
        files += [measured] if clear_measurements and measured.exists() else []
        removed = 0
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink()
                removed += 1
        console.print(f"removed {removed} files")
    table = Table("entries", "KiB", "what", title=str(folder))
    for kind, what in KINDS:
        found = entries(folder, kind)
        size = sum(file.stat().st_size for file in found)
        table.add_row(str(len(found)), str(size >> 10), what)
    if measured.exists():
        data = measured.read_bytes()
        what = "measurements, by what was measured (removed by --clear-measurements)"
        table.add_row(str(data.count(b"\n")), str(len(data) >> 10), what)
    console.print(table)
