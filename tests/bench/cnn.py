"""Convolutional models: ResNet-18, -50 (He 2016), MobileNetV2 (Sandler 2018), and an MLP."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import onnx

from .graph import Graph, Shape

RESNETS = {18: (False, [2, 2, 2, 2]), 50: (True, [3, 4, 6, 3])}
# expansion, channels, repeats, stride
MOBILENET = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


def conv_bn(
    g: Graph, x: str, cin: int, cout: int, kernel: int, stride: int = 1, groups: int = 1
) -> str:
    """Convolution without bias, then batch normalization."""
    g.count += 1
    name = f"conv{g.count}"
    spread = math.sqrt(2 / (cin // groups * kernel * kernel))
    weight = g.normal(f"{name}.weight", (cout, cin // groups, kernel, kernel), spread)
    pad = kernel // 2
    x = g.op(
        "Conv",
        x,
        weight,
        name=name,
        kernel_shape=[kernel, kernel],
        strides=[stride, stride],
        pads=[pad] * 4,
        group=groups,
    )
    return g.op(
        "BatchNormalization",
        x,
        g.uniform(f"{name}.gamma", (cout,), 0.5, 1.0),
        g.normal(f"{name}.beta", (cout,), 0.05),
        g.normal(f"{name}.mean", (cout,), 0.05),
        g.uniform(f"{name}.var", (cout,), 0.8, 1.5),
        epsilon=1e-5,
    )


def classifier(g: Graph, x: str, channels: int, batch: int | str) -> onnx.ModelProto:
    """Global pooling and a fully connected layer to 1000 classes."""
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weight = g.normal("fc.weight", (1000, channels), math.sqrt(1 / channels))
    x = g.op("Gemm", x, weight, g.normal("fc.bias", (1000,), 0.01), transB=1)
    g.output(x, "scores", [batch, 1000])
    return g.model()


def resnet(depth: int, batch: int | str = 1, size: int = 224, stages: int = 4) -> onnx.ModelProto:
    """ResNet of 18 or 50 layers; input ``image [batch, 3, size, size]``.

    Tests take fewer stages.
    """
    bottleneck, depths = RESNETS[depth]
    g = Graph(f"resnet{depth}", seed=depth)
    shape: Shape = [batch, 3, size, size]
    x = g.op("Relu", conv_bn(g, g.input("image", shape), 3, 64, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, repeats in enumerate(depths[:stages]):
        width = 64 << stage
        out = width * (4 if bottleneck else 1)
        for i in range(repeats):
            stride = 2 if i == 0 and stage > 0 else 1
            shortcut = x
            if stride != 1 or channels != out:
                shortcut = conv_bn(g, x, channels, out, 1, stride)
            if bottleneck:
                y = g.op("Relu", conv_bn(g, x, channels, width, 1))
                y = g.op("Relu", conv_bn(g, y, width, width, 3, stride))
                y = conv_bn(g, y, width, out, 1)
            else:
                y = g.op("Relu", conv_bn(g, x, channels, width, 3, stride))
                y = conv_bn(g, y, width, width, 3)
            x = g.op("Relu", g.op("Add", y, shortcut))
            channels = out
    return classifier(g, x, channels, batch)


def mobilenetv2(batch: int | str = 1, size: int = 224, stages: int = 7) -> onnx.ModelProto:
    """MobileNetV2 of width 1; input ``image [batch, 3, size, size]``; tests take fewer stages."""
    g = Graph("mobilenetv2", seed=2)
    low, high = g.const(np.float32(0), "clip.low"), g.const(np.float32(6), "clip.high")

    def relu6(x: str) -> str:
        return g.op("Clip", x, low, high)

    shape: Shape = [batch, 3, size, size]
    x = relu6(conv_bn(g, g.input("image", shape), 3, 32, 3, 2))
    channels = 32
    for expansion, out, repeats, first_stride in MOBILENET[:stages]:
        for i in range(repeats):
            stride, hidden = (first_stride if i == 0 else 1), channels * expansion
            y = relu6(conv_bn(g, x, channels, hidden, 1)) if expansion > 1 else x
            y = relu6(conv_bn(g, y, hidden, hidden, 3, stride, hidden))
            y = conv_bn(g, y, hidden, out, 1)
            x = g.op("Add", x, y) if stride == 1 and channels == out else y
            channels = out
    x = relu6(conv_bn(g, x, channels, 1280, 1))
    return classifier(g, x, 1280, batch)


def mlp(batch: int | str = 1) -> onnx.ModelProto:
    """Fully connected 784-128-64-10; input ``x [batch, 784]``."""
    g = Graph("mlp")
    x, sizes = g.input("x", [batch, 784]), [784, 128, 64, 10]
    for i, (cin, cout) in enumerate(pairwise(sizes)):
        weight = g.normal(f"fc{i}.weight", (cout, cin), math.sqrt(1 / cin))
        x = g.op("Gemm", x, weight, g.normal(f"fc{i}.bias", (cout,), 0.01), transB=1)
        if i < 2:
            x = g.op("Relu", x)
    g.output(x, "y", [batch, 10])
    return g.model()
