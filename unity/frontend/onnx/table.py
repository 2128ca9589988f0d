"""The table of all converters, from the explicit list of families."""

from __future__ import annotations

from . import (
    activations,
    arithmetic,
    creation,
    determinant,
    einsum,
    elementwise,
    indexing,
    layers,
    linear,
    losses,
    norms,
    pooling,
    random,
    reductions,
    reshape,
    resize,
    shaping,
    sorting,
)
from .flow import control, loop, scan
from .images import detection, sampling, unpooling
from .microsoft import table as microsoft
from .ml import table as ml
from .node import Converter
from .quantized import integers, quantization
from .reading.load import DEFAULT_DOMAINS
from .recurrence import recurrent
from .sequences import nodes as sequences
from .sequences import optional
from .signal import transforms, windows
from .text import ngrams, steps
from .training import gradient, optimizers

FAMILIES: tuple[dict[str, Converter], ...] = (
    activations.CONVERTERS,
    arithmetic.CONVERTERS,
    control.CONVERTERS,
    unpooling.CONVERTERS,
    ngrams.CONVERTERS,
    scan.CONVERTERS,
    loop.CONVERTERS,
    creation.CONVERTERS,
    determinant.CONVERTERS,
    detection.CONVERTERS,
    einsum.CONVERTERS,
    elementwise.CONVERTERS,
    indexing.CONVERTERS,
    integers.CONVERTERS,
    layers.CONVERTERS,
    linear.CONVERTERS,
    losses.CONVERTERS,
    norms.CONVERTERS,
    pooling.CONVERTERS,
    quantization.CONVERTERS,
    random.CONVERTERS,
    recurrent.CONVERTERS,
    reductions.CONVERTERS,
    reshape.CONVERTERS,
    resize.CONVERTERS,
    sampling.CONVERTERS,
    sequences.CONVERTERS,
    optional.CONVERTERS,
    shaping.CONVERTERS,
    sorting.CONVERTERS,
    steps.CONVERTERS,
    transforms.CONVERTERS,
    windows.CONVERTERS,
)
CONVERTERS: dict[str, Converter] = {
    name: converter for family in FAMILIES for name, converter in family.items()
}


REGISTERED: dict[tuple[str, str], Converter] = {}
"""Those that a program added (`unity.register_converter`), by domain and operator."""


def converter_of(domain: str, op_type: str) -> Converter | None:
    """What converts an operator's nodes; None if nothing does."""
    if (domain, op_type) in REGISTERED:
        return REGISTERED[domain, op_type]
    if domain == ml.DOMAIN:
        return ml.CONVERTERS.get(op_type)
    if domain == microsoft.DOMAIN:
        return microsoft.CONVERTERS.get(op_type)
    if domain == optimizers.DOMAIN:
        return {**optimizers.CONVERTERS, **gradient.CONVERTERS}.get(op_type)
    if domain not in DEFAULT_DOMAINS:
        return None
    return CONVERTERS.get(op_type) or microsoft.STANDARD.get(op_type)


def is_registered(domain: str, op_type: str) -> bool:
    """Whether what converts an operator's nodes is a program's own."""
    return ("" if domain in DEFAULT_DOMAINS else domain, op_type) in REGISTERED


def is_of_onnx(domain: str, op_type: str) -> bool:
    """Whether ONNX declares what an operator takes; onnxruntime's own are not in its registry."""
    if (domain, op_type) in REGISTERED:
        return False
    own = domain in DEFAULT_DOMAINS and op_type in microsoft.STANDARD
    return domain != microsoft.DOMAIN and not own
