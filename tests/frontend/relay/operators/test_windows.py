"""Windows that no convolution says, sparse weights, running products, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, Known, Operand, check_interpreted
from unity.errors import UnsupportedError

Tensor = npt.NDArray[Any]
DRAW = np.random.default_rng(9)


def _drawn(*shape: int) -> Tensor:
    return DRAW.normal(size=shape).astype(np.float32)


def _dilated(x: Tensor, w: Tensor, stride: int, pad: int, dilation: int) -> Tensor:
    wide = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-1e30)
    span = [dilation * (k - 1) + 1 for k in w.shape[1:]]
    size = [(e - s) // stride + 1 for e, s in zip(wide.shape[2:], span, strict=True)]
    out = np.zeros((*x.shape[:2], *size), np.float32)
    for i, j in np.ndindex(*size):
        top, left = i * stride, j * stride
        part = wide[:, :, top : top + span[0] : dilation, left : left + span[1] : dilation]
        out[:, :, i, j] = (part + w).max((2, 3))
    return out


def test_dilation_of_a_map() -> None:
    x, w = _drawn(1, 2, 6, 5), _drawn(2, 3, 2)
    last = x.transpose(0, 2, 3, 1)
    wide: dict[str, Any] = {"strides": (2, 2), "padding": (1, 1, 1, 1), "dilations": (2, 2)}
    check_interpreted(
        [
            Case("image.dilation2d", [x, w], _dilated(x, w, 1, 0, 1)),
            Case("image.dilation2d", [x, w], _dilated(x, w, 2, 1, 2), **wide),
            Case("image.dilation2d", [last, w.transpose(1, 2, 0)],
                 _dilated(x, w, 1, 0, 1).transpose(0, 2, 3, 1), data_layout="NHWC",
                 kernel_layout="HWI"),
        ]
    )  # fmt: skip


def _correlated(a: Tensor, b: Tensor, kernel: int, stride: int, multiply: bool) -> Tensor:
    """Displacements to 2 in steps of 2, a padding of 3."""
    widths = ((0, 0), (0, 0), (3, 3), (3, 3))
    one, two = np.pad(a, widths), np.pad(b, widths)
    border = 2 + (kernel - 1) // 2
    height, width = (-(-(e - 2 * border) // stride) for e in one.shape[2:])
    out = np.zeros((len(a), 9, height, width), np.float32)
    for q, i, j in np.ndindex(9, height, width):
        y, x = i * stride + 2, j * stride + 2
        down, aside = (q // 3 - 1) * 2, (q % 3 - 1) * 2
        here = one[:, :, y : y + kernel, x : x + kernel]
        there = two[:, :, y + down : y + down + kernel, x + aside : x + aside + kernel]
        both = here * there if multiply else np.abs(here - there)
        out[:, q, i, j] = both.sum((1, 2, 3)) / (kernel**2 * a.shape[1])
    return out


def test_windows_of_two_maps() -> None:
    a, b = _drawn(2, 3, 4, 5), _drawn(2, 3, 4, 5)
    how: dict[str, Any] = {"max_displacement": 2, "stride2": 2, "padding": (3,)}
    check_interpreted(
        [
            Case("nn.correlation", [a, b], _correlated(a, b, k, s, m), kernel_size=k, stride1=s,
                 is_multiply=m, **how)
            for k, s, m in ((1, 1, True), (3, 2, False))
        ]
    )  # fmt: skip


def test_what_comes_in_behind_a_buffer() -> None:
    x, buffer = _drawn(2, 3), _drawn(2, 5)
    kept = np.concatenate([buffer, x], 1)[:, 3:]
    longer = np.concatenate([x, buffer], 1)[:, 5:]
    check_interpreted(
        [
            Case("nn.fifo_buffer", [x, buffer], kept, axis=1),
            Case("nn.fifo_buffer", [buffer, x], longer, axis=1),
        ]
    )


def test_windows_of_a_signal() -> None:
    x, window = _drawn(2, 20), np.hanning(8).astype(np.float32)
    frames = np.stack([x[:, i : i + 8] for i in range(0, 13, 4)], 1) * window
    spectra = np.fft.fft(frames).transpose(0, 2, 1)
    pairs = np.stack([spectra.real, spectra.imag], -1).astype(np.float32)
    how = {"n_fft": 8, "hop_length": 4, "win_length": 8}
    check_interpreted(
        [
            Case("stft", [x, window], pairs[:, :5], **how),
            Case("stft", [x, window], pairs / np.float32(8**0.5), onesided=False, normalized=True,
                 **how),
        ]
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="win_length=4 beside n_fft=8"):
        check_interpreted([Case("stft", [x, window], pairs, n_fft=8, hop_length=4, win_length=4)])


def test_running_products() -> None:
    x, n = _drawn(3, 7), np.array([[2, 3, -1], [4, 5, 6]], np.int32)
    before = np.concatenate([np.ones((3, 1), np.float32), x[:, :-1]], 1)
    check_interpreted(
        [
            Case("cumprod", [x], np.cumprod(x, 1), axis=1),
            Case("cumprod", [x], np.cumprod(before, 1), axis=-1, exclusive=True),
            Case("cumprod", [n], np.cumprod(n).astype(np.int32)),
            Case("cumprod", [n], np.cumprod(n, 0).astype(np.float32), axis=0, dtype="float32"),
        ]
    )


def test_elements_once_each() -> None:
    x = np.array([5, 2, 5, -1, 2, 2, 7], np.int32)
    values, first, what, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    turn = np.argsort(first)

    def padded(v: Tensor) -> Tensor:
        return np.pad(v, (0, len(x) - len(v))).astype(np.int32)

    number = np.array([len(values)], np.int32)
    inverse = what.reshape(-1).astype(np.int32)
    place = np.argsort(turn)[inverse].astype(np.int32)
    check_interpreted(
        [
            Case("unique", [x], [padded(values), padded(first), inverse, number]),
            Case("unique", [x], [padded(values), padded(first), inverse, number, padded(counts)],
                 return_counts=True),
            Case("unique", [x], [padded(values[turn]), padded(first[turn]), place, number,
                 padded(counts[turn])], sorted=False, return_counts=True),
        ]
    )  # fmt: skip


def test_a_slice_that_is_replaced() -> None:
    x = _drawn(4, 5)
    once, twice = x.copy(), x.copy()
    value, row = _drawn(2, 2), _drawn(1, 5)
    once[3:0:-2, 1:4:2] = value
    twice[1:3] = row

    def known(*v: int) -> Known:
        return Known(np.array(v, np.int32))

    check_interpreted(
        [
            Case("strided_set", [x, value, known(3, 1), known(0, 4), known(-2, 2)], once),
            Case("strided_set", [x, row, known(1), known(3), known()], twice),
        ]
    )


def _compressed(matrix: Tensor) -> list[Known]:
    rows, columns = np.nonzero(matrix)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(matrix)))])
    parts = matrix[rows, columns], columns.astype(np.int32), ends.astype(np.int32)
    return [Known(p) for p in parts]


def test_sparse_weights_that_are_known() -> None:
    x, square = _drawn(3, 6), _drawn(6, 6)
    weight = _drawn(4, 6) * (DRAW.uniform(size=(4, 6)) < 0.4)
    weight[2] = 0
    weight = weight.astype(np.float32)
    sparse = (square * (DRAW.uniform(size=(6, 6)) < 0.4)).astype(np.float32)
    blocks = _drawn(3, 2, 3)
    matrix = np.zeros((4, 6), np.float32)
    matrix[:2, 3:], matrix[2:, :3], matrix[2:, 3:] = blocks
    blocked: list[Operand] = [
        x,
        Known(blocks),
        Known(np.array([1, 0, 1])),
        Known(np.array([0, 1, 3])),
    ]
    turned = [p.value for p in _compressed(np.ascontiguousarray(sparse.T))]
    check_interpreted(
        [
            Case("nn.sparse_dense", [x, *_compressed(weight)], x @ weight.T),
            Case("nn.sparse_dense", blocked, x @ matrix.T),
            Case("nn.sparse_dense", [x, *_compressed(weight)], weight @ x.T, sparse_lhs=True),
            Case("nn.sparse_add", [square, *_compressed(sparse)], square + sparse),
            Case("nn.sparse_transpose", _compressed(sparse), turned),
        ]
    )
    unknown: list[Operand] = [p.value if isinstance(p, Known) else p for p in blocked]
    with pytest.raises(UnsupportedError, match="sparse weights known only at run time"):
        check_interpreted([Case("nn.sparse_dense", unknown, x)])


def test_coordinates_in_another_shape() -> None:
    at = np.array([[0, 0, 0], [1, 2, 3], [1, 0, 2]], np.int64)
    flat = np.ravel_multi_index(tuple(at.T), (2, 3, 4))
    places = np.stack(np.unravel_index(flat, (4, 6)), 1)
    given: list[Operand] = [at, Known(np.array([2, 3, 4])), Known(np.array([4, -1]))]
    check_interpreted([Case("sparse_reshape", given, [places, np.array([4, 6])])])
