"""`unity cache`: what the disk cache holds, and how to empty it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rich.console import Console
from rich.table import Table

from unity.codegen.kernel_cache import FOLDER as KERNELS
from unity.codegen.llvm import default_folder
from unity.codegen.llvm.cache import FOLDER as OBJECTS

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


def show_cache(clear: bool) -> None:
    """Print what there is; remove it first if asked to."""
    console = Console(highlight=False)
    folder = default_folder()
    if folder is None:
        console.print("no cache: UNITY_CACHE_DIR is off")
        return
    if clear:
        removed = 0
        for file in (f for kind, _ in KINDS for f in entries(folder, kind)):
            with contextlib.suppress(OSError):
                file.unlink()
                removed += 1
        console.print(f"removed {removed} files")
    table = Table("entries", "KiB", "what", title=str(folder))
    for kind, what in KINDS:
        found = entries(folder, kind)
        size = sum(file.stat().st_size for file in found)
        table.add_row(str(len(found)), str(size >> 10), what)
    console.print(table)
