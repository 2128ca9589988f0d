"""Relay's layers over their attributes and layouts, against plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, Known, check_interpreted, module_of
from tests.frontend.relay.numpy_layers import convolution, pooling, transposed_convolution
from unity.errors import UnsupportedError

_DRAW = np.random.default_rng(2)


def _f(*shape: int) -> npt.NDArray[Any]:
    return _DRAW.uniform(-1, 1, shape).astype(np.float32)


def _i(*shape: int, low: int = -9, kind: type = np.int32) -> npt.NDArray[Any]:
    return _DRAW.integers(low, 10, shape).astype(kind)


X, W = _f(1, 4, 6, 5), _f(6, 4, 3, 3)
DEPTHWISE = _f(4, 1, 3, 3)
ONE, TWO, NONE = (1, 1), (2, 2), (0, 0, 0, 0)


def _f32(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.float32)


def test_convolutions() -> None:
    x1, w1 = _f(2, 3, 9), _f(4, 3, 3)
    x3, w3 = _f(1, 2, 4, 4, 4), _f(3, 2, 2, 2, 2)
    plain = _f32(convolution(X, W, ONE, (1, 1, 1, 1), ONE))
    grouped = _f(6, 2, 3, 3)
    check_interpreted(
        [
            Case("nn.conv2d", [X, W], plain, padding=(1,), channels=6, kernel_size=(3, 3)),
            Case("nn.conv2d", [X, W], _f32(convolution(X, W, (2, 1), (1, 0, 1, 0), ONE)),
                 padding=(1, 0), strides=(2, 1)),
            Case("nn.conv2d", [X, W], _f32(convolution(X, W, ONE, (0, 1, 2, 3), TWO)),
                 padding=(0, 1, 2, 3), dilation=(2, 2)),
            Case("nn.conv2d", [X, grouped], _f32(convolution(X, grouped, ONE, NONE, ONE, 2)),
                 groups=2),
            Case("nn.conv2d", [X.transpose(0, 2, 3, 1), W.transpose(2, 3, 1, 0)],
                 plain.transpose(0, 2, 3, 1), padding=(1, 1), data_layout="NHWC",
                 kernel_layout="HWIO"),
            Case("nn.conv2d", [X.transpose(0, 2, 3, 1), W.transpose(0, 2, 3, 1)], plain,
                 padding=(1, 1), data_layout="NHWC", kernel_layout="OHWI", out_layout="NCHW"),
            Case("nn.conv2d", [X, DEPTHWISE],
                 _f32(convolution(X, DEPTHWISE, ONE, NONE, ONE, 4)), groups=4, channels=4),
            Case("nn.conv1d", [x1, w1], _f32(convolution(x1, w1, (2,), (1, 2), (1,))),
                 strides=(2,), padding=(1, 2)),
            Case("nn.conv1d", [x1.transpose(0, 2, 1), w1.transpose(2, 1, 0)],
                 _f32(convolution(x1, w1, (1,), (0, 0), (2,))).transpose(0, 2, 1),
                 dilation=(2,), data_layout="NWC", kernel_layout="WIO"),
            Case("nn.conv3d", [x3, w3],
                 _f32(convolution(x3, w3, (1, 2, 1), (1, 0, 1, 1, 0, 1), (1, 1, 1))),
                 strides=(1, 2, 1), padding=(1, 0, 1)),
        ]
    )  # fmt: skip


def test_depthwise_convolutions_of_several_filters_a_channel() -> None:
    weight = _f(3, 3, 4, 2)  # HWOI: (height, width, channels, multiplier)
    flat = weight.transpose(2, 3, 0, 1).reshape(8, 1, 3, 3)
    wanted = _f32(convolution(X, flat, ONE, NONE, ONE, 4)).transpose(0, 2, 3, 1)
    check_interpreted(
        [
            Case("nn.conv2d", [X.transpose(0, 2, 3, 1), weight], wanted, groups=4, channels=8,
                 data_layout="NHWC", kernel_layout="HWOI"),
        ]
    )  # fmt: skip


def test_convolutions_on_blocks_of_channels() -> None:
    wanted = _f32(convolution(X, W, ONE, NONE, ONE)).reshape(1, 3, 2, 4, 3)
    blocked = X.reshape(1, 2, 2, 6, 5).transpose(0, 1, 3, 4, 2)
    weight = W.reshape(3, 2, 2, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    check_interpreted(
        [
            Case("nn.contrib_conv2d_NCHWc", [blocked, weight], wanted.transpose(0, 1, 3, 4, 2),
                 data_layout="NCHW2c", kernel_layout="OIHW2i2o", out_layout="NCHW2c"),
            Case("nn.conv2d", [blocked, weight], wanted.transpose(0, 1, 3, 4, 2),
                 data_layout="NCHW2c", kernel_layout="OIHW2i2o"),
        ]
    )  # fmt: skip


def test_convolutions_of_integers() -> None:
    x, w = _i(1, 3, 5, 5, kind=np.int8), _i(2, 3, 3, 3, kind=np.int8)
    wanted = convolution(x, w, ONE, NONE, ONE).astype(np.int32)
    u = _i(1, 3, 5, 5, low=0, kind=np.uint8)
    check_interpreted(
        [
            Case("nn.conv2d", [x, w], wanted, out_dtype="int32"),
            Case("nn.conv2d", [x.astype(np.int32), w.astype(np.int32)], wanted),
            Case("nn.conv2d", [u, w], convolution(u, w, ONE, NONE, ONE).astype(np.int32),
                 out_dtype="int32"),
        ]
    )  # fmt: skip


def test_transposed_convolutions() -> None:
    w = _f(4, 3, 3, 3)
    x1, w1 = _f(1, 2, 5), _f(2, 3, 4)
    plain = transposed_convolution(X, w, TWO, (1, 1, 1, 1), (1, 0))
    check_interpreted(
        [
            Case("nn.conv2d_transpose", [X, w], _f32(plain), strides=(2, 2), padding=(1, 1),
                 output_padding=(1, 0), channels=3, kernel_size=(3, 3)),
            Case("nn.conv2d_transpose", [X.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)],
                 _f32(plain).transpose(0, 2, 3, 1), strides=(2, 2), padding=(1, 1),
                 output_padding=(1, 0), data_layout="NHWC", kernel_layout="HWOI"),
            Case("nn.conv1d_transpose", [x1, w1],
                 _f32(transposed_convolution(x1, w1, (3,), (1, 2), (0,))), strides=(3,),
                 padding=(1, 2)),
        ]
    )  # fmt: skip


def _mean(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.nanmean(x, -1))


def _max(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.nanmax(x, -1))


def _with_padding(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.nansum(x, -1) / x.shape[-1])


def test_pools() -> None:
    x1, x3 = _f(1, 2, 9), _f(1, 2, 4, 4, 4)
    around = (1, 1, 1, 1)
    nhwc = X.transpose(0, 2, 3, 1)
    check_interpreted(
        [
            Case("nn.max_pool2d", [X], _f32(pooling(X, TWO, TWO, NONE, ONE, _max)),
                 pool_size=(2, 2), strides=(2, 2)),
            Case("nn.max_pool2d", [nhwc],
                 _f32(pooling(X, (3, 3), TWO, around, ONE, _max)).transpose(0, 2, 3, 1),
                 pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout="NHWC"),
            Case("nn.max_pool2d", [X], _f32(pooling(X, TWO, ONE, (0, 0, 1, 1), TWO, _max)),
                 pool_size=(2, 2), padding=(0, 0, 1, 1), dilation=(2, 2)),
            Case("nn.max_pool2d", [X], _f32(pooling(X, TWO, TWO, (0, 0, 0, 1), ONE, _max)),
                 pool_size=(2, 2), strides=(2, 2), ceil_mode=True),
            Case("nn.avg_pool2d", [X], _f32(pooling(X, (3, 3), TWO, around, ONE, _mean)),
                 pool_size=(3, 3), strides=(2, 2), padding=(1, 1)),
            Case("nn.avg_pool2d", [X], _f32(pooling(X, (3, 3), TWO, around, ONE, _with_padding)),
                 pool_size=(3, 3), strides=(2, 2), padding=(1, 1), count_include_pad=True),
            Case("nn.avg_pool2d", [X], _f32(pooling(X, TWO, TWO, (0, 0, 0, 1), ONE, _mean)),
                 pool_size=(2, 2), strides=(2, 2), ceil_mode=True),
            Case("nn.max_pool1d", [x1], _f32(pooling(x1, (3,), (2,), (1, 1), (1,), _max)),
                 pool_size=(3,), strides=(2,), padding=(1,)),
            Case("nn.avg_pool1d", [x1.transpose(0, 2, 1)],
                 _f32(pooling(x1, (2,), (2,), (0, 0), (1,), _mean)).transpose(0, 2, 1),
                 pool_size=(2,), strides=(2,), layout="NWC"),
            Case("nn.max_pool3d", [x3],
                 _f32(pooling(x3, (2, 2, 2), (2, 2, 2), (0,) * 6, (1, 1, 1), _max)),
                 pool_size=(2, 2, 2), strides=(2, 2, 2)),
            Case("nn.avg_pool3d", [x3],
                 _f32(pooling(x3, (2, 2, 2), (1, 2, 2), (0,) * 6, (1, 1, 1), _mean)),
                 pool_size=(2, 2, 2), strides=(1, 2, 2)),
            Case("nn.global_avg_pool2d", [X], X.mean((2, 3), keepdims=True)),
            Case("nn.global_max_pool2d", [nhwc], nhwc.max((1, 2), keepdims=True), layout="NHWC"),
            Case("nn.adaptive_avg_pool2d", [X], X.reshape(1, 4, 3, 2, 5).mean((3, 4))[..., None],
                 output_size=(3, 1)),
            Case("nn.adaptive_max_pool2d", [X],
                 np.stack([X[..., 0:3].max(-1), X[..., 2:5].max(-1)], -1)
                 .reshape(1, 4, 3, 2, 2).max(3), output_size=(3, 2)),
            Case("nn.adaptive_avg_pool1d", [x1], x1.reshape(1, 2, 3, 3).mean(-1), output_size=(3,)),
            Case("nn.adaptive_max_pool1d", [x1], x1.max(-1, keepdims=True), output_size=(1,)),
            Case("nn.adaptive_avg_pool3d", [x3], x3.mean((2, 3, 4), keepdims=True),
                 output_size=(1,)),
            Case("nn.adaptive_max_pool3d", [x3], x3.max((2, 3, 4), keepdims=True),
                 output_size=(1, 1, 1)),
        ]
    )  # fmt: skip


def test_means_of_integers_are_truncated() -> None:
    x = _i(1, 2, 4, 4)
    plain = np.trunc(pooling(x, TWO, TWO, NONE, ONE, _mean)).astype(np.int32)
    around = np.trunc(pooling(x, (3, 3), TWO, (1, 1, 1, 1), ONE, _mean) + 0.0).astype(np.int32)
    check_interpreted(
        [
            Case("nn.avg_pool2d", [x], plain, pool_size=(2, 2), strides=(2, 2)),
            Case("nn.avg_pool2d", [x], around, pool_size=(3, 3), strides=(2, 2), padding=(1, 1)),
            Case("nn.global_avg_pool2d", [x],
                 np.trunc(x.mean((2, 3), keepdims=True)).astype(np.int32)),
            Case("nn.max_pool2d", [x], pooling(x, TWO, TWO, NONE, ONE, _max).astype(np.int32),
                 pool_size=(2, 2), strides=(2, 2)),
        ]
    )  # fmt: skip


def test_products() -> None:
    a, w, b = _f(2, 3), _f(4, 3), _f(2, 3, 4)
    batch = _f(2, 5, 3)
    ints, weights = _i(2, 3, kind=np.int8), _i(4, 3, kind=np.int8)
    exact = ints.astype(np.int32) @ weights.astype(np.int32).T
    packed = w.T.reshape(3, 2, 2).transpose(1, 0, 2)
    check_interpreted(
        [
            Case("nn.dense", [a, w], a @ w.T, units=4),
            Case("nn.dense", [batch, w], batch @ w.T),
            Case("nn.dense", [ints, weights], exact, out_dtype="int32"),
            Case("nn.matmul", [a, w], a @ w.T, transpose_b=True),
            Case("nn.matmul", [a.T, w.T], a @ w.T, transpose_a=True),
            Case("nn.batch_matmul", [batch, b], batch @ b),
            Case("nn.batch_matmul", [batch, b.transpose(0, 2, 1)], batch @ b, transpose_b=True),
            Case("nn.batch_matmul", [batch.transpose(0, 2, 1), b[:1]], batch @ b[:1],
                 transpose_a=True),
            Case("nn.contrib_dense_pack", [a, packed], a @ w.T),
            Case("einsum", [[batch, b]], np.einsum("bij,bjk->bik", batch, b),
                 equation="bij,bjk->bik"),
        ]
    )  # fmt: skip


def test_norms() -> None:
    x = _f(2, 4, 3)
    gamma, beta, mean, variance = _f(4), _f(4), _f(4), abs(_f(4))

    def along(v: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return v[:, None]

    def standard(
        v: npt.NDArray[Any], axes: int | tuple[int, ...], epsilon: float = 1e-5
    ) -> npt.NDArray[Any]:
        spread = v.var(axes, keepdims=True)
        return np.asarray((v - v.mean(axes, keepdims=True)) / np.sqrt(spread + epsilon))

    normal = (x - along(mean)) / np.sqrt(along(variance) + np.float32(1e-3))
    groups = standard(x.reshape(2, 2, 2, 3), (2, 3)).reshape(x.shape)
    squares = np.stack([(x[:, max(i - 1, 0) : i + 2] ** 2).sum(1) for i in range(4)], 1)
    check_interpreted(
        [
            Case("nn.batch_norm", [x, gamma, beta, mean, variance],
                 [normal * along(gamma) + along(beta), mean, variance], epsilon=1e-3),
            Case("nn.batch_norm", [x, gamma, beta, mean, variance], [normal, mean, variance],
                 epsilon=1e-3, center=False, scale=False),
            Case("nn.batch_norm", [x.transpose(0, 2, 1), gamma, beta, mean, variance],
                 [(normal * along(gamma) + along(beta)).transpose(0, 2, 1), mean, variance],
                 epsilon=1e-3, axis=-1),
            Case("nn.layer_norm", [x, gamma[:3], beta[:3]],
                 standard(x, -1) * gamma[:3] + beta[:3]),
            Case("nn.layer_norm", [x, gamma, beta], standard(x, 1) * along(gamma) + along(beta),
                 axis=1),
            Case("nn.instance_norm", [x, gamma, beta],
                 standard(x, 2) * along(gamma) + along(beta)),
            Case("nn.group_norm", [x, gamma, beta], groups * along(gamma) + along(beta),
                 num_groups=2),
            Case("nn.lrn", [x], x / (2 + 0.5 / 3 * squares) ** 0.75, size=3, alpha=0.5),
            Case("nn.l2_normalize", [x], x / np.sqrt(np.maximum((x**2).sum(1, keepdims=True), 0.5)),
                 eps=0.5, axis=(1,)),
        ]
    )  # fmt: skip


def test_activations() -> None:
    x, slopes = _f(2, 4, 3), _f(4)
    powers = np.exp(x)
    share = powers / powers.sum(1, keepdims=True)
    check_interpreted(
        [
            Case("nn.softmax", [x], share, axis=1),
            Case("nn.fast_softmax", [x], share, axis=1),
            Case("nn.log_softmax", [x], np.log(share), axis=1),
            Case("nn.bias_add", [x, slopes], x + slopes[:, None]),
            Case("nn.bias_add", [x, slopes[:3]], x + slopes[:3], axis=-1),
            Case("nn.leaky_relu", [x], np.where(x > 0, x, x * np.float32(0.25)), alpha=0.25),
            Case("nn.prelu", [x, slopes], np.where(x > 0, x, x * slopes[:, None])),
            Case("nn.dropout", [x], [x, np.ones_like(x)]),
            Case("nn.cross_entropy", [share, x], np.asarray(-(np.log(share) * x).sum() / 2)),
            Case("nn.cross_entropy_with_logits", [x, x], np.asarray(-(x * x).sum() / 2)),
        ]
    )  # fmt: skip


def test_borders_and_blocks() -> None:
    x = _f(1, 4, 4, 6)
    widths = ((0, 0), (0, 0), (1, 2), (0, 1))
    blocks = x.reshape(1, 4, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 16, 2, 3)
    dilated = np.full((3, 5), 7, np.float32)
    dilated[:, ::2] = x[0, 0, :3, :3]
    slid = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))[:, :, ::2]
    batches = np.pad(x[:, 0], ((0, 0), (1, 1), (0, 0))).reshape(1, 3, 2, 3, 2)
    batches = batches.transpose(2, 4, 0, 1, 3).reshape(4, 3, 3)
    check_interpreted(
        [
            Case("nn.pad", [x, Known(np.array(3, np.float32))], np.pad(x, widths,
                 constant_values=3), pad_width=widths),
            Case("nn.pad", [x, Known(np.array(0, np.float32))], np.pad(x, widths, mode="edge"),
                 pad_width=widths, pad_mode="edge"),
            Case("nn.pad", [x, Known(np.array(0, np.float32))], np.pad(x, widths, mode="reflect"),
                 pad_width=widths, pad_mode="reflect"),
            Case("nn.mirror_pad", [x], np.pad(x, widths, mode="symmetric"), pad_width=widths),
            Case("nn.mirror_pad", [x], np.pad(x, widths, mode="reflect"), pad_width=widths,
                 mode="REFLECT"),
            Case("nn.space_to_depth", [x], blocks, block_size=2),
            Case("nn.depth_to_space", [blocks], x, block_size=2),
            Case("nn.depth_to_space", [blocks.transpose(0, 2, 3, 1)], x.transpose(0, 2, 3, 1),
                 block_size=2, layout="NHWC"),
            Case("nn.space_to_batch_nd", [x[:, 0]], batches, block_shape=(2, 2),
                 paddings=((1, 1), (0, 0))),
            Case("nn.batch_to_space_nd", [batches], x[:, 0], block_shape=(2, 2),
                 crops=((1, 1), (0, 0))),
            Case("nn.dilate", [x[0, 0, :3, :3]], dilated, strides=(1, 2), dilation_value=7.0),
            Case("sliding_window", [x], np.ascontiguousarray(slid), axis=2, window_shape=(2, 3),
                 strides=(2, 1)),
        ]
    )  # fmt: skip


def test_what_is_not_honoured_is_refused() -> None:
    x = _f(1, 4, 4, 6)
    cases = [
        (Case("nn.bitpack", [x], x), "packed bits, made by TVM's lowering"),
        (Case("random.normal", [x, x, x], x, out_shape=(2,), out_dtype="float32"), "generator"),
        (Case("image.resize2d", [x], x, size=(2, 2), method="lanczos"), "lanczos"),
        (Case("exp", [x.astype(np.int32)], x), "elements of int32"),
    ]
    with pytest.raises(UnsupportedError) as error:
        module_of([case for case, _ in cases])
    text = str(error.value)
    for case, reason in cases:
        line = next(t for t in text.splitlines() if f" {case.operator}" in t)
        assert reason in line
