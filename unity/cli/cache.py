"""`unity cache`: what the disk cache holds, and how to empty it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from unity.codegen.kernel_cache import FOLDER as KERNELS
from unity.codegen.llvm import default_folder
from unity.codegen.llvm.cache import FOLDER as OBJECTS
from unity.codegen.llvm.cache import why_unsafe
from unity.executable_cache import FOLDER as EXECUTABLES
from unity.tuning.database import FILE as MEASUREMENTS

KINDS = ((EXECUTABLES, "executables, by the model's file and all that was asked for"),
         (OBJECTS, "object code, by the LLVM text it was made from"),
         (KERNELS, "kernels, by what they were before their schedule"))  # fmt: skip


def entries(folder: Path, kind: str) -> dict[Path, int]:
    """The files of one kind in the cache's folder and their sizes; none if it can't be read."""
    found: dict[Path, int] = {}
    with contextlib.suppress(OSError):
        for file in (folder / kind).glob("*/*"):
            with contextlib.suppress(OSError):  # it was removed meanwhile
                if file.is_file():
                    found[file] = file.stat().st_size
    return found


def summary(folder: Path) -> str:
    """The folder, how much it holds, and what is wrong with it, in a line."""
    found = {kind: entries(folder, kind) for kind, _ in KINDS}
    counts = [f"{len(files)} {kind}" for kind, files in found.items()]
    total = sum(sum(files.values()) for files in found.values())
    gap = _gap(folder)
    why = "" if gap is None else f"; nothing is kept: {gap}"
    return f"{folder}: {', '.join(counts)}, {total >> 10} KiB{why}"


def _gap(folder: Path) -> str | None:
    """Why nothing can be kept in a folder; None if it can, or if it can be made."""
    there = folder
    while not os.path.exists(there) and there != there.parent:
        there = there.parent
    if not os.path.isdir(there):
        return f"{there} is no folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} can't be written to"
    return why_unsafe(folder)


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
        files += [measured] if clear_measurements and os.path.isfile(measured) else []
        removed = 0
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink()
                removed += 1
        console.print(f"removed {removed} files")
    table = Table("entries", "KiB", "what", title=str(folder))
    for kind, what in KINDS:
        found = entries(folder, kind)
        table.add_row(str(len(found)), str(sum(found.values()) >> 10), what)
    table.add_row(*_measurements(measured))
    console.print(table)


def _measurements(file: Path) -> tuple[str, str, str]:
    """The row of what was measured."""
    what = "measurements, by what was measured (removed by --clear-measurements)"
    try:
        data = file.read_bytes() if file.exists() else b""
    except OSError as error:
        return "?", "?", f"measurements, which can't be read: {error.strerror or error}"
    return str(data.count(b"\n")), str(len(data) >> 10), what
