"""``unity explain``: what each call site is resolved to."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from unity.compiler import compile as unity_compile
from unity.compiler import load

from .feeds import sizes_of


def explain_model(
    model: Path, resolve: str, dims: list[str], json: bool, threads: int | None
) -> None:
    """Compile a model and print the table of its call sites."""
    sizes = sizes_of(dims) or None
    found = unity_compile(load(model), resolve=resolve, sizes=sizes, threads=threads).explain()
    if json:
        print(found.to_json())
    else:
        Console().print(found)
