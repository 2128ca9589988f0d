"""Tutorial 11: a model in integers of 8 bits, calibrated on samples, and what that costs.

Run it: ``python tutorials/11_quantize.py``. The command line does the same:
``unity quantize model.onnx samples.npz -o quantized.onnx``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import unity
import unity.demo

folder = Path(unity.demo.__file__).parent
with np.load(folder / "digits.npz") as file:
    images, labels = file["images"], file["labels"]


def accuracy(executable: unity.Executable) -> float:
    """How many images a model calls by their label."""
    return float((np.argmax(executable(images), axis=1) == labels).mean())


# %% Samples are inputs like those that the model will get. While it runs on them, the range of
# everything that a convolution or a product reads is observed; weights have theirs by themselves.
samples = [images[k : k + 16] for k in range(0, 128, 16)]
found = unity.quantize(folder / "digits.onnx", samples)
print(found.report)
for tensor in found.report.ranges:
    print(f"{tensor.name}: {tensor.low:.2f} to {tensor.high:.2f} in steps of {tensor.scale:.4f}")

# %% The result is an ONNX model, which any runtime reads: pairs of QuantizeLinear and
# DequantizeLinear around what products read. Unity multiplies integers where it sees them.
print(Counter(node.op_type for node in found.model.graph.node))
plain, quantized = unity.compile(folder / "digits.onnx"), unity.compile(found.model)
print(f"accuracy {accuracy(plain):.2%} in float32, {accuracy(quantized):.2%} in int8")

# %% Where it costs too much: the ranges may leave out what is far out and rare ("entropy"), and
# nodes, or all of a type, may stay in float32.
careful = unity.quantize(folder / "digits.onnx", samples, method="entropy", exclude=["Gemm"])
print(careful.report)

# %% Decoders wait for their weights: those alone in 4 bits, with a scale for each block of 32.
# Nothing of activations has to be known, so samples are only there to measure errors.
small = unity.quantize(folder / "digits.onnx", samples, weights="int4")
print(small.report)

with TemporaryDirectory() as place:
    found.save(Path(place) / "digits_int8.onnx")
    again = unity.compile(Path(place) / "digits_int8.onnx")
    assert np.array_equal(again(images), quantized(images))
assert accuracy(quantized) > accuracy(plain) - 0.01
