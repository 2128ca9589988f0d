"""`unity migrate`: a Relay model as a Python program with its weights, and a report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from unity.frontend.relay.migration import migrate

from .examples import read_examples


def migrate_model(model: Path, params: Path | None, examples: Path | None, output: Path) -> None:
    """Write the program, its weights and the report, and print the report."""
    console = Console(highlight=False)
    with console.status(f"translating {model.name}"):
        found = migrate(model, params, examples=read_examples(examples))
    written = found.write(output)
    console.print(found.report, markup=False, soft_wrap=True)
    for file in written:
        console.print(f"wrote {file}: {file.stat().st_size / 1e3:.1f} kB")
