"""`unity quantize`: an ONNX model in integers, calibrated on samples in files, and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
from rich.console import Console

from unity.errors import UnityError
from unity.frontend.onnx.reading.load import load_model
from unity.ir.dtype import Array
from unity.quantization import quantize

from .source import only_models


def quantize_model(
    model: Path,
    calibration: Sequence[Path],
    output: Path,
    weights: Literal["int8", "int4"],
    activations: Literal["uint8", "int8"],
    method: Literal["minmax", "entropy"],
    exclude: Sequence[str],
    block: int,
) -> None:
    """Write the quantized model and print the report.

    Raises:
        UnityError: The output is the model, or there are no samples where they are needed.
    """
    only_models(model, "quantize")
    if output.exists() and output.samefile(model):
        raise UnityError(f"{output} is the model itself", hint="-o NAME.onnx names another file")
    if weights == "int8" and not calibration:
        raise UnityError(
            "unity quantize needs samples: ranges of activations are observed on them",
            hint=f"unity quantize {model} samples.npz, or --weights int4",
        )
    console = Console(highlight=False)
    graph = load_model(model).proto.graph
    samples = [s for path in calibration for s in samples_in(path, graph)]
    with console.status(f"quantizing {model.name}"):
        found = quantize(
            model,
            samples or None,
            weights=weights,
            activations=activations,
            method=method,
            exclude=exclude,
            block=block,
        )
    found.save(output)
    console.print(str(found.report), markup=False, soft_wrap=True)
    console.print(f"wrote {output}: {output.stat().st_size / 1e6:.2f} MB", soft_wrap=True)


def samples_in(path: Path, graph: onnx.GraphProto) -> Iterator[dict[str, Array]]:
    """The samples of an .npz file with an array for each input.

    Arrays with an axis more than the input hold a sample at each index of it. Others are cut along
    the first axis where the model fixes its extent, and are one sample where it does not.

    Raises:
        UnityError: It is no such file, or arrays don't hold equally many samples.
    """
    try:
        held = np.load(path, allow_pickle=False)
        if isinstance(held, np.ndarray):
            raise ValueError("it holds one array, which has no name")
        with held as file:
            arrays: dict[str, Array] = dict(file)
    except (OSError, ValueError, EOFError, TypeError, AttributeError) as error:
        raise UnityError(
            f"cannot read the samples in {path}: {error}",
            hint="numpy.savez(path, NAME=array) writes a file of arrays by name",
        ) from None
    inputs = {i.name: i.type.tensor_type.shape for i in graph.input}
    parts: dict[str, list[Array]] = {}
    for name, array in arrays.items():
        if name not in inputs:
            raise UnityError(
                f"{path}: the model has no input {name!r}", hint=f"its inputs: {', '.join(inputs)}"
            )
        parts[name] = _apart(array, inputs[name])
    counts = {name: len(p) for name, p in parts.items()}
    if len(set(counts.values())) > 1:
        raise UnityError(f"{path}: samples of inputs differ in number: {counts}")
    for k in range(next(iter(counts.values()), 0)):
        yield {name: p[k] for name, p in parts.items()}


def _apart(array: Array, shape: onnx.TensorShapeProto) -> list[Array]:
    """The samples in an array."""
    if array.ndim == len(shape.dim) + 1:
        return list(array)
    fixed = shape.dim[0].dim_value if shape.dim else 0
    if array.ndim == len(shape.dim) and fixed and len(array) % fixed == 0:
        return [array[k : k + fixed] for k in range(0, len(array), fixed)]
    return [array]
