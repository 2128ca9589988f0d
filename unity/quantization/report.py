"""What quantizing did and what it costs: ranges, nodes that were left, errors of outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array


@dataclass(frozen=True, slots=True)
class TensorRange:
    """How a tensor is quantized.

    Attributes:
        name: The tensor.
        low: The least real that its integers stand for, or was observed.
        high: The largest.
        scale: What a step is.
        zero_point: The integer of 0.
    """

    name: str
    low: float
    high: float
    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class OutputError:
    """How far an output is from that of the model in float32, over all samples.

    Attributes:
        name: The output.
        largest: The largest difference, of the largest value.
        mean: The mean difference, of the mean of absolute values.
        sqnr: The signal-to-quantization-noise ratio in dB; infinite where nothing differs.
        same_argmax: How often the largest along the last axis is at the same place; None for
            outputs without such an axis.
    """

    name: str
    largest: float
    mean: float
    sqnr: float
    same_argmax: float | None


@dataclass(frozen=True, slots=True)
class QuantizationReport:
    """What quantizing a model did.

    Attributes:
        quantized: The nodes that are, in order.
        left: Products that are not, each with the reason.
        ranges: How activations are quantized.
        errors: What it costs each output of floats; none without samples.
        samples: How many the errors are of.
        bytes_before: Of weights in the model.
        bytes_after: Of those in the quantized one.
    """

    quantized: tuple[str, ...]
    left: Mapping[str, str]
    ranges: tuple[TensorRange, ...]
    errors: tuple[OutputError, ...]
    samples: int
    bytes_before: int
    bytes_after: int

    def __str__(self) -> str:
        """As a table."""
        lines = [
            f"{len(self.quantized)} products quantized, {len(self.left)} left; weights "
            f"{self.bytes_before / 1e6:.2f} -> {self.bytes_after / 1e6:.2f} MB"
        ]
        for why, count in Counter(self.left.values()).most_common():
            names = [n for n, w in self.left.items() if w == why]
            lines.append(f"left, {why}: {count} ({', '.join(names[:3])}{', ...' * (count > 3)})")
        for e in self.errors:
            same = "" if e.same_argmax is None else f", same argmax {e.same_argmax:.1%}"
            lines.append(
                f"{e.name}: error at most {e.largest:.2e} of the largest value, mean {e.mean:.2e}, "
                f"SQNR {e.sqnr:.1f} dB{same}"
            )
        return "\n".join(lines)


def output_errors(
    plain: Sequence[Mapping[str, Array]], found: Sequence[Mapping[str, Array]]
) -> tuple[OutputError, ...]:
    """How far outputs are from those of the plain model.

    Raises:
        UnityError: The quantized model gives what is no number where the plain one gives one.
    """
    names = [n for n, a in plain[0].items() if np.issubdtype(a.dtype, np.floating)]
    return tuple(_error(n, [p[n] for p in plain], [f[n] for f in found]) for n in names)


def _error(name: str, plain: Sequence[Array], found: Sequence[Array]) -> OutputError:
    if any(p.shape != f.shape for p, f in zip(plain, found, strict=True)):
        raise UnityError(
            f"the output {name!r} has another shape once quantized: its shape depends on values",
            hint="exclude= the nodes that decide it",
        )
    a = np.concatenate([p.ravel() for p in plain]).astype(np.float64)
    b = np.concatenate([f.ravel() for f in found]).astype(np.float64)
    finite = np.isfinite(a)
    a, b = a[finite], b[finite]
    if not np.isfinite(b).all():
        raise UnityError(f"the output {name!r} is not finite once quantized")
    off = np.abs(a - b)
    power, noise = float((a * a).sum()), float((off * off).sum())
    ranks = [p.ndim > 1 and p.shape[-1] > 1 and p.size > 0 for p in plain]
    same = [
        np.argmax(p, -1).ravel() == np.argmax(f, -1).ravel()
        for p, f, ranked in zip(plain, found, ranks, strict=True)
        if ranked
    ]
    return OutputError(
        name,
        float(off.max(initial=0)) / (float(np.abs(a).max(initial=0)) or 1.0),
        float(off.sum()) / (float(np.abs(a).sum()) or 1.0),
        float("inf") if not noise else 10 * float(np.log10(power / noise)) if power else 0.0,
        float(np.concatenate(same).mean()) if same else None,
    )
