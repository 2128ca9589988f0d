"""`quantize` and `dequantize` as they are written, printed, refused and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import structural_equal
from unity.ir.module import IRModule
from unity.script import parse, print_module

SOURCE = """\
n = dim("n")


@script.function
def main(x: f32[Tensor, n, 3], zero: u8[Tensor, 3]) -> f32[Tensor, n, 3]:
    q = R.quantize(x, 0.05, zero, out_dtype="uint8")
    wide = R.dequantize(q, R.const([0.5, 0.25, 2.0], "float32"), 7, axis=1)
    return wide
"""


def program(call: str, kind: str = "f32") -> IRModule:
    return parse(f"@script.function\ndef main(x: {kind}[Tensor, 4, 3]):\n    return R.{call}\n")


def test_what_is_printed_reads_back() -> None:
    module = parse(SOURCE)
    assert print_module(module) == SOURCE
    assert structural_equal(parse(print_module(module)), module)


def test_compiled_they_give_the_interpreters_bits() -> None:
    module = parse(SOURCE)
    x = np.random.default_rng(5).uniform(-9, 9, (7, 3)).astype(np.float32)
    zero = np.array([0, 100, 255], np.uint8)
    expected = interpret(module, "main", [x, zero])
    got = np.asarray(unity.compile(module, cache=None)(x, zero))
    np.testing.assert_array_equal(got, np.asarray(expected))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("quantize(x, 0.5, 0, out_dtype='int32')", "f32", "at most 16 bits, got int32"),
        ("quantize(x, 0.5, 0)", "i8", "'x' must be of a float dtype, got int8"),
        ("quantize(x, R.const([1.0, 2.0], 'float32'), 0)", "f32", "got 2, expected 3"),
        ("quantize(x, 0.5, R.const(0.0, 'float32'))", "f32", "'zero_point' must be of an integer"),
        ("dequantize(x, 0.5, 0)", "i64", "at most 32 bits"),
        ("dequantize(x, 0.5, 0)", "f32", "'x' must be of an integer dtype"),
        ("dequantize(x, 0.5, 0, out_dtype='int8')", "i8", "must be a float dtype, got int8"),
        ("dequantize(x, R.const([[1.0]], 'float32'), 0)", "i8", "a scalar or a vector"),
        ("dequantize(x, R.const([1.0], 'float32'), 0, axis=2)", "i8", "axis 2 is out of range"),
    ],
)
def test_what_fits_no_row_is_refused(call: str, kind: str, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        program(call, kind)
