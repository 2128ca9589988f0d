"""Commands that run models: run, compile, bench, check."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Options
from ..paths import output_path
from .arguments import (
    Dims,
    Examples,
    Hosts,
    Inputs,
    Model,
    Params,
    Precision,
    Seed,
    Source,
    Target,
    Threads,
    Tolerance,
    Tuned,
    Winograd,
)


def run(
    model: Source,
    inputs: Inputs = None,
    dim: Dims = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the outputs here, as .npz.")
    ] = None,
    threads: Threads = None,
    precision: Precision = "f32",
    winograd: Winograd = True,
    seed: Seed = 0,
    host: Hosts = None,
    params: Params = None,
    examples: Examples = None,
    db: Tuned = None,
) -> None:
    """Compile a model, or load an executable, and run it once; inputs not given are generated."""
    from ..run import run_model

    to = None if output is None else output_path(output, (".npz",))
    options = Options(threads, precision, winograd, params=params, examples=examples, db=db)
    run_model(model, inputs or [], dim or [], to, seed, options, host or [])


def compile_(
    model: Model,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="NAME.unity for the executable, libNAME.so for a library for C, "
            "or FOLDER/ for the IR, LLVM and assembly.",
        ),
    ] = None,
    threads: Threads = None,
    precision: Precision = "f32",
    winograd: Winograd = True,
    target: Target = "cpu",
    params: Params = None,
    examples: Examples = None,
    db: Tuned = None,
) -> None:
    """Compile a model and report what came out: time, kernels, constants."""
    from ..compile import compile_model

    to = None if output is None else output_path(output, (".unity", ".so"), folder=True)
    compile_model(model, to, Options(threads, precision, winograd, target, params, examples, db))


def bench(
    model: Source,
    inputs: Inputs = None,
    dim: Dims = None,
    repeat: Annotated[int, typer.Option(help="Timed runs.", min=1)] = 50,
    vs: Annotated[
        str, typer.Option(help="Peers to compare with, comma-separated: onnxruntime.")
    ] = "",
    profile: Annotated[bool, typer.Option(help="Time every kernel as well.")] = False,
    threads: Threads = None,
    precision: Precision = "f32",
    winograd: Winograd = True,
    seed: Seed = 0,
    host: Hosts = None,
    params: Params = None,
    examples: Examples = None,
    db: Tuned = None,
) -> None:
    """Time a model, interleaved with other runtimes if asked."""
    from ..bench import bench_model

    peers = [p for p in vs.split(",") if p]
    options = Options(threads, precision, winograd, params=params, examples=examples, db=db)
    bench_model(model, inputs or [], dim or [], repeat, peers, profile, seed, options, host or [])


def check(
    model: Model,
    inputs: Inputs = None,
    dim: Dims = None,
    tolerance: Tolerance = None,
    threads: Threads = None,
    winograd: Winograd = True,
    seed: Seed = 0,
    params: Params = None,
    examples: Examples = None,
    db: Tuned = None,
) -> None:
    """Compare a compiled model with a reference: ONNX's, or our interpreter for Relay."""
    from ..check import check_model

    options = Options(threads, winograd=winograd, params=params, examples=examples, db=db)
    check_model(model, inputs or [], dim or [], tolerance, seed, options)
