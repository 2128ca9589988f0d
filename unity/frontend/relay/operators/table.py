"""The table of all converters, from the explicit list of families."""

from __future__ import annotations

from unity.frontend.relay.relay_call import Converter

from . import (
    bits,
    convolutions,
    creation,
    dynamic,
    elementwise,
    fixed_point,
    image,
    layouts,
    linear,
    marking,
    norms,
    ordering,
    padding,
    pools,
    quantized,
    quantized_layers,
    reductions,
    shaping,
    simulated,
    slicing,
    sparse,
    windows,
)
from .detection import boxes, ranking, regions, suppression

FAMILIES: tuple[dict[str, Converter], ...] = (
    elementwise.CONVERTERS,
    reductions.CONVERTERS,
    convolutions.CONVERTERS,
    pools.CONVERTERS,
    linear.CONVERTERS,
    norms.CONVERTERS,
    layouts.CONVERTERS,
    shaping.CONVERTERS,
    slicing.CONVERTERS,
    creation.CONVERTERS,
    ordering.CONVERTERS,
    padding.CONVERTERS,
    image.CONVERTERS,
    boxes.CONVERTERS,
    suppression.CONVERTERS,
    ranking.CONVERTERS,
    regions.CONVERTERS,
    windows.CONVERTERS,
    sparse.CONVERTERS,
    bits.CONVERTERS,
    simulated.CONVERTERS,
    fixed_point.CONVERTERS,
    quantized.CONVERTERS,
    quantized_layers.CONVERTERS,
    dynamic.CONVERTERS,
    marking.CONVERTERS,
)
CONVERTERS: dict[str, Converter] = {
    name: converter for family in FAMILIES for name, converter in family.items()
}
