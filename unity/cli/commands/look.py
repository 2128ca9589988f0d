"""Commands that look inside: inspect, explain, bisect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unity.errors import UnityError

from ..options import Options
from .arguments import Model, Precision, Source, Target, Threads, Tuned, Winograd


def inspect(
    model: Source,
    passes: Annotated[
        bool, typer.Option("--passes", help="List the pipeline and what each pass leaves.")
    ] = False,
    after: Annotated[
        str | None, typer.Option(help="Print the module after this pass, e.g. FuseOps.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="Print one kernel: its IR, LLVM and assembly.")
    ] = None,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="List the kernels and the rules that lay them out.")
    ] = False,
    schedule: Annotated[
        str | None,
        typer.Option(help="Print one kernel's schedule as a Python program to change and to run."),
    ] = None,
    result: Annotated[
        bool, typer.Option("--result", help="With --schedule: and the kernel that it gives.")
    ] = False,
    report: Annotated[
        bool,
        typer.Option("--report", help="Inputs, nodes, parameters, operations and memory, or gaps."),
    ] = False,
    threads: Threads = None,
    precision: Precision = "f32",
    winograd: Winograd = True,
    target: Target = "cpu",
    db: Tuned = None,
) -> None:
    """Print a program: as imported, after a pass, its kernels, or what an executable holds."""
    from ..inspect import inspect_model
    from ..report import report_model

    if report:
        if passes or kernels or result or after or kernel or schedule:
            raise UnityError("--report beside another view", hint="give one of them")
        report_model(model)
        return
    options = Options(threads, precision, winograd, target, db=db)
    inspect_model(model, passes, after, kernel, kernels, schedule, result, options)


def explain(
    model: Source,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time the candidates on this machine and choose.")
    ] = False,
    resolve: Annotated[
        str | None,
        typer.Option(
            help="A policy or an implementation: static (the default), engine:onnxruntime"
        ),
    ] = None,
    dim: Annotated[
        list[str] | None, typer.Option("--dim", help="SYMBOL=SIZE to measure at, e.g. batch=4.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: Threads = None,
    precision: Precision = "f32",
    winograd: Winograd = True,
    target: Target = "cpu",
    db: Tuned = None,
) -> None:
    """Tell what computes each call of a model, what else could, and why."""
    from ..explain import explain_model

    if measure and resolve not in (None, "measure"):
        raise UnityError(f"--measure and --resolve {resolve}", hint="give one of them")
    chosen = "measure" if measure else resolve
    options = Options(threads, precision, winograd, target, db=db)
    explain_model(model, chosen, dim or [], json, options)


def bisect(
    model: Model,
    tolerance: Annotated[float, typer.Option(help="Relative error allowed.", min=0.0)] = 1e-4,
    precision: Precision = "f32",
    winograd: Winograd = True,
    trace: Annotated[
        Path | None, typer.Option(help="A folder for the program after each pass.")
    ] = None,
    target: Target = "cpu",
    threads: Threads = None,
    db: Tuned = None,
) -> None:
    """Find the first pass after which a model computes other numbers (slow: it is interpreted)."""
    from ..bisect import bisect_model

    options = Options(threads, precision, winograd, target, db=db)
    bisect_model(model, tolerance, trace, options)
