"""``unity explain``: what each call site is resolved to."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from unity.errors import UnityError
from unity.runtime.artifact.naming import is_executable
from unity.runtime.artifact.read import read_explanation
from unity.runtime.explanation import Explanation

from .feeds import sizes_of
from .options import Options

DEFAULT = (
    "These are the choices of --resolve static; where nothing is asked for, run, bench and compile "
    "take Unity's own kernels (tir) alone."
)
WHOLE = 10_000
"""Columns where there is no terminal: a table is as wide as what is in it."""


def explain_model(
    model: Path,
    resolve: str | None,
    dims: list[str],
    json: bool,
    options: Options,
) -> None:
    """Print the table of a model's call sites, or of those of an executable as it was compiled."""
    found = _stored(model, resolve, dims, options) if is_executable(model) else None
    by_default = found is None and resolve is None
    if found is None:
        found = _compiled(model, resolve or "static", dims, options)
    if json:
        print(found.to_json())
    else:
        console = Console(width=None if sys.stdout.isatty() else WHOLE)
        console.print(found)
        if by_default:
            console.print(DEFAULT, highlight=False)


def _stored(path: Path, resolve: str | None, dims: list[str], options: Options) -> Explanation:
    if resolve is not None or dims or options.db is not None or options.precision != "f32":
        raise UnityError(
            f"{path} is compiled: what its calls are resolved to was chosen then",
            hint="without --resolve, --measure, --dim, --precision and --db its own table is shown",
        )
    return read_explanation(path)


def _compiled(model: Path, resolve: str, dims: list[str], options: Options) -> Explanation:
    from unity.compiler import compile as unity_compile

    from .model import read_model

    sizes = sizes_of(dims) or None
    executable = unity_compile(read_model(model), **options.compiling, resolve=resolve, sizes=sizes)
    return executable.explain()
