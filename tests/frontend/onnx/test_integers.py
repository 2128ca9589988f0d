"""Integer products, blocks of quantization, losses, masks: as onnxruntime, at unknown sizes too."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from tests.frontend.onnx.programs import model
from unity.ir.dtype import Array

RNG = np.random.default_rng(3)
BYTES = RNG.integers(-128, 128, (3, 5, 6), dtype=np.int8)
IMAGE = RNG.integers(0, 256, (2, 4, 7, 7), dtype=np.uint8)
KERNELS = RNG.integers(-128, 128, (6, 4, 3, 3), dtype=np.int8)
HALVED = KERNELS // 2
"""Without instructions for 8 bits, onnxruntime's pairs of products of more would saturate."""
SCALES = np.linspace(0.01, 0.06, 6, dtype=np.float32)

CASES: dict[str, tuple[str, dict[str, Array], dict[str, Array]]] = {
    "a product with a zero point for each column": (
        "g (uint8[n, 6] x) => (int32[n, 5] y) { y = MatMulInteger(x, w, a, b) }",
        {
            "w": RNG.integers(0, 256, (6, 5), dtype=np.uint8),
            "a": np.array(7, np.uint8),
            "b": np.array([1, 2, 3, 128, 255], np.uint8),
        },
        {"x": RNG.integers(0, 256, (4, 6), dtype=np.uint8)},
    ),
    "a convolution with a zero point and paddings": (
        "g (uint8[n, 4, 7, 7] x) => (int32[n, 6, 4, 4] y)"
        " { y = ConvInteger <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, a) }",
        {"w": KERNELS.view(np.uint8), "a": np.array(9, np.uint8)},
        {"x": IMAGE},
    ),
    "a quantized convolution with a scale for each channel": (
        "g (uint8[n, 4, 7, 7] x) => (uint8[n, 6, 7, 7] y)"
        " { y = QLinearConv <pads = [1, 1, 1, 1]> (x, xs, xz, w, ws, wz, ys, yz, b) }",
        {
            "xs": np.array(0.02, np.float32),
            "xz": np.array(131, np.uint8),
            "w": HALVED,
            "ws": SCALES,
            "wz": np.zeros(6, np.int8),
            "ys": np.array(0.4, np.float32),
            "yz": np.array(120, np.uint8),
            "b": RNG.integers(-900, 900, 6, dtype=np.int32),
        },
        {"x": IMAGE},
    ),
    "a quantized product": (
        "g (uint8[n, 6] x) => (uint8[n, 5] y) { y = QLinearMatMul(x, xs, xz, w, ws, wz, ys, yz) }",
        {
            "xs": np.array(0.03, np.float32),
            "xz": np.array(128, np.uint8),
            "w": RNG.integers(0, 256, (6, 5), dtype=np.uint8),
            "ws": np.array(0.02, np.float32),
            "wz": np.array(130, np.uint8),
            "ys": np.array(0.09, np.float32),
            "yz": np.array(100, np.uint8),
        },
        {"x": RNG.integers(0, 256, (9, 6), dtype=np.uint8)},
    ),
    "blocks of three, the last of one": (
        "g (float[4, 7] x) => (int8[4, 7] q, float[4, 7] y) {"
        " q = QuantizeLinear <axis = 1, block_size = 3> (x, s, z)"
        " y = DequantizeLinear <axis = 1, block_size = 3> (q, s, z) }",
        {
            "s": RNG.uniform(0.01, 0.1, (4, 3)).astype(np.float32),
            "z": RNG.integers(-9, 9, (4, 3), dtype=np.int8),
        },
        {"x": RNG.standard_normal((4, 7), np.float32)},
    ),
    "along an axis, zero points of one dtype": (
        "g (float[n, 5, 6] x) => (uint8[n, 5, 6] q, float[n, 5, 6] y) {"
        " q = QuantizeLinear <axis = -2> (x, s, z) y = DequantizeLinear <axis = 1> (q, s, z) }",
        {
            "s": SCALES[:5],
            "z": np.array([0, 3, 128, 200, 255], np.uint8),
        },
        {"x": RNG.standard_normal((3, 5, 6), np.float32) * 5},
    ),
    "one scale for all, no zero point": (
        "g (float[n, 5, 6] x) => (uint8[n, 5, 6] q, float[n, 5, 6] y) {"
        " q = QuantizeLinear (x, s) y = DequantizeLinear (q, s) }",
        {"s": np.array([0.02], np.float32)},
        {"x": RNG.standard_normal((3, 5, 6), np.float32) * 3},
    ),
    "sums of products as reals": (
        "g (int32[n, 6] x) => (float[n, 6] y) { y = DequantizeLinear <axis = 1> (x, s, z) }",
        {"s": SCALES, "z": np.zeros(6, np.int32)},
        {"x": RNG.integers(-(1 << 24), 1 << 24, (4, 6), dtype=np.int32)},
    ),
    "a loss of classes, some ignored": (
        "g (float[n, 5, 6] x, int64[n, 6] t) => (float y) {"
        " y = NegativeLogLikelihoodLoss <ignore_index = -1> (x, t, w) }",
        {"w": np.linspace(0.5, 2, 5, dtype=np.float32)},
        {
            "x": RNG.standard_normal((3, 5, 6), np.float32),
            "t": RNG.integers(-1, 5, (3, 6)),
        },
    ),
    "sequences turned round by their lengths": (
        "g (int8[n, t, 6] x, int64[n] l) => (int8[n, t, 6] y)"
        " { y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, l) }",
        {},
        {"x": BYTES, "l": np.array([5, 1, 3])},
    ),
    "what a mask leaves": (
        "g (int8[n, 5, 6] x, bool[4] m) => (int8[n, k, 6] y) { y = Compress <axis = 1> (x, m) }",
        {},
        {"x": BYTES, "m": np.array([True, False, True, True])},
    ),
}


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("case", CASES)
def test_as_onnxruntime(case: str) -> None:
    graph, weights, feeds = CASES[case]
    proto = model(graph, 21 if "block_size" in graph else 18, weights)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    executable = unity.compile(proto, cache=None)
    outputs = zip(executable.run(feeds).values(), session.run(None, feeds), strict=True)
    for got, expected in ((np.asarray(x), np.asarray(y)) for x, y in outputs):
        assert got.dtype == expected.dtype
        a, b = got.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
