"""Relay's qnn operators to the bit: fixed-point multiplication, rounding modes, zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.frontend.relay.calls import Case, Known, check_interpreted, module_of
from tests.frontend.relay.numpy_layers import convolution
from unity.frontend.relay.operators.fixed_point import multiplier_and_shift
from unity.interpreter import interpret

Tensor = npt.NDArray[Any]
_DRAW = np.random.default_rng(3)


def _f(*values: float) -> Known:
    return Known(np.array(values[0] if len(values) == 1 else values, np.float32))


def _i(*values: int) -> Known:
    return Known(np.array(values[0] if len(values) == 1 else values, np.int32))


def _bytes(*shape: int, kind: type = np.int8) -> Tensor:
    info = np.iinfo(kind)
    return _DRAW.integers(info.min, info.max + 1, shape).astype(kind)


def _exactly(x: int, ratio: float, *, upward: bool = True) -> int:
    """An integer times a real, by Python's integers of any size."""
    multiplier, shift = multiplier_and_shift(ratio)
    product, right = (x << max(shift, 0)) * multiplier, 31 + max(-shift, 0)
    half = 1 << (right - 1)
    return (product + (half if upward or product >= 0 else half - 1)) >> right


def _requantized(
    x: Tensor, ratios: list[float], zeros: tuple[int, int], kind: type, *, upward: bool = True
) -> Tensor:
    columns = x.reshape(-1, x.shape[-1]).astype(int)
    info = np.iinfo(kind)
    rows = [
        [
            min(max(_exactly(int(v) - zeros[0], r, upward=upward) + zeros[1], info.min), info.max)
            for v, r in zip(row, ratios * (len(row) // len(ratios)), strict=True)
        ]
        for row in columns
    ]
    return np.array(rows, kind).reshape(x.shape)


def _ratio(a: float, b: float) -> float:
    return float(np.float32(a)) / float(np.float32(b))


def test_a_real_as_a_multiplier_and_a_shift() -> None:
    for value in (0.3, 1.0, 0.5, 1 - 2**-40, 7.25, 2.0**-20):
        multiplier, shift = multiplier_and_shift(value)
        assert 1 << 30 <= multiplier < 1 << 31
        assert abs(multiplier * 2.0 ** (shift - 31) - value) <= value * 2.0**-31
    assert multiplier_and_shift(0.0) == (0, 0)


def test_fixed_point() -> None:
    x = np.array([[-(1 << 20), -3, -1, 0, 1, 3, 12345, 1 << 20]], np.int32)
    m, s = multiplier_and_shift(2.7)
    wanted = np.array([[_exactly(int(v), 2.7) for v in x[0]]], np.int32)
    pairs = [multiplier_and_shift(r) for r in (0.3, 5.0)]
    wide = x.reshape(4, 2)
    each = np.array([[_exactly(int(v), r) for v, r in zip(row, (0.3, 5.0), strict=True)]
                     for row in wide], np.int32)  # fmt: skip
    check_interpreted(
        [
            Case("fixed_point_multiply", [x], wanted, multiplier=m, shift=s),
            Case("fixed_point_multiply_per_axis",
                 [wide, _i(*(p for p, _ in pairs)), _i(*(max(q, 0) for _, q in pairs)),
                  _i(*(max(-q, 0) for _, q in pairs))], each, axes=(1,),
                 is_lshift_required=True, is_rshift_required=True),
        ]
    )  # fmt: skip


def test_requantize() -> None:
    x = np.array([[-70000, -5, -3, -1], [1, 3, 5, 70000]], np.int32)
    half, each = _ratio(0.5, 1.0), [_ratio(0.5, 0.3), _ratio(0.1, 0.3)] * 2
    single = [_ratio(0.0123, 0.3)]
    scales = _f(0.5, 0.1, 0.5, 0.1)
    floats = np.floor((x.astype(np.float32) - 4) * np.float32(half) + 2 + np.float32(0.5))
    check_interpreted(
        [
            Case("qnn.requantize", [x, _f(0.0123), _i(4), _f(0.3), _i(2)],
                 _requantized(x, single, (4, 2), np.int8), out_dtype="int8"),
            Case("qnn.requantize", [x, _f(0.5), _i(0), _f(1.0), _i(0)],
                 _requantized(x, [half], (0, 0), np.int32), out_dtype="int32", rounding="UPWARD"),
            Case("qnn.requantize", [x, _f(0.5), _i(0), _f(1.0), _i(0)],
                 _requantized(x, [half], (0, 0), np.int32, upward=False), out_dtype="int32",
                 rounding="TONEAREST"),
            Case("qnn.requantize", [x, scales, _i(0), _f(0.3), _i(128)],
                 _requantized(x, each, (0, 128), np.uint8), out_dtype="uint8", axis=1),
            Case("qnn.requantize", [x, _f(0.5), _i(4), _f(1.0), _i(2)],
                 np.clip(floats, -128, 127).astype(np.int8), out_dtype="int8",
                 compute_dtype="float32"),
        ]
    )  # fmt: skip


def test_quantize_and_dequantize() -> None:
    x = np.array([[-100, -0.75, -0.25], [0.25, 0.75, 100]], np.float32)
    q = np.array([[-128, -1, 0], [1, 2, 127]], np.int8)
    check_interpreted(
        [
            Case("qnn.quantize", [x, _f(0.5), _i(3)],
                 np.array([[-128, 2, 3], [4, 5, 127]], np.int8), out_dtype="int8"),
            Case("qnn.quantize", [x, _f(0.5), _i(0)],
                 np.array([[0, 0, 0], [1, 2, 200]], np.uint8), out_dtype="uint8"),
            Case("qnn.quantize", [x, _f(0.5, 0.25), _i(0, 1)],
                 np.array([[-128, -2, -1], [2, 4, 127]], np.int8), out_dtype="int8", axis=0),
            Case("qnn.dequantize", [q, _f(0.5), _i(1)],
                 (q.astype(np.float32) - 1) * np.float32(0.5)),
            Case("qnn.dequantize", [q, _f(0.5, 2, 1), _i(1, 0, 2)],
                 (q - np.array([1, 0, 2])).astype(np.float32)
                 * np.array([0.5, 2, 1], np.float32)),
        ]
    )  # fmt: skip


def test_sums_of_products() -> None:
    x, w = _bytes(1, 3, 4, 4, kind=np.uint8), _bytes(2, 3, 3, 3)
    a, b = _bytes(2, 5), _bytes(3, 5)
    wide, filters = x.astype(np.int32), w.astype(np.int32)
    centred, around = wide - 7, (1, 1, 1, 1)
    scales = (_f(0.5), _f(0.25))
    wanted = convolution(centred, filters - 2, (1, 1), around, (1, 1)).astype(np.int32)
    plain = convolution(wide, filters, (1, 1), (0,) * 4, (1, 1)).astype(np.int32)
    nhwc = x.transpose(0, 2, 3, 1)
    check_interpreted(
        [
            Case("qnn.conv2d", [x, w, _i(7), _i(2), *scales], wanted, padding=(1, 1),
                 channels=2, kernel_size=(3, 3), out_dtype="int32"),
            Case("qnn.conv2d", [x, w, _i(0), _i(0), *scales], plain, channels=2,
                 kernel_size=(3, 3), out_dtype="int32"),
            Case("qnn.conv2d", [nhwc, w.transpose(2, 3, 1, 0), _i(7), _i(2), *scales],
                 wanted.transpose(0, 2, 3, 1), padding=(1, 1), channels=2, kernel_size=(3, 3),
                 data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32"),
            Case("qnn.dense", [a, b, _i(-3), _i(4), *scales],
                 (a.astype(np.int32) + 3) @ (b.astype(np.int32) - 4).T, units=3,
                 out_dtype="int32"),
            Case("qnn.batch_matmul", [a[None], b[None], _i(1), _i(2), *scales],
                 (a[None].astype(np.int32) - 1) @ (b.T[None].astype(np.int32) - 2),
                 transpose_b=True, out_dtype="int32"),
        ]
    )  # fmt: skip


def test_arithmetic() -> None:
    a, b = _bytes(3, 4, kind=np.uint8), _bytes(3, 4, kind=np.uint8)
    given = [_f(0.5), _i(3), _f(0.2), _i(9), _f(0.7), _i(5)]
    left = _requantized(a, [_ratio(0.5, 0.7)], (3, 5), np.int32)
    right = _requantized(b, [_ratio(0.2, 0.7)], (9, 5), np.int32)
    scale = float(np.float32(0.5) * np.float32(0.2))
    products = (a.astype(np.int32) - 3) * (b.astype(np.int32) - 9)
    multiplied = _requantized(products, [scale / float(np.float32(0.7))], (0, 5), np.uint8)
    joined = np.concatenate([
        _requantized(a, [_ratio(0.5, 0.7)], (3, 5), np.uint8),
        _requantized(b, [_ratio(0.2, 0.7)], (9, 5), np.uint8),
    ])  # fmt: skip
    check_interpreted(
        [
            Case("qnn.add", [a, b, *given], np.clip(left + right - 5, 0, 255).astype(np.uint8)),
            Case("qnn.subtract", [a, b, *given],
                 np.clip(left - right + 5, 0, 255).astype(np.uint8)),
            Case("qnn.multiply", [a, b, *given], multiplied),
            Case("qnn.concatenate", [[a, b], [_f(0.5), _f(0.2)], [_i(3), _i(9)], _f(0.7), _i(5)],
                 joined, axis=0),
        ]
    )  # fmt: skip


def test_functions() -> None:
    x = _bytes(2, 8)
    real = (x.astype(np.float32) - 2) * np.float32(0.05)
    given = [_f(0.05), _i(2), _f(0.01), _i(-3)]

    def quantized(y: Tensor) -> Tensor:
        at = (y / np.float32(0.01) + np.float32(-3)).astype(np.float32)
        return np.clip(np.trunc(at + np.copysign(0.5, at)), -128, 127).astype(np.int8)

    below = np.array([[_exactly(int(v), 0.25) + _exactly(4, 0.75) for v in row] for row in x])
    leaky = np.where(x < 4, below, x).astype(np.int8)
    squares = _bytes(1, 1, 4, 4)
    means = np.trunc(squares.reshape(1, 1, 2, 2, 2, 2).astype(np.float64).mean((3, 5)))
    check_interpreted(
        [
            Case("qnn.tanh", [x, *given], quantized(np.tanh(real))),
            Case("qnn.sigmoid", [x, *given], quantized(1 / (1 + np.exp(-real)))),
            Case("qnn.abs", [x, *given], quantized(abs(real))),
            Case("qnn.leaky_relu", [x, _f(0.5), _i(4), _f(0.5), _i(4)], leaky, alpha=0.25),
            Case("qnn.avg_pool2d", [squares, _f(0.5), _i(4), _f(0.5), _i(4)],
                 means.astype(np.int8), pool_size=(2, 2), strides=(2, 2)),
        ]
    )  # fmt: skip


def test_softmax_in_integers_is_near_that_of_reals() -> None:
    x = _bytes(4, 10)
    real = (x.astype(np.float64) - 3) * 0.05
    share = np.exp(real) / np.exp(real).sum(-1, keepdims=True)
    wanted = np.clip(np.round(share * 256) - 128, -128, 127).astype(np.int8)
    case = Case("qnn.softmax", [x, _f(0.05), _i(3), _f(1 / 256), _i(-128)], wanted, axis=-1)

    module, inputs = module_of([case])
    found = interpret(module, "main", inputs)
    assert isinstance(found, tuple)
    off = np.abs(np.asarray(found[0]).astype(int) - wanted.astype(int))
    assert off.max() <= 12
