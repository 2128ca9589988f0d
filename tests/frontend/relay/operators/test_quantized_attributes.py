"""Attributes of Relay's qnn operators that other tests leave at their defaults, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, Known, Operand, check_interpreted, module_of
from tests.frontend.relay.numpy_layers import convolution, pooling, transposed_convolution
from unity.errors import UnityError, UnsupportedError
from unity.frontend.relay.operators.fixed_point import multiplier_and_shift

Tensor = npt.NDArray[Any]
_DRAW = np.random.default_rng(15)


def _f(*values: float) -> Known:
    return Known(np.array(values[0] if len(values) == 1 else values, np.float32))


def _i(*values: int) -> Known:
    return Known(np.array(values[0] if len(values) == 1 else values, np.int32))


def _bytes(*shape: int, kind: type = np.int8) -> Tensor:
    info = np.iinfo(kind)
    return _DRAW.integers(info.min, info.max + 1, shape).astype(kind)


def _scaled(x: Tensor, ratio: Tensor | float, rounding: str = "UPWARD") -> Tensor:
    """Integers times reals: a product with 31 bits of each, shifted right with a rounding."""
    found = np.empty(x.shape, np.int64)
    ratios = np.broadcast_to(np.asarray(ratio, np.float64), x.shape)
    for place, value in np.ndenumerate(x):
        multiplier, shift = multiplier_and_shift(float(ratios[place]))
        exact = (int(value) << max(shift, 0)) * multiplier
        right = 31 + max(-shift, 0)
        nudge = (1 << (right - 1)) - int(rounding == "TONEAREST" and exact < 0)
        found[place] = (exact + nudge) >> right
    return found


def _ratio(a: npt.ArrayLike, b: float) -> Tensor:
    return np.asarray(a, np.float32).astype(np.float64) / float(np.float32(b))


def _cut(x: Tensor, kind: type = np.int8) -> Tensor:
    info = np.iinfo(kind)
    return np.clip(x, info.min, info.max).astype(kind)


def test_convolutions() -> None:
    x, w = _bytes(1, 4, 7, 6, kind=np.uint8), _bytes(6, 2, 3, 2)
    centred, weight = x.astype(np.int32) - 9, w.astype(np.int32) - 3
    scales = (_f(0.5), _f(0.25))
    zeros = (_i(9), _i(3))
    around = (1, 2, 0, 1)
    wanted = convolution(centred, weight, (2, 1), around, (1, 2), 2).astype(np.int32)
    deep = _bytes(4, 1, 3, 3)
    apart = _bytes(6, 4, 3, 3)
    each = np.array([1, -2, 3, 0, 5, -6], np.int32)
    wide = convolution(centred, apart.astype(np.int32) - each.reshape(-1, 1, 1, 1), (1, 1),
                       (0,) * 4, (1, 1)).astype(np.int32)  # fmt: skip
    usual: dict[str, Any] = {"strides": (2, 1), "dilation": (1, 2), "padding": around, "groups": 2,
                             "out_dtype": "int32"}  # fmt: skip
    check_interpreted(
        [
            Case("qnn.conv2d", [x, w, *zeros, *scales], wanted, channels=6, kernel_size=(3, 2),
                 **usual),
            Case("qnn.conv2d", [x, w, *zeros, *scales], wanted.transpose(0, 2, 3, 1),
                 out_layout="NHWC", **usual),
            Case("qnn.conv2d", [x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), *zeros, *scales],
                 wanted, data_layout="NHWC", kernel_layout="OHWI", out_layout="NCHW", **usual),
            Case("qnn.conv2d", [x, deep, *zeros, *scales],
                 convolution(centred, deep.astype(np.int32) - 3, (1, 1), (1,) * 4, (1, 1), 4)
                 .astype(np.int32), groups=4, padding=(1,), channels=4, out_dtype="int32"),
            Case("qnn.conv2d", [x, apart, _i(9), _i(*each), _f(0.5), _f(*range(1, 7))], wide,
                 channels=6, kernel_size=(3, 3), out_dtype="int32"),
        ]
    )  # fmt: skip


def test_transposed_convolutions() -> None:
    x, w = _bytes(1, 4, 4, 5, kind=np.uint8), _bytes(4, 3, 3, 2)
    centred, weight = x.astype(np.int32) - 9, w.astype(np.int32) - 3
    given = (_i(9), _i(3), _f(0.5), _f(0.25))
    around = (1, 0, 2, 1)
    wanted = transposed_convolution(centred, weight, (2, 3), around, (1, 2)).astype(np.int32)
    apart = np.zeros((4, 3, 5, 3), np.int32)
    apart[:, :, ::2, ::2] = weight
    spread = transposed_convolution(centred, apart, (1, 1), (0,) * 4, (0, 0)).astype(np.int32)
    halves = [
        transposed_convolution(centred[:, g : g + 2], weight[g : g + 2], (1, 1), (0,) * 4, (0, 0))
        for g in (0, 2)
    ]
    usual: dict[str, Any] = {"strides": (2, 3), "padding": around, "output_padding": (1, 2),
                             "out_dtype": "int32"}  # fmt: skip
    name = "qnn.conv2d_transpose"
    check_interpreted(
        [
            Case(name, [x, w, *given], wanted, channels=3, kernel_size=(3, 2), **usual),
            Case(name, [x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), *given], wanted,
                 data_layout="NHWC", kernel_layout="HWOI", out_layout="NCHW", **usual),
            Case(name, [x, w, *given], spread, dilation=(2, 2), out_dtype="int32"),
            Case(name, [x, w, *given], np.concatenate(halves, 1).astype(np.int32), groups=2,
                 channels=6, out_dtype="int32"),
        ]
    )  # fmt: skip


def test_products() -> None:
    a, b = _bytes(2, 5, 3), _bytes(2, 4, 5, kind=np.uint8)
    scales = (_f(0.5), _f(0.25))
    left, right = a.astype(np.int32) + 3, b.astype(np.int32) - 4
    weight = _bytes(3, 5)
    zeros = np.array([4, -1, 0], np.int32)
    check_interpreted(
        [
            Case("qnn.batch_matmul", [a, b, _i(-3), _i(4), *scales],
                 left.transpose(0, 2, 1) @ right.transpose(0, 2, 1), transpose_a=True,
                 transpose_b=True, out_dtype="int32"),
            Case("qnn.batch_matmul", [b, a, _i(4), _i(-3), *scales], right @ left,
                 out_dtype="int32"),
            Case("qnn.dense", [b[0], weight, _i(4), _i(*zeros), _f(0.5), _f(1, 2, 3)],
                 right[0] @ (weight.astype(np.int32) - zeros[:, None]).T, out_dtype="int32"),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
def test_halves_are_rounded_upward_or_away_from_zero(rounding: str, kind: str) -> None:
    """Products that are halves: 2 bits less, all residues of both signs."""
    x = np.arange(-40, 41, dtype=np.int32).reshape(3, 27)
    quarters = x.astype(np.float64) / 4
    half = np.floor(quarters + 0.5)
    if rounding == "TONEAREST":
        half = np.copysign(np.floor(np.abs(quarters) + 0.5), quarters)
    moved = np.floor(quarters + 3.5)  # in reals the zero point is added before rounding
    if rounding == "TONEAREST":
        moved = np.copysign(np.floor(np.abs(quarters + 3) + 0.5), quarters + 3)
    made = np.dtype(kind).type
    by_rows = _scaled(x - np.array([[1], [0], [-2]]), _ratio([[0.3], [2.5], [0.25]], 1), rounding)
    check_interpreted(
        [
            Case("qnn.requantize", [x, _f(0.25), _i(0), _f(1.0), _i(0)], _cut(half, made),
                 rounding=rounding, out_dtype=kind),
            Case("qnn.requantize", [x, _f(0.3, 2.5, 0.25), _i(1, 0, -2), _f(1.0), _i(7)],
                 _cut(by_rows + 7, made), rounding=rounding, out_dtype=kind, axis=0),
            Case("qnn.requantize", [x, _f(0.25), _i(0), _f(1.0), _i(3)], _cut(moved, made),
                 rounding=rounding, out_dtype=kind, compute_dtype="float32"),
            Case("qnn.requantize", [x, _f(0.25), _i(0), _f(1.0), _i(3)], _cut(moved, made),
                 rounding=rounding, out_dtype=kind, compute_dtype="float64"),
        ]
    )  # fmt: skip


def test_dequantized_along_axes() -> None:
    x = _bytes(2, 3, 4)
    scales, zeros = np.array([0.5, 2, 0.25], np.float32), np.array([1, -3, 0], np.int32)
    wanted = (x.astype(np.float32) - zeros[:, None]) * scales[:, None]
    check_interpreted(
        [
            Case("qnn.dequantize", [x, _f(*scales), _i(*zeros)], wanted.astype(np.float32), axis=1),
            Case("qnn.dequantize", [x, _f(*scales), _i(*zeros)], wanted.astype(np.float16),
                 axis=-2, out_dtype="float16"),
        ]
    )  # fmt: skip


def test_scales_for_each_channel() -> None:
    a, b = _bytes(2, 3, 4, kind=np.uint8), _bytes(3, 1, kind=np.uint8)
    left, right = np.array([0.5, 0.2, 0.9], np.float32), np.array([0.1, 0.4, 0.3], np.float32)
    first, second = np.array([3, 0, 9], np.int32), np.array([7, 1, 2], np.int32)
    given = [_f(*left), _i(*first), _f(*right), _i(*second), _f(0.7), _i(5)]
    x, y = a.astype(np.int64) - first[:, None], b.astype(np.int64) - second[:, None]
    one = _scaled(x, _ratio(left, 0.7)[:, None]) + 5
    two = _scaled(y, _ratio(right, 0.7)[:, None]) + 5
    both = _scaled(x * y, _ratio(left * right, 0.7)[:, None]) + 5
    how = {"lhs_axis": 1, "rhs_axis": 0}
    last = [_f(*left), _i(*first), _f(0.25), _i(0), _f(0.7), _i(5)]
    turned = np.ascontiguousarray(a.transpose(0, 2, 1))
    check_interpreted(
        [
            Case("qnn.add", [a, b, *given], _cut(one + two - 5, np.uint8), **how),
            Case("qnn.subtract", [a, b, *given], _cut(one - two + 5, np.uint8), **how),
            Case("qnn.multiply", [a, b, *given], _cut(both, np.uint8), **how),
            Case("qnn.multiply", [turned, turned, *last],
                 _cut(_scaled(x.transpose(0, 2, 1) * turned, _ratio(left * np.float32(0.25), 0.7))
                      + 5, np.uint8)),
        ]
    )  # fmt: skip
    square = _bytes(2, 3, 3, kind=np.uint8)
    apart = Case("qnn.multiply", [square, square, *given], square, lhs_axis=1, rhs_axis=2)
    with pytest.raises(UnsupportedError, match="along two axes"):
        module_of([apart])
    with pytest.raises(UnityError, match="3 scales along an axis of 4"):
        module_of([Case("qnn.add", [a, a, *given], a, rhs_axis=2, lhs_axis=1)])


def test_parts_of_one_tensor() -> None:
    a, b = _bytes(2, 3, 4), _bytes(2, 2, 4)
    joined = [_cut(_scaled(v.astype(np.int64) - z, _ratio(s, 0.7)) + 5)
              for v, s, z in ((a, 0.5, 3), (b, 0.2, 9))]  # fmt: skip
    given: list[Operand] = [[_f(0.5), _f(0.2)], [_i(3), _i(9)], _f(0.7), _i(5)]
    wanted = np.concatenate(joined, 1)
    check_interpreted(
        [Case("qnn.concatenate", [[a, b], *given], wanted, axis=axis) for axis in (1, -2)]
    )


def test_means() -> None:
    x = _bytes(1, 2, 7, 6)
    same = [_f(0.5), _i(4), _f(0.5), _i(4)]
    other = [_f(0.5), _i(4), _f(0.3), _i(-7)]
    wide = _scaled(x.astype(np.int64) - 4, _ratio(0.5, 0.3)) - 7
    around, ones = (1, 1, 1, 1), (1, 1)

    def mean(v: Tensor, padding: tuple[int, ...], dilation: tuple[int, ...] = ones) -> Tensor:
        return pooling(v.astype(np.float64), (3, 2), (2, 2), padding, dilation,
                       lambda w: np.trunc(np.nansum(w, -1) / np.sum(~np.isnan(w), -1)))  # fmt: skip

    def padded(v: Tensor) -> Tensor:
        return pooling(v.astype(np.float64), (3, 2), (2, 2), around, ones,
                       lambda w: np.trunc(np.nansum(w, -1) / w.shape[-1]))  # fmt: skip

    last = x.transpose(0, 2, 3, 1)
    how: dict[str, Any] = {"pool_size": (3, 2), "strides": (2, 2)}
    name = "qnn.avg_pool2d"
    check_interpreted(
        [
            Case(name, [x, *same], _cut(mean(x, around)), padding=(1, 1), **how),
            Case(name, [x, *same], _cut(padded(x)), padding=(1, 1), count_include_pad=True, **how),
            Case(name, [x, *other], _cut(mean(wide, around)), padding=(1, 1), **how),
            Case(name, [x, *same], _cut(mean(x, (0, 1, 0, 2))), padding=(0, 1), ceil_mode=True,
                 **how),
            Case(name, [x, *same], _cut(mean(x, (0,) * 4, (2, 2))), dilation=(2, 2), **how),
            Case(name, [last, *same], _cut(mean(x, (0,) * 4)).transpose(0, 2, 3, 1), layout="NHWC",
                 **how),
            Case(name, [last, *same], _cut(mean(x, (0,) * 4)), layout="NHWC", out_layout="NCHW",
                 **how),
        ]
    )  # fmt: skip


def _functions() -> dict[str, Callable[[Tensor], Tensor]]:
    return {
        "erf": lambda x: np.vectorize(erf)(x),
        "exp": np.exp,
        "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "log": np.log,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sqrt": np.sqrt,
    }


def test_functions_of_reals() -> None:
    """Dequantized, computed, quantized: of values not so near a half that float32 decides."""
    all_ = np.arange(1, 128, dtype=np.int8)
    cases: list[Case] = []
    for name, function in _functions().items():
        for kind, zero, to in ((np.int8, 0, -3), (np.uint8, 0, 7)):
            real = (all_.astype(np.float64) - zero) * float(np.float32(0.05))
            at = function(real) / float(np.float32(0.03)) + to
            clear = np.abs(at - np.floor(at) - 0.5) > 1e-4
            assert clear.sum() > 100
            x, at = all_[clear], at[clear]
            wanted = _cut(np.sign(at) * np.floor(np.abs(at) + 0.5), kind)
            cases.append(Case(f"qnn.{name}", [x.astype(kind), _f(0.05), _i(zero), _f(0.03), _i(to)],
                              wanted))  # fmt: skip
    check_interpreted(cases)


def test_leaky_units() -> None:
    x = _bytes(3, 9)
    below = _scaled(x, 0.1) + int(_scaled(np.array(4), 1 - 0.1))
    same = [_f(0.5), _i(4), _f(0.5), _i(4)]
    check_interpreted(
        [Case("qnn.leaky_relu", [x, *same], _cut(np.where(x < 4, below, x)), alpha=0.1)]
    )
    other = Case("qnn.leaky_relu", [x, _f(0.5), _i(4), _f(0.3), _i(4)], x, alpha=0.1)
    with pytest.raises(UnsupportedError, match="another quantization"):
        module_of([other])


def _softmax(x: Tensor, axis: int, scale: float) -> Tensor:
    """Algorithm 1 of I-ViT in integers: powers of two, of which the rest is a line."""
    one = int(np.floor(1 / np.float32(scale) + 0.5))
    below = x - x.max(axis, keepdims=True)
    base = below + (below >> 1) - (below >> 4)
    whole = np.trunc(base / -one).astype(np.int64)
    power = (((base + whole * one) >> 1) + one) << (8 - whole)
    share = ((1 << 30) // power.sum(axis, keepdims=True)) * power
    return np.asarray(share >> 23)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_to_the_bit(axis: int) -> None:
    x = _bytes(3, 4, 5)
    shares = _softmax(x.astype(np.int64) - 3, axis, 0.05)
    wanted = _cut(_scaled(shares, _ratio(1 / 128, 1 / 256)) - 128)
    check_interpreted(
        [Case("qnn.softmax", [x, _f(0.05), _i(3), _f(1 / 256), _i(-128)], wanted, axis=axis)]
    )


@pytest.mark.parametrize("name", ["qnn.add", "qnn.subtract", "qnn.multiply"])
def test_as_many_scales_as_an_axis_does_not_have(name: str) -> None:
    x, y = _bytes(2, 3), _bytes(2, 3)
    four, one, none = _f(1, 2, 3, 4), _f(0.5), _i(0)
    with pytest.raises(UnityError, match=f"{name}: 4 scales along an axis of 3"):
        module_of([Case(name, [x, y, four, none, one, none, one, none], x, lhs_axis=1)])
    zeros = _i(0, 1, 2, 3)
    with pytest.raises(UnityError, match=f"{name}: 4 zero points along an axis of 2"):
        module_of([Case(name, [x, y, one, none, one, zeros, one, none], x, rhs_axis=0)])
