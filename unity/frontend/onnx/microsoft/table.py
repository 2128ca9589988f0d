"""The converters of the domain ``com.microsoft``, and of what onnxruntime adds to ONNX's own."""

from __future__ import annotations

from ..node import Converter
from ..quantized import quantization
from ..recurrence import recurrent
from . import attention, grouped, norms, products, quantized

DOMAIN = "com.microsoft"
FAMILIES: tuple[dict[str, Converter], ...] = (
    attention.CONVERTERS,
    grouped.CONVERTERS,
    norms.CONVERTERS,
    products.CONVERTERS,
    quantized.CONVERTERS,
    quantization.CONVERTERS,
    recurrent.QUANTIZED,
)
CONVERTERS: dict[str, Converter] = {
    name: converter for family in FAMILIES for name, converter in family.items()
}
STANDARD = norms.STANDARD
