"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..paths import model_path

Model = Annotated[
    Path,
    typer.Argument(
        help="An ONNX or a Relay model, or model.py[:NAME].",
        show_default=False,
        callback=model_path,
    ),
]
Source = Annotated[
    Path,
    typer.Argument(
        help="An ONNX or a Relay model, model.py[:NAME], or what `unity compile` made of one.",
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
