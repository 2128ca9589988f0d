"""HannWindow, HammingWindow and BlackmanWindow: sums of cosines over a length."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from unity.frontend.onnx.node import Converter, Node, Value
from unity.frontend.onnx.reading.tensors import dtype_of
from unity.frontend.run_time.vectors import vector_of
from unity.ir.dims import as_dim
from unity.ir.dtype import FLOAT32, FLOAT64
from unity.ir.graph import Expr

_FLOAT = 1


def _window(weights: Sequence[float]) -> Converter:
    """The weights of the cosines of 0, 1, 2 ... times the angle, signs left out: they alternate."""

    def convert(node: Node) -> Value:
        (length,) = node.dims(0, "the size")
        target = dtype_of(node.int_of("output_datatype", _FLOAT), "the attribute 'output_datatype'")
        wide = FLOAT64 if target == FLOAT64 else FLOAT32
        whole = length if node.int_of("periodic", 1) else as_dim(length - 1)
        # A window of one element that is not periodic is divided by 1, not by 0.
        period = node.cast(vector_of(node, (whole,)).most(1).value, wide)
        nth = node.op("astype", node.op("arange", 0, length, 1), dtype=wide)
        angle = node.op("divide", node.op("multiply", nth, node.number(2 * pi, nth)), period)
        total: Expr = node.op("full_like", angle, node.number(weights[0], angle))
        for k, weight in enumerate(weights[1:], 1):
            wave = node.op("cos", node.op("multiply", angle, node.number(float(k), angle)))
            term = node.op("multiply", wave, node.number(weight, wave))
            total = node.op("subtract" if k % 2 else "add", total, term)
        return node.cast(total, target)

    return convert


CONVERTERS: dict[str, Converter] = {
    "HannWindow": _window((0.5, 0.5)),
    "HammingWindow": _window((25 / 46, 21 / 46)),
    "BlackmanWindow": _window((0.42, 0.5, 0.08)),
}
