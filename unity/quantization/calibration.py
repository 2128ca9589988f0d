"""What tensors hold while a model runs: it is compiled with them as outputs, and run on samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import onnx

from unity.compiler import compile as compile_model
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.runtime.executable import Executable

from .histogram import Histogram

Method: TypeAlias = Literal["minmax", "entropy"]
"""How the range of a tensor is found."""
Sample: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Observed:
    """What a model gave.

    Attributes:
        ranges: For each tensor of float32 the range it is quantized by.
        others: For each other one its type.
        outputs: The model's own outputs, for each sample.
    """

    ranges: Mapping[str, tuple[float, float]]
    others: Mapping[str, str]
    outputs: Sequence[Mapping[str, Array]]


def samples_of(data: Iterable[object], proto: onnx.ModelProto) -> list[Sample]:
    """The samples as arrays by the names of a model's inputs.

    Args:
        data: A dict of arrays by name for each sample, or a tuple of them in the order of inputs,
            or an array where there is one input.
        proto: The model.

    Raises:
        UnityError: There is none, or one is something else.
    """
    if isinstance(data, Mapping):
        raise UnityError(
            "calibration_data is one dict, expected several samples",
            hint="one sample is a list of one: [{...}]",
        )
    constants = {t.name for t in proto.graph.initializer}
    inputs = [i for i in proto.graph.input if i.name not in constants]
    names = [i.name for i in inputs]
    if isinstance(data, np.ndarray) and [_rank(i) for i in inputs] == [data.ndim]:
        raise UnityError(
            "calibration_data is one array, whose rows would be the samples",
            hint="one sample is a list of one: [array]",
        )
    found: list[Sample] = []
    for place, given in enumerate(data):
        where = f"calibration_data, sample {place}"
        match given:
            case Mapping():
                named: dict[str, object] = {str(k): v for k, v in given.items()}
            case tuple() | list():
                if len(given) != len(names):
                    raise UnityError(
                        f"{where}: expected {len(names)} arrays, got {len(given)}",
                        hint=f"the inputs are {', '.join(names)}",
                    )
                named = dict(zip(names, given, strict=True))
            case np.ndarray() if len(names) == 1:
                named = {names[0]: given}
            case _:
                raise UnityError(
                    f"{where}: expected arrays by name, got a {type(given).__name__}",
                    hint=f"the inputs are {', '.join(names)}",
                )
        found.append({k: np.asarray(v) for k, v in named.items()})
    if not found:
        raise UnityError("calibration_data has no samples", hint="a hundred inputs are usual")
    return found


def _rank(value: onnx.ValueInfoProto) -> int | None:
    """How many axes an input has, if the model says so."""
    kind = value.type.tensor_type
    return len(kind.shape.dim) if kind.HasField("shape") else None


def run_all(executable: Executable, samples: Sequence[Sample]) -> Iterable[dict[str, Array]]:
    """The results of each sample.

    Raises:
        UnityError: A sample does not fit; the message names it.
    """
    for place, sample in enumerate(samples):
        try:
            yield dict(executable.run(sample))
        except UnityError as error:
            raise UnityError(
                f"calibration_data, sample {place}: {error.message}", hint=error.hint
            ) from error


def observe(
    proto: onnx.ModelProto, tensors: Iterable[str], samples: Sequence[Sample], method: Method
) -> Observed:
    """Run a model, and look at some of its tensors.

    Raises:
        UnityError: A sample does not fit, or a tensor holds what is no number, or nothing.
    """
    own = [o.name for o in proto.graph.output]
    inputs = {i.name for i in proto.graph.input}
    inner = [t for t in dict.fromkeys(tensors) if t not in inputs]
    watched = onnx.ModelProto()
    watched.CopyFrom(proto)
    watched.graph.output.extend(onnx.ValueInfoProto(name=t) for t in inner if t not in own)
    executable = compile_model(watched)
    seen: dict[str, Histogram] = {t: Histogram() for t in dict.fromkeys(tensors)}
    others: dict[str, str] = {}
    outputs: list[Mapping[str, Array]] = []
    for sample, results in zip(samples, run_all(executable, samples), strict=True):
        outputs.append({name: results[name] for name in own})
        for name, histogram in seen.items():
            values = sample[name] if name in inputs else results[name]
            if values.dtype != np.float32:
                others[name] = str(values.dtype)
            elif not np.isfinite(values).all():
                raise UnityError(
                    f"{name!r} is not finite for the sample {len(outputs) - 1}",
                    hint="leave out the sample, or by exclude= the nodes that read it",
                )
            else:
                histogram.add(values, counts=method == "entropy")
    for name, histogram in seen.items():
        if not histogram.count and name not in others:
            raise UnityError(
                f"{name!r} has no elements in any sample, so its range is not known",
                hint="give samples that are not empty, or by exclude= the nodes that read it",
            )
    ranges = {
        name: h.range_by_entropy() if method == "entropy" else (h.low, h.high)
        for name, h in seen.items()
        if name not in others
    }
    return Observed(ranges, others, outputs)
