"""The operator table: models of one operator, at the sizes that the models above are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from .graph import Array, Graph, Shape
from .work import Feeds, Work


def _noise(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def _product(m: int, k: int, n: int, transposed: bool = False) -> Work:
    """``a[m, k] @ b``, both given at run time; `b` is ``[k, n]``, or ``[n, k]`` and transposed."""
    right: Shape = [n, k] if transposed else [k, n]

    def build() -> onnx.ModelProto:
        g = Graph("matmul")
        a, b = g.input("a", [m, k]), g.input("b", right)
        g.output(g.op("Gemm", a, b, transB=int(transposed)), "y", [m, n])
        return g.model()

    def feeds(_: int) -> Feeds:
        return {"a": _noise(m, k), "b": _noise(*(int(e) for e in right))}

    return Work(build, feeds, gflop=2e-9 * m * k * n)


def _linear(m: int, k: int, n: int) -> Work:
    """``x[m, k] @ w[k, n]`` by a constant."""

    def build() -> onnx.ModelProto:
        g = Graph("linear")
        x = g.input("x", [m, k])
        g.output(g.op("MatMul", x, g.normal("w", (k, n), k**-0.5)), "y", [m, n])
        return g.model()

    return Work(build, lambda _: {"x": _noise(m, k)}, gflop=2e-9 * m * k * n)


def _conv(cin: int, cout: int, kernel: int, size: int, groups: int = 1) -> Work:
    """A convolution of one image by constants, which keeps height and width."""

    def build() -> onnx.ModelProto:
        g = Graph("conv")
        x = g.input("x", [1, cin, size, size])
        shape = (cout, cin // groups, kernel, kernel)
        weight = g.normal("w", shape, (cin // groups * kernel * kernel) ** -0.5)
        pads = [kernel // 2] * 4
        y = g.op("Conv", x, weight, kernel_shape=[kernel, kernel], pads=pads, group=groups)
        g.output(y, "y", [1, cout, size, size])
        return g.model()

    work = 2e-9 * cout * (cin // groups) * kernel * kernel * size * size
    return Work(build, lambda _: {"x": _noise(1, cin, size, size)}, gflop=work)


def _unary(kind: str, shape: tuple[int, ...], **attrs: Any) -> Work:
    """An operator of one tensor whose result has the same shape, or the permuted one."""
    out: Shape = [shape[i] for i in attrs.get("perm", range(len(shape)))]

    def build() -> onnx.ModelProto:
        g = Graph(kind.lower())
        g.output(g.op(kind, g.input("x", list(shape)), **attrs), "y", out)
        return g.model(opset=20)

    return Work(build, lambda _: {"x": _noise(*shape)}, gbyte=8e-9 * float(np.prod(shape)))


def _layer_norm(rows: int, width: int) -> Work:
    def build() -> onnx.ModelProto:
        g = Graph("layer_norm")
        scale, bias = g.uniform("scale", (width,), 0.5, 1.0), g.normal("bias", (width,), 0.1)
        x = g.input("x", [rows, width])
        y = g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        g.output(y, "y", [rows, width])
        return g.model()

    return Work(build, lambda _: {"x": _noise(rows, width)}, gbyte=8e-9 * rows * width)


OPERATORS: Mapping[str, Work] = {
    "matmul_1024": _product(1024, 1024, 1024),
    "matmul_512": _product(512, 512, 512),
    "matmul_1000x771x513": _product(1000, 771, 513),
    "matmul_128x768x768": _product(128, 768, 768),
    "linear_128x768x768": _linear(128, 768, 768),
    "gemv_4096": _product(1, 4096, 4096),
    "gemv_4096_transposed": _product(1, 4096, 4096, transposed=True),
    "conv3x3_64_64_56": _conv(64, 64, 3, 56),
    "conv1x1_256_64_56": _conv(256, 64, 1, 56),
    "depthwise3x3_96_112": _conv(96, 96, 3, 112, groups=96),
    "softmax_1024x1024": _unary("Softmax", (1024, 1024), axis=-1),
    "layernorm_128x768": _layer_norm(128, 768),
    "gelu_1M": _unary("Gelu", (1024, 1024)),
    "transpose_1024x1024": _unary("Transpose", (1024, 1024), perm=[1, 0]),
    "transpose_heads": _unary("Transpose", (1, 128, 12, 64), perm=[0, 2, 1, 3]),
}
