"""`unity check`: a compiled model against the ONNX reference implementation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from unity.errors import UnityError
from unity.ir.dtype import RTOL, Array

from .feeds import Feed, flat, named_as_in_the_model
from .options import Options
from .paths import program_in
from .source import only_models, ready


def check_model(
    model: Path,
    files: list[str],
    dims: list[str],
    tolerance: float | None,
    seed: int,
    options: Options,
) -> None:
    """Compare every output and print the largest differences.

    Raises:
        UnityError: An output differs by more than `tolerance` relative to its largest value; where
            that is None, by more than the narrowest floats of the model can tell (`RTOL`).
    """
    from unity.frontend.relay import is_relay

    console = Console(highlight=False)
    only_models(model, "check")
    given = ready(model, files, dims, seed, console, options)
    results = flat(given.run())
    if program_in(model) is not None or is_relay(model):
        with console.status("running the interpreter"):
            names, expected = list(results), _interpreted(model, options, given.feeds)
    else:
        with console.status("running the ONNX reference implementation"):
            found = _reference(model, named_as_in_the_model(given.inputs, given.feeds))
        if isinstance(found, str):
            console.print(f"{found}; Unity's interpreter computes it instead", soft_wrap=True)
            names, expected = list(results), _interpreted(model, options, given.feeds)
        else:
            names, expected = list(found), list(found.values())
    table = Table("output", "shape", "max abs", "max rel", "")
    wrong: list[str] = []
    if tolerance is None:
        arrays = (*given.executable.constants, *flat(given.feeds).values(), *results.values())
        tolerance = max(RTOL["float32"], *(RTOL.get(np.asarray(a).dtype.name, 0.0) for a in arrays))
    for name, got, want in zip(names, results.values(), expected, strict=True):
        worst, relative = difference(np.asarray(got), np.asarray(want))
        fits = relative <= tolerance
        if not fits:
            wrong.append(str(name))
        verdict = "[green]equal" if fits else "[red]differs"
        table.add_row(str(name), str(list(got.shape)), f"{worst:.3g}", f"{relative:.3g}", verdict)
    console.print(table)
    if wrong:
        raise UnityError(
            f"{', '.join(wrong)} differ by more than {tolerance:g}",
            hint="`compile(..., check=True)` finds the first pass after which numbers differ",
        )


def difference(got: Array, want: Array) -> tuple[float, float]:
    """Largest absolute difference, and the same relative to the largest expected value."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf"), float("inf")
    if not want.size:
        return 0.0, 0.0
    if want.dtype.kind not in "fV":
        worst = float(np.count_nonzero(got != want))
        return worst, worst
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf"), float("inf")
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf"), float("inf")
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return worst, worst / max(float(np.abs(b[finite]).max(initial=0.0)), 1e-30)


def _reference(model: Path, feeds: Mapping[str, Feed]) -> dict[str, Array] | str:
    """What ONNX's reference implementation gives by output, or what it lacks."""
    from onnx.reference import ReferenceEvaluator

    try:
        reference = ReferenceEvaluator(str(model))
    except (NotImplementedError, RuntimeError) as error:  # an operator, or one of this version
        return f"ONNX's reference implementation can't run {model.name} ({error})"
    found = reference.run(None, dict(feeds))
    return {str(n): np.asarray(v) for n, v in zip(reference.output_names, found, strict=True)}


def _interpreted(model: Path, options: Options, feeds: Mapping[str, Feed]) -> list[Array]:
    """What a model gives that no other implementation is there for: by the interpreter."""
    from unity.compilation import main_name
    from unity.interpreter import interpret

    from .model import read_model

    module = read_model(model, options)
    found = interpret(module, main_name(module), list(feeds.values()))
    parts = found if isinstance(found, tuple) else (found,)
    return list(flat({str(i): part for i, part in enumerate(parts)}).values())
