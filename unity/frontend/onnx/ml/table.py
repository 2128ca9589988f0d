"""The converters of ai.onnx.ml, from the explicit list of families."""

from __future__ import annotations

from ..node import Converter
from . import trees

DOMAIN = "ai.onnx.ml"
FAMILIES: tuple[dict[str, Converter], ...] = (trees.CONVERTERS,)
CONVERTERS: dict[str, Converter] = {
    name: converter for family in FAMILIES for name, converter in family.items()
}
