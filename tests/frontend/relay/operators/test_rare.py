"""Operators that few models hold: packed bits, simulated quantization, sparse tensors, a loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.frontend.relay.calls import Case, Known, check_interpreted, check_results, module_of
from unity.errors import UnityError, UnsupportedError

Tensor = npt.NDArray[Any]
RNG = np.random.default_rng(0)


def _counted(x: Tensor, w: Tensor, bits: tuple[int, int], unipolar: bool) -> int:
    """Bits that both have, each weighted by its place, as TVM counts them; unipolar, less those
    of the data that the weight lacks."""
    total = 0
    for i in range(bits[0]):
        for j in range(bits[1]):
            a, b = x >> i & 1, w >> j & 1
            total += (int((a & b).sum()) - int((a & (1 - b)).sum()) * unipolar) << (i + j)
    return total


@pytest.mark.parametrize("unipolar", [True, False])
@pytest.mark.parametrize("bits", [(1, 1), (2, 1), (2, 3)])
def test_products_of_few_bits(bits: tuple[int, int], unipolar: bool) -> None:
    x = RNG.integers(0, 1 << bits[0], (2, 9)).astype(np.uint8)
    w = RNG.integers(0, 1 << bits[1], (3, 9)).astype(np.uint8)
    counts = [[_counted(a, b, bits, unipolar) for b in w] for a in x]
    image = RNG.integers(0, 1 << bits[0], (1, 4, 5, 6)).astype(np.uint8)
    kernel = RNG.integers(0, 1 << bits[1], (2, 4, 3, 3)).astype(np.uint8)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    convolved = np.zeros((1, 2, 3, 3), np.int16)
    for o, i, j in np.ndindex(2, 3, 3):
        window = padded[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        convolved[0, o, i, j] = _counted(window, kernel[o], bits, unipolar)
    given: dict[str, Any] = {"unipolar": unipolar, "weight_bits": bits[1], "out_dtype": "int16"}
    conv: dict[str, Any] = {**given, "activation_bits": bits[0], "padding": (1, 1), "channels": 2,
                            "strides": (2, 2), "pack_dtype": "uint32"}  # fmt: skip
    last = dict(conv, data_layout="NHWC", kernel_layout="HWIO", kernel_size=(3, 3))
    cases = [
        Case("nn.bitserial_dense", [x, w], np.array(counts, np.int16), data_bits=bits[0],
             units=3, pack_dtype="uint32", **given),
        Case("nn.bitserial_conv2d", [image, kernel], convolved, **conv),
        Case("nn.bitserial_conv2d",
             [np.ascontiguousarray(image.transpose(0, 2, 3, 1)),
              np.ascontiguousarray(kernel.transpose(2, 3, 1, 0))],
             convolved.transpose(0, 2, 3, 1), **last),
    ]  # fmt: skip
    check_interpreted(cases)
    with pytest.raises(UnsupportedError, match="a weight of packed bits"):
        module_of([Case("nn.bitserial_dense", [x, w[None]], x)])


def test_a_kernel_of_another_size_is_told() -> None:
    x, w = np.ones((1, 2, 4, 4), np.uint8), np.ones((3, 2, 1, 1), np.uint8)
    wanted = np.full((1, 3, 4, 4), 2, np.uint8)
    check_interpreted([Case("nn.bitserial_conv2d", [x, w], wanted, kernel_size=(1, 1))])
    with pytest.raises(UnityError, match="integers of 40 bits"):
        module_of([Case("nn.bitserial_conv2d", [x, w], wanted, activation_bits=40)])


def test_known_numbers_read_as_another_dtype() -> None:
    x = np.array([1.5, -2, 0], np.float32)
    check_interpreted([Case("reinterpret", [Known(x)], x.view(np.int32), dtype="int32")])
    with pytest.raises(UnityError, match="float32 is not as wide as int16"):
        module_of([Case("reinterpret", [Known(x)], x, dtype="int16")])
    with pytest.raises(UnsupportedError, match="known only at run time"):
        module_of([Case("reinterpret", [x], x, dtype="int32")])


def test_simulated_quantization() -> None:
    x = np.array([[-3, -0.26, 0.3], [0.74, 1.25, 90]], np.float32)
    scale, zero = np.array(0.5, np.float32), np.array(3, np.int32)
    many, zeros = np.array([0.5, 0.25], np.float32), np.array([3, 0], np.int32)
    code = {name: Known(np.array(k, np.int32)) for k, name in enumerate(("", "i8", "u8", "i32"))}

    def quantized(low: float, high: float) -> Tensor:
        rounded: Tensor = np.sign(x) * np.floor(np.abs(x / scale) + 0.5) + zero
        return rounded.clip(low, high).astype(np.float32)

    columns = many[:, None], zeros[:, None].astype(np.float32)
    along = np.sign(x) * np.floor(np.abs(x / columns[0]) + 0.5) + columns[1]
    wide = (x - 3) * scale
    low, high = Known(np.array(-2, np.float32)), Known(np.array(1, np.float32))
    annotated = (x / scale).clip(-2, 1)
    annotated = np.sign(annotated) * np.floor(np.abs(annotated) + 0.5) * scale
    name = "relay.op.annotation.simulated_quantize"
    check_interpreted(
        [
            Case("qnn.simulated_quantize", [x, code["i8"], scale, zero], quantized(-128, 127)),
            Case("qnn.simulated_quantize", [x, code["u8"], scale, zero], quantized(0, 255)),
            Case("qnn.simulated_quantize", [x, code["i32"], many, zeros],
                 along.astype(np.float32), axis=0),
            Case("qnn.simulated_quantize", [x, code[""], scale, zero], x),
            Case("qnn.simulated_dequantize", [x, code["i8"], scale, zero], wide,
                 out_dtype="float32"),
            Case("qnn.simulated_dequantize", [x, code["u8"], many, zeros],
                 (x - columns[1]) * columns[0], axis=0),
            Case("qnn.simulated_dequantize", [x, code[""], scale, zero], x),
            Case(name, [x, scale, low, high], annotated.astype(np.float32), kind=1),
            Case(name, [x, scale, low, high], x, kind=0, sign=False, rounding="stochastic"),
        ]
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="rounding='stochastic'"):
        module_of([Case(name, [x, scale, low, high], x, kind=2, rounding="stochastic")])
    unknown = Known(np.array(9, np.int32))
    with pytest.raises(UnsupportedError, match="the simulated dtype 9"):
        module_of([Case("qnn.simulated_quantize", [x, unknown, scale, zero], x)])


def test_rows_of_a_sparse_tensor_that_have_nothing() -> None:
    at = np.array([[1, 2], [1, 0], [4, 1]], np.int64)
    values, shape = np.array([5, 6, 7], np.float32), Known(np.array([6, 3], np.int64))
    filled = np.array([[0, 0], [1, 2], [1, 0], [2, 0], [3, 0], [4, 1], [5, 0]], np.int64)
    empty = np.array([1, 0, 1, 1, 0, 1], np.bool_)
    found = np.array([-1, 5, 6, -1, -1, 7, -1], np.float32)
    full = np.array([[0, 1], [1, 1]], np.int64)
    cases = [
        Case("sparse_fill_empty_rows", [at, values, shape, np.array([-1], np.float32)],
             [filled, found, empty]),
        Case("sparse_fill_empty_rows",
             [full, values[:2], Known(np.array([2, 2], np.int64)), np.array(9, np.float32)],
             [full, values[:2], np.array([0, 0], np.bool_)]),
    ]  # fmt: skip
    check_interpreted(cases)
    module, inputs = module_of(cases)
    check_results(cases, unity.compile(module)(*inputs))


def test_a_convolution_by_a_sparse_matrix() -> None:
    blocks = RNG.standard_normal((3, 2, 1)).astype(np.float32)
    columns, ends = np.array([0, 2, 1], np.int32), np.array([0, 2, 3], np.int32)
    dense = np.zeros((4, 3), np.float32)
    dense[:2, 0:1], dense[:2, 2:3], dense[2:, 1:2] = blocks
    x = RNG.standard_normal((2, 4, 5, 3)).astype(np.float32)
    wanted = x @ dense.T
    sparse = [Known(v) for v in (blocks, columns, ends)]
    first = [np.ascontiguousarray(v.transpose(0, 3, 1, 2)) for v in (x, wanted)]
    check_interpreted(
        [
            Case("nn.sparse_conv2d", [x, *sparse], wanted),
            Case("nn.sparse_conv2d", [first[0], *sparse], first[1], layout="NCHW"),
        ]
    )
    with pytest.raises(UnsupportedError, match="kernel_size"):
        module_of([Case("nn.sparse_conv2d", [x, *sparse], x, kernel_size=(3, 3))])


def _loss(
    predicted: Tensor, target: Tensor, weights: Tensor, ignored: int, reduction: str
) -> Tensor:
    """As torch defines it: what is ignored weighs nothing, a mean is by weights."""
    weighed = np.where(target == ignored, 0, weights[np.clip(target, 0, None)])
    taken = np.take_along_axis(predicted, np.clip(target, 0, None)[:, None], 1)[:, 0]
    losses = (-taken * weighed).astype(np.float32)
    if reduction == "none":
        return losses
    return np.asarray(losses.sum() / (weighed.sum() if reduction == "mean" else 1), np.float32)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss(reduction: str) -> None:
    cases: list[Case] = []
    for shape, ignored in (((5, 4), 2), ((2, 4, 3), -100), ((2, 4, 3, 2), 0)):
        predicted = RNG.standard_normal(shape).astype(np.float32)
        target = RNG.integers(0, 4, (shape[0], *shape[2:]))
        target.reshape(-1)[0] = ignored
        weights = RNG.random(4).astype(np.float32)
        wanted = _loss(predicted, target, weights, ignored, reduction)
        cases.append(Case("nn.nll_loss", [predicted, target, weights], np.asarray(wanted),
                          reduction=reduction, ignore_index=ignored))  # fmt: skip
    check_interpreted(cases)


def test_a_breakpoint_passes_its_value() -> None:
    x = RNG.standard_normal(3)
    check_interpreted([Case("debug", [x], x)])
