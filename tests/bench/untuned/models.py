"""The models: seeded weights, as small as tells something, and the sizes that may be unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from tests.bench import cnn, transformer
from tests.bench.graph import Graph
from tests.bench.models import decoder_step, tokens
from tests.bench.work import Feeds

Axes = tuple[str | None, ...]
"""For each axis of an input the symbol that it has where sizes are unknown."""


@dataclass(frozen=True, slots=True)
class Untuned:
    """A model.

    Attributes:
        name: What the table calls it.
        build: Makes it, of fixed sizes.
        inputs: Seeded ones.
        unknown: The axes of each input that are left open in the other form.
    """

    name: str
    build: Callable[[], onnx.ModelProto]
    inputs: Callable[[], Feeds]
    unknown: Mapping[str, Axes]

    def model(self, known: bool) -> onnx.ModelProto:
        """The model, of the inputs' sizes or with unknown ones."""
        model, feeds = self.build(), self.inputs()
        for value in model.graph.input:
            symbols = self.unknown.get(value.name, (None,) * feeds[value.name].ndim)
            dims = value.type.tensor_type.shape.dim
            for dim, size, symbol in zip(dims, feeds[value.name].shape, symbols, strict=True):
                if known or symbol is None:
                    dim.dim_value = size
                else:
                    dim.dim_param = symbol
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
        return onnx.shape_inference.infer_shapes(model)

    def feeds(self) -> Feeds:
        """Seeded inputs."""
        return self.inputs()


def image(*shape: int) -> Callable[[], Feeds]:
    """Noise of a shape."""
    return lambda: {"image": np.random.default_rng(1).standard_normal(shape, np.float32)}


def sound(samples: int) -> Callable[[], Feeds]:
    """A second or so of noise."""
    rng = np.random.default_rng(1)
    return lambda: {"sound": rng.standard_normal((1, 1, samples), np.float32)}


def conv(
    g: Graph, x: str, cin: int, cout: int, kernel: tuple[int, ...], stride: int = 1, **attrs: int
) -> str:
    """A convolution with bias, padded so that a stride of 1 keeps sizes."""
    g.count += 1
    groups = attrs.pop("group", 1)
    shape = (cout, cin // groups, *kernel)
    weight = g.normal(f"w{g.count}", shape, math.sqrt(2 / math.prod(shape[1:])))
    return g.op(
        "Conv",
        x,
        weight,
        g.normal(f"b{g.count}", (cout,), 0.05),
        kernel_shape=list(kernel),
        strides=[stride] * len(kernel),
        pads=[k // 2 for k in kernel] * 2,
        group=groups,
    )


def swish(g: Graph, x: str) -> str:
    """``x * sigmoid(x)``."""
    return g.op("Mul", x, g.op("Sigmoid", x))


def efficientnet() -> onnx.ModelProto:
    """Inverted residuals with squeeze and excitation, as EfficientNet-B0 begins (Tan 2019)."""
    g = Graph("efficientnet", seed=11)
    x = swish(g, conv(g, g.input("image", [1, 3, "h", "w"]), 3, 32, (3, 3), 2))
    channels = 32
    for expansion, out, repeats, first_stride, kernel in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 2, 1, 5),
    ):  # fmt: skip
        for i in range(repeats):
            stride, hidden = (first_stride if i == 0 else 1), channels * expansion
            y = swish(g, conv(g, x, channels, hidden, (1, 1))) if expansion > 1 else x
            y = swish(g, conv(g, y, hidden, hidden, (kernel, kernel), stride, group=hidden))
            scale = swish(g, conv(g, g.op("GlobalAveragePool", y), hidden, channels // 4, (1, 1)))
            scale = g.op("Sigmoid", conv(g, scale, channels // 4, hidden, (1, 1)))
            y = conv(g, g.op("Mul", y, scale), hidden, out, (1, 1))
            x = g.op("Add", x, y) if stride == 1 and channels == out else y
            channels = out
    return cnn.classifier(g, x, channels, 1)


def convnext() -> onnx.ModelProto:
    """Blocks of ConvNeXt (Liu 2022): 7x7 by channels, norms and products over channels last."""
    g = Graph("convnext", seed=12)
    x, channels = g.input("image", [1, 3, "h", "w"]), 96
    weight = g.normal("stem", (96, 3, 4, 4), 0.1)
    x = g.op("Conv", x, weight, kernel_shape=[4, 4], strides=[4, 4])
    for stage, repeats in enumerate((2, 2)):
        if stage:
            weight = g.normal(f"down{stage}", (2 * channels, channels, 2, 2), 0.05)
            x = g.op("Conv", x, weight, kernel_shape=[2, 2], strides=[2, 2])
            channels *= 2
        for i in range(repeats):
            name = f"stage{stage}.{i}"
            y = conv(g, x, channels, channels, (7, 7), group=channels)
            y = g.op("Transpose", y, perm=[0, 2, 3, 1])
            y = transformer.layer_norm(g, y, f"{name}.norm", channels, 1e-6)
            y = transformer.gelu(g, transformer.linear(g, y, f"{name}.1", channels, 4 * channels))
            y = transformer.linear(g, y, f"{name}.2", 4 * channels, channels)
            x = g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))
    return cnn.classifier(g, x, channels, 1)


def unet() -> onnx.ModelProto:
    """Two steps down and up again, each with what was there before (Ronneberger 2015)."""
    g = Graph("unet", seed=13)

    def twice(x: str, cin: int, cout: int) -> str:
        x = g.op("Relu", conv(g, x, cin, cout, (3, 3)))
        return g.op("Relu", conv(g, x, cout, cout, (3, 3)))

    x, kept = g.input("image", [1, 3, "h", "w"]), list[str]()
    for cin, cout in ((3, 32), (32, 64)):
        x = twice(x, cin, cout)
        kept.append(x)
        x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = twice(x, 64, 128)
    for cin, cout in ((128, 64), (64, 32)):
        weight = g.normal(f"up{cout}", (cin, cout, 2, 2), 0.05)
        x = g.op("ConvTranspose", x, weight, kernel_shape=[2, 2], strides=[2, 2])
        x = twice(g.op("Concat", kept.pop(), x, axis=1), 2 * cout, cout)
    g.output(conv(g, x, 32, 4, (1, 1)), "classes", [1, 4, "h", "w"])
    return g.model()


def r3d() -> onnx.ModelProto:
    """The first stages of R3D-18 (Tran 2018): residual blocks of 3x3x3 over frames."""
    g = Graph("r3d", seed=14)
    x = g.input("image", [1, 3, "t", "h", "w"])
    weight = g.normal("stem", (64, 3, 3, 7, 7), 0.05)
    x = g.op(
        "Relu",
        g.op("Conv", x, weight, kernel_shape=[3, 7, 7], strides=[1, 2, 2], pads=[1, 3, 3, 1, 3, 3]),
    )
    channels = 64
    for cout, stride in ((64, 1), (128, 2)):
        shortcut = x
        if stride > 1:
            weight = g.normal(f"skip{cout}", (cout, channels, 1, 1, 1), 0.1)
            shortcut = g.op("Conv", x, weight, kernel_shape=[1, 1, 1], strides=[stride] * 3)
        y = g.op("Relu", conv(g, x, channels, cout, (3, 3, 3), stride))
        x = g.op("Relu", g.op("Add", conv(g, y, cout, cout, (3, 3, 3)), shortcut))
        channels = cout
    return cnn.classifier(g, x, channels, 1)


def audio_encoder() -> onnx.ModelProto:
    """Convolutions over samples, as wav2vec's encoder: one norm by channels, then GELU."""
    g = Graph("audio", seed=15)
    x, channels = g.input("sound", [1, 1, "n"]), 1
    for i, (kernel, stride) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (2, 2))):
        weight = g.normal(f"w{i}", (256, channels, kernel), math.sqrt(2 / (channels * kernel)))
        x = g.op("Conv", x, weight, kernel_shape=[kernel], strides=[stride])
        if i == 0:
            scale, shift = g.normal("scale", (256,), 0.05, 1.0), g.normal("shift", (256,), 0.05)
            x = g.op("InstanceNormalization", x, scale, shift)
        x, channels = transformer.gelu(g, x), 256
    g.output(g.op("Transpose", x, perm=[0, 2, 1]), "features", [1, "m", 256])
    return g.model()


def stft() -> onnx.ModelProto:
    """A log-mel front end: an STFT by a convolution, squared, 80 mel filters, the logarithm."""
    g = Graph("stft", seed=16)
    x = g.input("sound", [1, 1, "n"])
    step, bins = np.arange(400), np.arange(201)[:, None]
    window = np.hanning(400)
    turns = 2 * np.pi * bins * step / 400
    basis = np.concatenate([window * np.cos(turns), window * np.sin(turns)]).astype(np.float32)
    parts = g.op(
        "Conv", x, g.const(basis[:, None]), kernel_shape=[400], strides=[160], pads=[200, 200]
    )
    real, imaginary = g.ops("Split", parts, g.ints(201, 201), outputs=2, axis=1)
    power = g.op("Add", g.op("Mul", real, real), g.op("Mul", imaginary, imaginary))
    filters = np.abs(g.rng.standard_normal((80, 201), np.float32)) / 201
    mel = g.op("MatMul", g.const(filters), power)
    floor = g.op("Max", mel, transformer.f32(g, 1e-10))
    g.output(g.op("Log", floor), "mel", [1, 80, "m"])
    return g.model()


def prompt() -> Feeds:
    """Sixteen new tokens after as many cached ones."""
    return decoder_step(16, layers=1, heads=4, size=64, vocab=1000, new=16)


PAST: Mapping[str, Axes] = {f"past_{k}0": ("b", None, "p", None) for k in "kv"}
WHOLE: Axes = ("b", None, "h", "w")
UNTUNED: dict[str, Untuned] = {
    work.name: work
    for work in (
        Untuned("resnet18", lambda: cnn.resnet(18), image(1, 3, 160, 160), {"image": WHOLE}),
        Untuned("resnet18 batch 4", lambda: cnn.resnet(18), image(4, 3, 112, 112),
                {"image": ("b", None, None, None)}),
        Untuned("mobilenetv2", cnn.mobilenetv2, image(1, 3, 160, 160), {"image": WHOLE}),
        Untuned("efficientnet", efficientnet, image(1, 3, 160, 160),
                {"image": (None, None, "h", "w")}),
        Untuned("convnext", convnext, image(1, 3, 160, 160), {"image": (None, None, "h", "w")}),
        Untuned("unet", unet, image(1, 3, 96, 96), {"image": (None, None, "h", "w")}),
        Untuned("r3d", r3d, image(1, 3, 4, 56, 56), {"image": (None, None, "t", "h", "w")}),
        Untuned("audio encoder", audio_encoder, sound(8000), {"sound": (None, None, "n")}),
        Untuned("stft front end", stft, sound(16000), {"sound": (None, None, "n")}),
        Untuned("bert 2 layers", lambda: transformer.bert(layers=2, length="S", vocab=1000),
                lambda: tokens(100, 1000),
                {"input_ids": ("b", "s"), "attention_mask": ("b", "s")}),
        Untuned("llama block", lambda: transformer.llama(layers=1, vocab=1000), prompt,
                {"input_ids": ("b", "t"), **PAST}),
    )
}  # fmt: skip
"""All of them by name."""
