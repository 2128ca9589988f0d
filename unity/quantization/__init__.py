"""Networks of float32 to quantized ones: ONNX to ONNX, calibrated by running them.

`quantizer` is the flow on one page: `model` reads, `batch_norm` folds, `products` and `placement`
say what is quantized, `calibration` finds ranges (`histogram`: by entropy), `parameters` makes
scales of them, `rewriting` puts the pairs of QuantizeLinear and DequantizeLinear in, `blocks` makes
weights of 4 bits, `report` tells what it costs.
"""

from .quantizer import QuantizedModel, quantize
from .report import OutputError, QuantizationReport, TensorRange

__all__ = ["OutputError", "QuantizationReport", "QuantizedModel", "TensorRange", "quantize"]
