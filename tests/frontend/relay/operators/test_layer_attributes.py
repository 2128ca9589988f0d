"""Attributes of Relay's layers that other tests leave at their defaults, against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, check_interpreted, module_of
from tests.frontend.relay.numpy_layers import convolution, pooling, transposed_convolution
from unity.errors import UnityError

Tensor = npt.NDArray[Any]
_DRAW = np.random.default_rng(7)
LAST = {1: (0, 2, 1), 2: (0, 2, 3, 1), 3: (0, 2, 3, 4, 1)}
SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _f(*shape: int) -> Tensor:
    return _DRAW.uniform(-1, 1, shape).astype(np.float32)


def _f32(x: Tensor) -> Tensor:
    return x.astype(np.float32)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank: int) -> None:
    space, ones, none = SPACE[rank], (1,) * rank, (0,) * (2 * rank)
    x = _f(2, 4, *(5,) * rank)
    w, grouped = (_f(6, taken, *(2,) * rank) for taken in (4, 2))
    name = f"nn.conv{rank}d"
    plain = _f32(convolution(x, w, ones, none, ones))
    inner = (*range(2, 2 + rank), 1, 0)
    halves = x.astype(np.float16), w.astype(np.float16)
    wide = _f32(convolution(halves[0].astype(np.float32), halves[1].astype(np.float32), ones,
                            none, ones))  # fmt: skip
    check_interpreted(
        [
            Case(name, [x, grouped], _f32(convolution(x, grouped, ones, none, ones, 2)), groups=2,
                 channels=6, kernel_size=(2,) * rank),
            Case(name, [x, w], _f32(convolution(x, w, ones, (1,) * (2 * rank), (2,) * rank)),
                 dilation=(2,) * rank, padding=(1,)),
            Case(name, [x.transpose(LAST[rank]), w.transpose(inner)], plain,
                 data_layout=f"N{space}C", kernel_layout=f"{space}IO", out_layout=f"NC{space}"),
            Case(name, [x, w], plain.transpose(LAST[rank]), out_layout=f"N{space}C"),
            Case(name, list(halves), wide, out_dtype="float32", tolerance=1e-3),
        ]
    )  # fmt: skip


def _spread(w: Tensor, dilation: int) -> Tensor:
    """A kernel with zeros between its elements."""
    shape = [(n - 1) * dilation + 1 for n in w.shape[2:]]
    found = np.zeros((*w.shape[:2], *shape), w.dtype)
    found[(slice(None), slice(None), *(slice(None, None, dilation),) * len(shape))] = w
    return found


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions(rank: int) -> None:
    space, none = SPACE[rank], (0,) * (2 * rank)
    ones, twos = (1,) * rank, (2,) * rank
    x, w = _f(2, 4, *(4,) * rank), _f(4, 3, *(3,) * rank)
    name = f"nn.conv{rank}d_transpose"
    spread = transposed_convolution(x, _spread(w, 2), twos, none, (0,) * rank)
    strided = _f32(transposed_convolution(x, w, twos, (1,) * (2 * rank), ones))
    halves = [
        transposed_convolution(x[:, 2 * g : 2 * g + 2], w[2 * g : 2 * g + 2], ones, none,
                               (0,) * rank)
        for g in range(2)
    ]  # fmt: skip
    outer = (*range(2, 2 + rank), 1, 0)
    check_interpreted(
        [
            Case(name, [x, w], _f32(spread), dilation=twos, strides=twos),
            Case(name, [x, w], _f32(np.concatenate(halves, 1)), groups=2, channels=6),
            Case(name, [x, w], strided, strides=twos, padding=(1,), output_padding=ones,
                 channels=3, kernel_size=(3,) * rank, out_dtype="float32"),
            Case(name, [x.transpose(LAST[rank]), w.transpose(outer)], strided, strides=twos,
                 padding=(1,), output_padding=ones, data_layout=f"N{space}C",
                 kernel_layout=f"{space}OI", out_layout=f"NC{space}"),
        ]
    )  # fmt: skip


def test_convolutions_on_blocks() -> None:
    x, w = _f(1, 4, 6, 5), _f(8, 2, 3, 3)
    wanted = _f32(convolution(x, w, (2, 1), (1, 1, 1, 1), (1, 1), 2))
    blocked = x.reshape(1, 2, 2, 6, 5).transpose(0, 1, 3, 4, 2)
    weight = w.reshape(4, 2, 1, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    alone = _f(4, 1, 3, 3)
    depthwise = _f32(convolution(x, alone, (1, 1), (0,) * 4, (1, 1), 4))
    layouts: dict[str, Any] = {"data_layout": "NCHW2c", "out_layout": "NCHW2c"}

    def split(y: Tensor) -> Tensor:
        n, c, h, width = y.shape
        return y.reshape(n, c // 2, 2, h, width).transpose(0, 1, 3, 4, 2)

    check_interpreted(
        [
            Case("nn.contrib_conv2d_NCHWc", [blocked, weight], split(wanted), strides=(2, 1),
                 padding=(1, 1), groups=2, channels=8, kernel_size=(3, 3), out_dtype="float32",
                 kernel_layout="OIHW2i2o", **layouts),
            Case("nn.contrib_depthwise_conv2d_NCHWc",
                 [blocked, alone.reshape(2, 2, 1, 1, 3, 3).transpose(0, 2, 4, 5, 3, 1)],
                 split(depthwise), groups=4, kernel_layout="OIHW1i2o", **layouts),
            Case("nn.contrib_conv2d_NCHWc_int8",
                 [(blocked * 9).astype(np.int8), (weight * 9).astype(np.int8)],
                 split(convolution((x * 9).astype(np.int8), (w * 9).astype(np.int8), (1, 1),
                                   (0,) * 4, (1, 1), 2).astype(np.int32)),
                 groups=2, kernel_layout="OIHW2i2o", out_dtype="int32", **layouts),
        ]
    )  # fmt: skip
    # Weights of kernels for dot products split their inputs twice: no layout that is known.
    four = Case("nn.contrib_conv2d_NCHWc_int8", [blocked, _f(1, 1, 3, 3, 1, 8, 4)], x,
                kernel_layout="OIHW1i8o4i", **layouts)  # fmt: skip
    with pytest.raises(UnityError, match="OIHW1i8o4i"):
        module_of([four])


def _mean(rows: Tensor) -> Tensor:
    return np.asarray(np.nanmean(rows, -1))


def _sum(count: int) -> Any:
    return lambda rows: np.asarray(np.nansum(rows, -1) / count)


def _max(rows: Tensor) -> Tensor:
    return np.asarray(np.nanmax(rows, -1))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools(rank: int) -> None:
    space = SPACE[rank]
    x = _f(2, 3, *(7, 6, 5)[:rank])
    ones, twos, sides = (1,) * rank, (2,) * rank, (1,) * (2 * rank)
    # Windows of 3 in steps of 2: in ceil_mode the last one sticks out where an extent is even.
    room = (*sides[:rank], *(1 + (n % 2 == 0) for n in x.shape[2:]))
    three, count = (3,) * rank, 3**rank
    usual: dict[str, Any] = {"pool_size": three, "strides": twos, "padding": sides}
    cases: list[Case] = []
    for kind, reduce in (("max", _max), ("avg", _mean)):
        name = f"nn.{kind}_pool{rank}d"
        plain = _f32(pooling(x, three, twos, sides, ones, reduce))
        cases += [
            Case(name, [x], plain, **usual),
            Case(name, [x], _f32(pooling(x, three, twos, room, ones, reduce)), ceil_mode=True,
                 **usual),
            Case(name, [x], _f32(pooling(x, twos, ones, sides, twos, reduce)), pool_size=twos,
                 dilation=twos, padding=(1,)),
            Case(name, [x.transpose(LAST[rank])], plain.transpose(LAST[rank]),
                 layout=f"N{space}C", **usual),
            Case(name, [x.transpose(LAST[rank])], plain, layout=f"N{space}C",
                 out_layout=f"NC{space}", **usual),
        ]  # fmt: skip
    cases += [
        Case(f"nn.avg_pool{rank}d", [x], _f32(pooling(x, three, twos, sides, ones, _sum(count))),
             count_include_pad=True, **usual),
        Case(f"nn.avg_pool{rank}d", [x], _f32(pooling(x, three, twos, room, ones, _sum(count))),
             count_include_pad=True, ceil_mode=True, **usual),
    ]  # fmt: skip
    whole = (x * 50).astype(np.int32)
    sums = pooling(whole, three, twos, sides, ones, _sum(1))
    counts = pooling(np.ones_like(whole), three, twos, sides, ones, _sum(1))
    cases.append(Case(f"nn.avg_pool{rank}d", [whole], np.trunc(sums / counts).astype(np.int32),
                      **usual))  # fmt: skip
    check_interpreted(cases)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools_in_other_layouts(rank: int) -> None:
    space = SPACE[rank]
    x = _f(2, 3, *(7, 6, 5)[:rank])
    cases: list[Case] = []
    for kind, reduce in (("max", np.max), ("avg", np.mean)):
        wanted = x.astype(np.float64)
        for axis in range(2, 2 + rank):
            extent = x.shape[axis]
            ends = [(i * extent // 2, -(-(i + 1) * extent // 2)) for i in range(2)]
            parts = [reduce(np.take(wanted, range(a, b), axis), axis, keepdims=True)
                     for a, b in ends]  # fmt: skip
            wanted = np.concatenate(parts, axis)
        name = f"nn.adaptive_{kind}_pool{rank}d"
        cases += [
            Case(name, [x.transpose(LAST[rank])], _f32(wanted).transpose(LAST[rank]),
                 output_size=(2,), layout=f"N{space}C"),
            Case(name, [x], _f32(wanted).transpose(LAST[rank]), output_size=(2,) * rank,
                 out_layout=f"N{space}C"),
        ]  # fmt: skip
    check_interpreted(cases)


def test_global_pools() -> None:
    x = _f(2, 3, 4, 5)
    check_interpreted(
        [
            Case("nn.global_avg_pool2d", [x.transpose(0, 2, 3, 1)],
                 x.mean((2, 3), keepdims=True).transpose(0, 2, 3, 1), layout="NHWC"),
            Case("nn.global_max_pool2d", [x.transpose(0, 2, 3, 1)],
                 x.max((2, 3), keepdims=True).transpose(0, 2, 3, 1), layout="NHWC",
                 out_layout="NHWC"),
            Case("nn.global_avg_pool2d", [x.transpose(0, 2, 3, 1)],
                 x.mean((2, 3), keepdims=True), layout="NHWC", out_layout="NCHW"),
        ]
    )  # fmt: skip


def _normalized(x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon))


@pytest.mark.parametrize(("center", "scale"), [(True, False), (False, True), (False, False)])
def test_norms(center: bool, scale: bool) -> None:
    x = _f(2, 4, 3, 5)
    given: dict[str, Any] = {"center": center, "scale": scale, "epsilon": 0.1}
    cases: list[Case] = []
    for axis in (1, 3, -2):
        count = x.shape[axis]
        gamma, beta = _f(count), _f(count)
        shape = [1] * 4
        shape[axis] = count
        factor = gamma.reshape(shape) if scale else 1.0
        offset = beta.reshape(shape) if center else 0.0
        rest = tuple(i for i in range(1, 4) if i != axis % 4)
        for name, over in (("layer", (axis,)), ("instance", rest)):
            wanted = _normalized(x, over, 0.1) * factor + offset
            cases.append(
                Case(f"nn.{name}_norm", [x, gamma, beta], _f32(wanted), axis=axis, **given)
            )
        if axis == 1:
            groups = _normalized(x.reshape(2, 2, 2, 3, 5), (2, 3, 4), 0.1).reshape(x.shape)
            cases.append(Case("nn.group_norm", [x, gamma, beta], _f32(groups * factor + offset),
                              num_groups=2, axis=1, **given))  # fmt: skip
        if axis == 3:
            turned = _f(2, 3, 5, 4)
            own, off = _f(4), _f(4)
            groups = _normalized(turned.reshape(2, 3, 5, 2, 2), (1, 2, 4), 0.1)
            wanted = groups.reshape(turned.shape) * (own if scale else 1) + (off if center else 0)
            cases.append(Case("nn.group_norm", [turned, own, off], _f32(wanted), num_groups=2,
                              axis=3, **given))  # fmt: skip
    check_interpreted(cases)


def test_activations_along_axes() -> None:
    x, alpha = _f(2, 3, 4), _f(4)
    squares = np.zeros_like(x)
    for i in range(4):  # windows of 3 along the last axis
        squares[..., i] = (x[..., max(0, i - 1) : i + 2] ** 2).sum(-1)
    lrn = x / (3.0 + 0.5 * squares / 3) ** 0.6
    check_interpreted(
        [
            Case("nn.leaky_relu", [x], np.where(x > 0, x, np.float32(0.4) * x), alpha=0.4),
            Case("nn.prelu", [x, alpha], np.where(x > 0, x, x * alpha), axis=2),
            Case("nn.prelu", [x, alpha], np.where(x > 0, x, x * alpha), axis=-1),
            Case("nn.lrn", [x], _f32(lrn), size=3, axis=2, bias=3.0, alpha=0.5, beta=0.6),
            Case("nn.dropout", [x], [x, np.ones_like(x)], rate=0.9),
        ]
    )  # fmt: skip


def test_products() -> None:
    a, b, w = _f(3, 4).astype(np.float16), _f(4, 5).astype(np.float16), _f(2, 3, 6)
    wide = a.astype(np.float32) @ b.astype(np.float32)
    turned = _f(2, 3, 4)
    packed = _f(2, 4, 8)  # (units / 8, inputs, 8)
    flat = packed.transpose(1, 0, 2).reshape(4, 16)
    small = _DRAW.integers(-9, 9, (2, 3, 4)).astype(np.int8)
    check_interpreted(
        [
            Case("nn.matmul", [a, b], wide, units=5, out_dtype="float32", tolerance=1e-3),
            Case("nn.dense", [a, b.T.copy()], wide, units=5, out_dtype="float32", tolerance=1e-3),
            Case("nn.batch_matmul", [turned, w], turned.transpose(0, 2, 1) @ w, transpose_a=True),
            Case("nn.batch_matmul", [small, small],
                 small.astype(np.int32) @ small.astype(np.int32).transpose(0, 2, 1),
                 transpose_b=True, out_dtype="int32"),
            Case("nn.contrib_dense_pack", [_ROWS, packed], _ROWS @ flat, units=16,
                 out_dtype="float32", weight_layout="NC8n"),
        ]
    )  # fmt: skip


_ROWS = _f(3, 4)
