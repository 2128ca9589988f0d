"""``unity bisect``: which pass changes what a model computes."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from unity.checking import watched
from unity.compiler import compile as unity_compile
from unity.compiler import load
from unity.transform import Precision
from unity.transform.instruments import Trace


def bisect_model(
    model: Path, tolerance: float, precision: Precision, trace: Path | None, target: str
) -> None:
    """Run a target's pipeline with the numbers compared after each pass.

    Raises:
        UnityError: They differ; names the pass.
    """
    module = load(model)
    watch = watched(module, tolerance)
    extra = () if trace is None else (Trace(trace),)
    looking = (*extra, watch)
    unity_compile(module, target, precision=precision, instruments=looking, check=True)
    Console().print("every pass keeps the numbers, and so does the compiled code")
