"""Commands that make another model of one: migrate, quantize."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..paths import file_path, output_path, program_path
from .arguments import Examples, Params


def migrate(
    model: Annotated[
        Path, typer.Argument(help="A Relay model.", show_default=False, callback=file_path)
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
    from ..migrate import migrate_model

    migrate_model(model, params, examples, output_path(output, (".py",)))


def script_fmt(
    program: Annotated[
        Path,
        typer.Argument(
            help="A Python file: a module of TVMScript, or functions of our language.",
            show_default=False,
            callback=program_path,
        ),
    ],
) -> None:
    """Print a program in our language, as Unity formats it."""
    from unity.script.formatting import formatted

    print(formatted(program.read_text(), str(program)), end="")


def quantize(
    model: Annotated[
        Path,
        typer.Argument(help="An ONNX model of float32.", show_default=False, callback=file_path),
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
    from ..quantize import quantize_model

    to = output_path(output, (".onnx",))
    quantize_model(model, calibration or [], to, weights, activations, method, exclude or [], block)
