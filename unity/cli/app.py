"""The commands and their options. Imports nothing heavy: ``unity --help`` must be quick.

Each command's work is in the file of its name and is imported when it runs.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from unity.cli.options import Options
from unity.cli.paths import model_path, output_path
from unity.errors import InternalError, UnityError
from unity.version import VERSION

app = typer.Typer(
    name="unity",
    help="A machine-learning compiler: import a model, compile it, run it, look inside.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Model = Annotated[
    Path, typer.Argument(help="An ONNX or a Relay model.", show_default=False, callback=model_path)
]
Source = Annotated[
    Path,
    typer.Argument(
        help="An ONNX or a Relay model, or what `unity compile` made of one.",
        show_default=False,
        callback=model_path,
    ),
]
Params = Annotated[
    Path | None,
    typer.Option(
        help="Of a Relay model, values for its parameters: a parameter dictionary.",
        show_default=False,
    ),
]
Examples = Annotated[
    Path | None,
    typer.Option(
        help="Of a Relay model that takes lists or trees, how far they go, as JSON: "
        '{"xs": [null, null], "tree": ["Leaf", null]}.',
        show_default=False,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", help="NAME=FILE.npy, or FILE.npz with an array for each input."),
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", help="SYMBOL=SIZE for generated inputs, e.g. batch=4."),
]
Threads = Annotated[int | None, typer.Option(help="Threads to use; the number of cores.", min=1)]
Precision = Annotated[
    Literal["f32", "bf16", "f16"],
    typer.Option(help="In what matrix products and convolutions compute."),
]
Winograd = Annotated[
    bool,
    typer.Option(help="Whether 3x3 convolutions may take Winograd's tiles: faster, less exact."),
]
Target = Annotated[str, typer.Option(help="The kind of target; packages add some.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host", help="MODULE.FUNCTION that an executable may call; the module is imported."
    ),
]
Tuned = Annotated[
    Path | None,
    typer.Option("--db", help="Records of `unity tune` to lay kernels out by.", show_default=False),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        help="Relative error allowed; by default 1e-4, "
        "and for models with numbers in float16 1e-2, in bfloat16 5e-2.",
        min=0.0,
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of generated inputs.", min=0)]


def _version(asked: bool) -> None:
    if asked:
        print(f"unity {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A machine-learning compiler: import a model, compile it, run it, look inside."""


@app.command()
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
    from .run import run_model

    to = None if output is None else output_path(output, (".npz",))
    options = Options(threads, precision, winograd, params=params, examples=examples, db=db)
    run_model(model, inputs or [], dim or [], to, seed, options, host or [])


@app.command("compile")
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
    from .compile import compile_model

    to = None if output is None else output_path(output, (".unity", ".so"), folder=True)
    compile_model(model, to, Options(threads, precision, winograd, target, params, examples, db))


@app.command()
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
    from .bench import bench_model

    peers = [p for p in vs.split(",") if p]
    options = Options(threads, precision, winograd, params=params, examples=examples, db=db)
    bench_model(model, inputs or [], dim or [], repeat, peers, profile, seed, options, host or [])


@app.command()
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
    precision: Precision = "f32",
    winograd: Winograd = True,
    target: Target = "cpu",
) -> None:
    """Print a program: as imported, after a pass, its kernels, or what an executable holds."""
    from .inspect import inspect_model
    from .report import report_model

    if report:
        if passes or kernels or result or after or kernel or schedule:
            raise UnityError("--report beside another view", hint="give one of them")
        report_model(model)
        return
    options = Options(None, precision, winograd, target)
    inspect_model(model, passes, after, kernel, kernels, schedule, result, options)


@app.command()
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
    winograd: Winograd = True,
    target: Target = "cpu",
) -> None:
    """Tell what computes each call of a model, what else could, and why."""
    from .explain import explain_model

    if measure and resolve not in (None, "measure"):
        raise UnityError(f"--measure and --resolve {resolve}", hint="give one of them")
    chosen = "measure" if measure else resolve
    options = Options(threads, "f32", winograd, target)
    explain_model(model, chosen, dim or [], json, options)


@app.command()
def check(
    model: Model,
    inputs: Inputs = None,
    dim: Dims = None,
    tolerance: Tolerance = None,
    winograd: Winograd = True,
    seed: Seed = 0,
    params: Params = None,
    examples: Examples = None,
) -> None:
    """Compare a compiled model with a reference: ONNX's, or our interpreter for Relay."""
    from .check import check_model

    options = Options(winograd=winograd, params=params, examples=examples)
    check_model(model, inputs or [], dim or [], tolerance, seed, options)


@app.command()
def migrate(
    model: Annotated[
        Path, typer.Argument(help="A Relay model.", show_default=False, callback=model_path)
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="NAME.py for the program; NAME.safetensors and NAME.md are written beside it.",
            show_default=False,
        ),
    ],
    params: Params = None,
    examples: Examples = None,
) -> None:
    """Make a Python program of a Relay model, with its weights and a report."""
    from .migrate import migrate_model

    migrate_model(model, params, examples, output_path(output, (".py",)))


@app.command()
def quantize(
    model: Annotated[
        Path,
        typer.Argument(help="An ONNX model of float32.", show_default=False, callback=model_path),
    ],
    calibration: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Samples: files .npz with an array for each input, a sample at each index of its "
            "first axis.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="NAME.onnx for the quantized model.")
    ] = "quantized.onnx",
    weights: Annotated[
        Literal["int8", "int4"],
        typer.Option(help="Integers of weights; int4: activations stay float32."),
    ] = "int8",
    activations: Annotated[
        Literal["uint8", "int8"], typer.Option(help="Integers of activations.")
    ] = "uint8",
    method: Annotated[
        Literal["minmax", "entropy"], typer.Option(help="How ranges of activations are found.")
    ] = "minmax",
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", help="A node, or a type of operators, that stays in float32."),
    ] = None,
    block: Annotated[int, typer.Option(help="With int4, how many weights share a scale.")] = 32,
) -> None:
    """Make a quantized model, calibrated on samples, and tell what accuracy that costs."""
    from .quantize import quantize_model

    to = output_path(output, (".onnx",))
    quantize_model(model, calibration or [], to, weights, activations, method, exclude or [], block)


@app.command()
def bisect(
    model: Model,
    tolerance: Annotated[float, typer.Option(help="Relative error allowed.", min=0.0)] = 1e-4,
    precision: Precision = "f32",
    winograd: Winograd = True,
    trace: Annotated[
        Path | None, typer.Option(help="A folder for the program after each pass.")
    ] = None,
    target: Target = "cpu",
) -> None:
    """Find the first pass after which a model computes other numbers (slow: it is interpreted)."""
    from .bisect import bisect_model

    bisect_model(model, tolerance, trace, Options(None, precision, winograd, target))


@app.command()
def tune(
    model: Model,
    db: Annotated[
        Path, typer.Option(help="The file of records, made if there is none and added to.")
    ],
    time: Annotated[
        str | None, typer.Option(help="How long at most: 90s, 10m, 1h.", show_default=False)
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Candidates at most.", min=1, show_default=False)
    ] = None,
    dim: Dims = None,
    kernel: Annotated[
        list[str] | None, typer.Option("--kernel", help="A kernel to tune; all of them.")
    ] = None,
    strategy: Annotated[
        Literal["evolution", "annealing", "random"], typer.Option(help="Where candidates come from")
    ] = "evolution",
    report: Annotated[
        Path | None, typer.Option(help="A folder for the report: JSON, and a chart.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="tcp://HOST:PORT of dask's scheduler: its workers measure."),
    ] = None,
    device: Annotated[str, typer.Option(help="The label of workers to measure on.")] = "cpu",
    threads: Threads = None,
    precision: Precision = "f32",
    seed: Seed = 0,
) -> None:
    """Search faster schedules for a model's kernels by measuring; Ctrl-C keeps what was found."""
    from .tune import tune_model

    options = Options(threads, precision)
    tune_model(
        model, db, time, trials, dim or [], kernel or [], strategy, report, seed, options,
        scheduler, device,
    )  # fmt: skip


@app.command()
def worker(
    address: Annotated[str, typer.Argument(help="tcp://HOST:PORT of dask's scheduler.")],
    device: Annotated[str, typer.Option(help="What this machine is called.")] = "cpu",
) -> None:
    """Measure candidates for `unity tune --scheduler` on this machine, one at a time."""
    from unity.tuning.fleet import serve_device

    serve_device(address, device)


db_app = typer.Typer(no_args_is_help=True, help="Records of tuning: show, merge, prune.")
app.add_typer(db_app, name="db")
Db = Annotated[Path, typer.Argument(help="A file of records.", show_default=False)]


@db_app.command("show")
def db_show(db: Db) -> None:
    """Tell what a file of records holds: for each kernel the fastest that was found."""
    from .tune import show_records

    show_records(db)


@db_app.command("merge")
def db_merge(
    sources: Annotated[list[Path], typer.Argument(help="Files of records.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
) -> None:
    """Write the records of several files to one, equal ones once."""
    from .tune import merge_records

    merge_records(sources, output)


@db_app.command("prune")
def db_prune(db: Db) -> None:
    """Drop what `unity compile --db` does not use: trials, and records that were beaten."""
    from .tune import prune_records

    prune_records(db)


@app.command()
def cache(
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove all compiled code; measurements stay.")
    ] = False,
    clear_measurements: Annotated[
        bool, typer.Option("--clear-measurements", help="Remove the times that were measured.")
    ] = False,
) -> None:
    """Tell what the disk cache of compiled kernels holds; UNITY_CACHE_DIR=off turns it off."""
    from .cache import show_cache

    show_cache(clear, clear_measurements)


@app.command()
def doctor() -> None:
    """Tell what this machine has: cpu features, caches, libraries, the state of the cache."""
    from .doctor import examine

    examine()


@app.command()
def demo(
    show: Annotated[
        bool, typer.Option("--show", help="Print the program in both levels of the IR.")
    ] = False,
) -> None:
    """Compile the digits model that ships with Unity and classify images it has never seen."""
    from unity.demo.digits import run_demo

    run_demo(show)


def main() -> None:
    """The entry point: errors of ours are printed without a traceback, and exit with 1."""
    try:
        app()
    except UnityError as error:
        if isinstance(error, InternalError):  # a report needs to say where
            traceback.print_exception(error)
        _fail(error)
    except BrokenPipeError:  # who reads what is printed has seen enough
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:  # a full disk, a file without rights
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    from rich.console import Console

    Console(stderr=True, highlight=False).print("[bold red]error:[/] ", end="")
    print(error, file=sys.stderr)
    raise SystemExit(1) from None


if __name__ == "__main__":
    main()
