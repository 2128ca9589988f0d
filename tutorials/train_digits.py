"""Train the small CNN that ships with Unity, in plain numpy, and store it as ONNX.

Run it with ``python tutorials/train_digits.py`` (needs scikit-learn for the data, nothing from the
network). It writes ``unity/demo/digits.onnx``, whose batch is symbolic, and
``unity/demo/digits.npz`` with the images the training never saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
TARGET = Path(__file__).parents[1] / "unity" / "demo"
HELD_OUT = 360


def windows(x: Array) -> Array:
    """The 3x3 surroundings of every pixel, [N, C, H, W] -> [N, H, W, C * 9]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [padded[:, :, i : i + h, j : j + w] for i in range(3) for j in range(3)]
    return np.stack(taps, axis=2).reshape(n, c * 9, h, w).transpose(0, 2, 3, 1)


def scatter(grad: Array, c: int) -> Array:
    """The transpose of `windows`: [N, H, W, C * 9] -> [N, C, H, W]."""
    n, h, w, _ = grad.shape
    taps = grad.transpose(0, 3, 1, 2).reshape(n, c, 9, h, w)
    padded = np.zeros((n, c, h + 2, w + 2), np.float32)
    for tap in range(9):
        i, j = divmod(tap, 3)
        padded[:, :, i : i + h, j : j + w] += taps[:, :, tap]
    return padded[:, :, 1:-1, 1:-1]


@dataclass
class Network:
    """conv 1-16, relu, conv 16-32, relu, max pool 2, fully connected 512-10."""

    params: dict[str, Array]
    momentum: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    steps: int = 0

    def forward(self, x: Array) -> tuple[Array, dict[str, Array]]:
        """Class scores and what the backward pass needs."""
        p, kept = self.params, dict[str, Array]()
        for i in (1, 2):
            kept[f"cols{i}"] = cols = windows(x)
            y = cols @ p[f"conv{i}.weight"].reshape(len(p[f"conv{i}.bias"]), -1).T
            x = kept[f"relu{i}"] = np.maximum(y + p[f"conv{i}.bias"], 0).transpose(0, 3, 1, 2)
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5)
        blocks = blocks.reshape(n, c, h // 2, w // 2, 4)
        kept["choice"] = blocks == blocks.max(-1, keepdims=True)
        kept["flat"] = flat = blocks.max(-1).reshape(n, -1)
        return flat @ p["fc.weight"].T + p["fc.bias"], kept

    def gradients(self, x: Array, labels: Labels) -> tuple[float, dict[str, Array]]:
        """The cross entropy and its gradient in each parameter."""
        p, n = self.params, len(x)
        scores, kept = self.forward(x)
        e = np.exp(scores - scores.max(1, keepdims=True))
        probability = e / e.sum(1, keepdims=True)
        loss = float(-np.log(probability[np.arange(n), labels] + 1e-9).mean())
        d = probability.copy()
        d[np.arange(n), labels] -= 1
        d = (d / n).astype(np.float32)
        grads = {"fc.weight": d.T @ kept["flat"], "fc.bias": d.sum(0)}
        pooled = (d @ p["fc.weight"]).reshape(n, 32, 4, 4, 1)
        spread = (pooled * kept["choice"]).reshape(n, 32, 4, 4, 2, 2)
        dx = spread.transpose(0, 1, 2, 4, 3, 5).reshape(n, 32, 8, 8)
        for i in (2, 1):
            dy = (dx * (kept[f"relu{i}"] > 0)).transpose(0, 2, 3, 1)
            out = dy.shape[-1]
            weight = p[f"conv{i}.weight"]
            cols = kept[f"cols{i}"]
            grads[f"conv{i}.weight"] = (
                dy.reshape(-1, out).T @ cols.reshape(-1, cols.shape[-1])
            ).reshape(weight.shape)
            grads[f"conv{i}.bias"] = dy.sum((0, 1, 2))
            dx = scatter(dy @ weight.reshape(out, -1), weight.shape[1])
        return loss, grads

    def step(self, grads: dict[str, Array], rate: float) -> None:
        """One step of Adam (Kingma and Ba, 2015)."""
        self.steps += 1
        for name, g in grads.items():
            m, v = self.momentum.get(name, (np.zeros_like(g), np.zeros_like(g)))
            m = (0.9 * m + 0.1 * g).astype(np.float32)
            v = (0.999 * v + 0.001 * g * g).astype(np.float32)
            self.momentum[name] = (m, v)
            scale = rate * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
            self.params[name] = (self.params[name] - scale * m / (np.sqrt(v) + 1e-8)).astype("f4")


def initial(rng: np.random.Generator) -> Network:
    """He initialisation."""
    shapes = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "fc": (10, 512)}
    params: dict[str, Array] = {}
    for name, shape in shapes.items():
        spread = np.sqrt(2 / np.prod(shape[1:]))
        params[f"{name}.weight"] = (rng.standard_normal(shape) * spread).astype(np.float32)
        params[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    return Network(params)


def to_onnx(params: dict[str, Array]) -> onnx.ModelProto:
    """The trained network as an ONNX graph: image [batch, 1, 8, 8] -> scores [batch, 10]."""
    pads: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["c1"], "conv1", **pads),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], "conv2", **pads),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["flat"], "flatten", axis=1),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["scores"], "fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(value, name) for name, value in params.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Train, report, and write the two files."""
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    order = rng.permutation(len(images))
    train, test = order[HELD_OUT:], order[:HELD_OUT]
    network = initial(rng)
    for epoch in range(25):
        shuffled, losses = rng.permutation(train), list[float]()
        for start in range(0, len(shuffled), 32):
            batch = shuffled[start : start + 32]
            loss, grads = network.gradients(images[batch], labels[batch])
            network.step(grads, 2e-3 * 0.9**epoch)
            losses.append(loss)
        scores, _ = network.forward(images[test])
        accuracy = float((scores.argmax(1) == labels[test]).mean())
        print(f"epoch {epoch + 1:2d}: loss {np.mean(losses):.4f}, held out {accuracy:.2%}")
    TARGET.mkdir(exist_ok=True)
    onnx.save(to_onnx(network.params), TARGET / "digits.onnx")
    np.savez_compressed(TARGET / "digits.npz", images=images[test], labels=labels[test])


if __name__ == "__main__":
    main()
