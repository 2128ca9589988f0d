"""The converters of ai.onnx.ml, from the explicit list of families."""

from __future__ import annotations

from ..node import Converter
from . import categories, linear, maps, preparing, svm, trees

DOMAIN = "ai.onnx.ml"
FAMILIES: tuple[dict[str, Converter], ...] = (
    categories.CONVERTERS,
    linear.CONVERTERS,
    maps.CONVERTERS,
    preparing.CONVERTERS,
    svm.CONVERTERS,
    trees.CONVERTERS,
)
CONVERTERS: dict[str, Converter] = {
    name: converter for family in FAMILIES for name, converter in family.items()
}
