"""The references of the nn operators against torch, which wrote none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.op.registry import attr_value
from unity.op.table import OPS

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F  # noqa: N812
else:
    torch = pytest.importorskip("torch")
    F = pytest.importorskip("torch.nn.functional")

pytestmark = pytest.mark.torch

RNG = np.random.default_rng(0)


def floats(*shape: int) -> npt.NDArray[np.float64]:
    return RNG.standard_normal(shape)


def reference(name: str, *arrays: Array, **attrs: object) -> Array:
    """What an operator's reference says, its defaults filled in."""
    op = OPS[name]
    given = {p.name: p.default for p in op.params if p.kind == "attr"} | attrs
    assert op.reference is not None
    found = op.reference(arrays, Attrs({k: attr_value(v) for k, v in given.items()}))
    assert isinstance(found, np.ndarray)
    return found


def agree(ours: Array, theirs: torch.Tensor) -> None:
    np.testing.assert_allclose(ours.astype(np.float64), theirs.numpy(), rtol=1e-9, atol=1e-9)


def tensor(x: Array) -> torch.Tensor:
    return torch.from_numpy(x)


Torch = Callable[[Any], Any]
ACTIVATIONS: dict[str, Torch] = {
    "nn.relu": lambda x: F.relu(x),
    "nn.gelu": lambda x: F.gelu(x),
    "nn.gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "nn.silu": lambda x: F.silu(x),
    "nn.leakyrelu": lambda x: F.leaky_relu(x),
    "nn.elu": lambda x: F.elu(x),
    "nn.selu": lambda x: F.selu(x),
    "nn.softplus": lambda x: F.softplus(x),
    "nn.hardsigmoid": lambda x: F.hardsigmoid(x),
    "nn.hardswish": lambda x: F.hardswish(x),
    "nn.mish": lambda x: F.mish(x),
    "nn.softmax": lambda x: F.softmax(x, -1),
    "nn.log_softmax": lambda x: F.log_softmax(x, -1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    x = floats(5, 9) * 4
    ours, theirs = reference(name, x), ACTIVATIONS[name](tensor(x))
    np.testing.assert_allclose(ours.astype(np.float64), theirs.numpy(), rtol=1e-7, atol=1e-8)


CONVOLUTIONS = [
    ((2, 3, 9, 8), (4, 3, 3, 3), {"strides": 2, "padding": 1}),
    ((1, 4, 7, 7), (4, 1, 3, 3), {"groups": 4, "padding": (1, 1)}),
    ((2, 4, 9, 9), (6, 2, 3, 2), {"groups": 2, "dilation": (2, 1), "strides": (1, 3)}),
    ((2, 3, 11), (5, 3, 4), {"padding": 2}),
    ((1, 2, 5, 6, 5), (3, 2, 2, 3, 1), {"strides": (1, 2, 1)}),
]


@pytest.mark.parametrize(("shape", "weight", "attrs"), CONVOLUTIONS)
def test_convolution(
    shape: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, int | tuple[int, ...]]
) -> None:
    rank = len(shape) - 2
    x, w = floats(*shape), floats(*weight)
    theirs: dict[str, Any] = {"stride" if k == "strides" else k: v for k, v in attrs.items()}
    run = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    agree(reference(f"nn.conv{rank}d", x, w, **attrs), run(tensor(x), tensor(w), **theirs))


def test_asymmetric_padding_is_begins_then_ends() -> None:
    x, w = floats(1, 2, 6, 6), floats(3, 2, 3, 3)
    padded = F.pad(tensor(x), (1, 3, 0, 2))  # torch: the last axis first
    agree(reference("nn.conv2d", x, w, padding=(0, 1, 2, 3)), F.conv2d(padded, tensor(w)))


TRANSPOSED = [
    ((2, 3, 5, 4), (3, 2, 3, 3), {"strides": 2, "padding": 1, "output_padding": 1}),
    ((1, 4, 4, 4), (4, 3, 2, 2), {"groups": 2, "strides": 3}),
    ((1, 2, 5, 5), (2, 2, 3, 3), {"dilation": 2, "padding": (2, 1)}),
    ((2, 3, 7), (3, 2, 4), {"strides": 2}),
]


@pytest.mark.parametrize(("shape", "weight", "attrs"), TRANSPOSED)
def test_transposed_convolution(
    shape: tuple[int, ...], weight: tuple[int, ...], attrs: dict[str, int | tuple[int, ...]]
) -> None:
    rank = len(shape) - 2
    x, w = floats(*shape), floats(*weight)
    theirs: dict[str, Any] = {"stride" if k == "strides" else k: v for k, v in attrs.items()}
    run = (F.conv_transpose1d, F.conv_transpose2d)[rank - 1]
    ours = reference(f"nn.conv{rank}d_transpose", x, w, **attrs)
    agree(ours, run(tensor(x), tensor(w), **theirs))


POOLS = [(k, s, p, c) for k in (2, 3) for s in (1, 2, 3) for p in (0, 1) for c in (False, True)]


@pytest.mark.parametrize(("size", "stride", "padding", "ceil"), POOLS)
def test_pools(size: int, stride: int, padding: int, ceil: bool) -> None:
    x = floats(2, 3, 8, 9)
    ours: dict[str, object] = {
        "pool_size": size, "strides": stride, "padding": padding, "ceil_mode": ceil,
    }  # fmt: skip
    agree(
        reference("nn.max_pool2d", x, **ours),
        F.max_pool2d(tensor(x), size, stride, padding, ceil_mode=ceil),
    )
    for included in (False, True):
        agree(
            reference("nn.avg_pool2d", x, **ours, count_include_pad=included),
            F.avg_pool2d(tensor(x), size, stride, padding, ceil, included),
        )


@pytest.mark.parametrize("parts", [(1, 1), (3, 2), (7, 9)])
def test_adaptive_pool(parts: tuple[int, int]) -> None:
    x = floats(2, 3, 7, 5)
    ours = reference("nn.adaptive_avg_pool2d", x, output_size=parts)
    agree(ours, F.adaptive_avg_pool2d(tensor(x), parts))


def test_norms() -> None:
    x, c, last = floats(2, 6, 5, 4), [floats(6), floats(6)], [floats(5, 4), floats(5, 4)]
    variance = np.abs(floats(6)) + 0.1
    mean = floats(6)
    agree(
        reference("nn.batch_norm", x, *c, mean, variance),
        F.batch_norm(tensor(x), tensor(mean), tensor(variance), tensor(c[0]), tensor(c[1])),
    )
    agree(
        reference("nn.layer_norm", x, *last, axes=(-2, -1)),
        F.layer_norm(tensor(x), (5, 4), tensor(last[0]), tensor(last[1])),
    )
    agree(
        reference("nn.rms_norm", x, last[0], axes=(-2, -1)),
        F.rms_norm(tensor(x), [5, 4], tensor(last[0]), 1e-5),
    )
    agree(
        reference("nn.group_norm", x, *c, num_groups=3),
        F.group_norm(tensor(x), 3, tensor(c[0]), tensor(c[1])),
    )
    agree(
        reference("nn.instance_norm", x, *c),
        F.instance_norm(tensor(x), weight=tensor(c[0]), bias=tensor(c[1])),
    )
    agree(
        reference("nn.lrn", x, size=3, alpha=0.3, beta=0.6, bias=1.5),
        F.local_response_norm(tensor(x), 3, 0.3, 0.6, 1.5),
    )


def test_prelu() -> None:
    x, slope = floats(2, 3, 4), floats(3)
    agree(reference("nn.prelu", x, slope), F.prelu(tensor(x), tensor(slope)))


def test_pixel_shuffle_is_depth_to_space_of_mode_crd() -> None:
    x = floats(2, 12, 3, 2)
    ours = reference("depth_to_space", x, block_size=2, mode="CRD")
    agree(ours, F.pixel_shuffle(tensor(x), 2))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pad_modes(mode: str) -> None:
    x = floats(1, 2, 5, 6)
    theirs = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}[mode]
    ours = reference("nn.pad", x, pad_width=(0, 0, 0, 0, 2, 1, 0, 3), pad_mode=mode)
    agree(ours, F.pad(tensor(x), (0, 3, 2, 1), mode=theirs))


def test_scatter_and_gather() -> None:
    x, values = floats(4, 5), floats(3, 5)
    at = RNG.integers(0, 4, (3, 5))
    agree(
        reference("scatter_elements", x, at, values, reduction="add"),
        tensor(x).scatter_add(0, tensor(at), tensor(values)),
    )
    agree(reference("gather_elements", x, at), tensor(x).gather(0, tensor(at)))
    agree(reference("take", x, at, axis=0), tensor(x)[tensor(at)])


def test_attention_scales_by_the_length_of_a_key_unless_told() -> None:
    q, k, v = floats(2, 5, 3, 8), floats(2, 7, 3, 8), floats(2, 7, 3, 4)
    a, b, c = (tensor(x).transpose(1, 2) for x in (q, k, v))
    whole = F.scaled_dot_product_attention(a, b, c)
    agree(reference("nn.attention", q, k, v), whole.transpose(1, 2))
    agree(reference("nn.attention", q, k, v, scale=8**-0.5), whole.transpose(1, 2))
    plain = F.scaled_dot_product_attention(a, b, c, scale=1.0)
    agree(reference("nn.attention", q, k, v, scale=1.0), plain.transpose(1, 2))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_average_pools_count_no_padding_unless_told(rank: int) -> None:
    x = floats(2, 3, *(7, 6, 5)[:rank])
    theirs = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    name, window = f"nn.avg_pool{rank}d", {"pool_size": 3, "strides": 2, "padding": 1}
    agree(reference(name, x, **window), theirs(tensor(x), 3, 2, 1, count_include_pad=False))
    agree(
        reference(name, x, **window, count_include_pad=True),
        theirs(tensor(x), 3, 2, 1, count_include_pad=True),
    )
