"""Networks with random weights, as the tutorials of TVM take them: ``relay.testing.resnet``."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from unity.ir.dtype import Array

from .analysis import free_vars
from .expr import Expr, Function, Var, var
from .module import IRModule
from .operators import ROOT

_BLOCKS: Mapping[int, tuple[int, ...]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
_STEM = 64


def create_workload(net: Expr, seed: int = 0) -> tuple[IRModule, dict[str, Array]]:
    """A module, and random values for all its parameters but ``data``."""
    made = net if isinstance(net, Function) else Function(_variables(net), net)
    rng = np.random.default_rng(seed)
    params: dict[str, Array] = {}
    for param in made.params:
        assert isinstance(param, Var)
        kind = param.type_annotation
        if param.name_hint != "data" and kind is not None:
            params[param.name_hint] = _values(param.name_hint, getattr(kind, "shape", ()), rng)
    return IRModule.from_expr(made), params


def _variables(net: Expr) -> list[Var]:
    return [v for v in free_vars(net) if isinstance(v, Var)]


def _values(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if name.endswith(("gamma", "var")):
        return np.ones(shape, np.float32)
    if len(shape) < 2:
        return np.zeros(shape, np.float32)
    scale = np.float32(np.sqrt(2 / np.prod(shape[1:])))
    return rng.standard_normal(shape, np.float32) * scale


def _conv(x: Any, name: str, taken: int, given: int, size: int, stride: int = 1) -> Any:
    weight = var(f"{name}_weight", shape=(given, taken, size, size))
    return ROOT.nn.conv2d(
        x, weight, strides=(stride, stride), padding=(size // 2, size // 2),
        channels=given, kernel_size=(size, size),
    )  # fmt: skip


def _norm(x: Any, name: str, channels: int) -> Any:
    parts = ("gamma", "beta", "moving_mean", "moving_var")
    scales = (var(f"{name}_{part}", shape=(channels,)) for part in parts)
    return ROOT.nn.relu(ROOT.nn.batch_norm(x, *scales, epsilon=2e-5)[0])


def _unit(x: Any, name: str, taken: int, given: int, stride: int, narrow: bool) -> Any:
    """What is added to its input, which is normalized first."""
    y = _norm(x, f"{name}_bn1", taken)
    same = taken == given and stride == 1
    around = x if same else _conv(y, f"{name}_sc", taken, given, 1, stride)
    if not narrow:
        y = _norm(_conv(y, f"{name}_conv1", taken, given, 3, stride), f"{name}_bn2", given)
        return ROOT.add(_conv(y, f"{name}_conv2", given, given, 3), around)
    inner = given // 4
    y = _norm(_conv(y, f"{name}_conv1", taken, inner, 1), f"{name}_bn2", inner)
    y = _norm(_conv(y, f"{name}_conv2", inner, inner, 3, stride), f"{name}_bn3", inner)
    return ROOT.add(_conv(y, f"{name}_conv3", inner, given, 1), around)


def resnet_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, int, int] = (3, 224, 224),
    dtype: str = "float32",
    **_: object,
) -> tuple[IRModule, dict[str, Array]]:
    """A residual network whose units normalize first (He et al. 2016).

    Raises:
        KeyError: There is none of so many layers.
    """
    narrow = num_layers >= 50
    widths = [w * (4 if narrow else 1) for w in (64, 128, 256, 512)]
    x = _conv(var("data", shape=(batch_size, *image_shape), dtype=dtype), "conv0", 3, _STEM, 7, 2)
    x = ROOT.nn.max_pool2d(_norm(x, "bn0", _STEM), (3, 3), (2, 2), padding=(1, 1))
    taken = _STEM
    for stage, (count, width) in enumerate(zip(_BLOCKS[num_layers], widths, strict=True), 1):
        for unit in range(count):
            stride = 2 if unit == 0 and stage > 1 else 1
            x = _unit(x, f"stage{stage}_unit{unit + 1}", taken, width, stride, narrow)
            taken = width
    flat = ROOT.nn.batch_flatten(ROOT.nn.global_avg_pool2d(_norm(x, "bn1", taken)))
    return create_workload(ROOT.nn.softmax(_dense(flat, "fc1", taken, num_classes)))


def _dense(x: Any, name: str, taken: int, given: int) -> Any:
    y = ROOT.nn.dense(x, var(f"{name}_weight", shape=(given, taken)), units=given)
    return ROOT.nn.bias_add(y, var(f"{name}_bias", shape=(given,)), axis=-1)


def mlp_workload(
    batch_size: int,
    num_classes: int = 10,
    image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, Array]]:
    """Three layers of products."""
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    x, taken = ROOT.nn.batch_flatten(data), int(np.prod(image_shape))
    for layer, width in enumerate((128, 64), 1):
        x, taken = ROOT.nn.relu(_dense(x, f"fc{layer}", taken, width)), width
    return create_workload(ROOT.nn.softmax(_dense(x, "fc3", taken, num_classes)))


resnet = SimpleNamespace(get_workload=resnet_workload)
mlp = SimpleNamespace(get_workload=mlp_workload)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"relay.testing.{name} is not there: it has resnet and mlp; other networks come by "
        "relay.frontend.from_onnx"
    )
