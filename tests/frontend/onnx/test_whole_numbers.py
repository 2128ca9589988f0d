"""Integers stay integers: powers, casts of sizes and paddings are those of ONNX, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from unity.frontend.onnx import from_onnx

from .programs import imported, model, run


def test_a_power_of_integers_is_truncated_and_exact() -> None:
    text = """g (int64[n] x, int64[n] e, float[n] f, int8[n] b)
    => (int64[n] y, int64[n] z, int8[n] w) <int8 three = {3}> {
        y = Pow(x, e) z = Pow(x, f) w = Pow(b, three)
    }"""
    x, e = (
        np.array([3, 7, 8, 9, -1, 10, 2, 0, 1, -2]),
        np.array([39, 22, 0, -1, -3, 40, 70, 64, -9, 63]),
    )
    f = np.array([0.5, 0.5, 0.5, 0.5, 3, 0.5, -1, 2, 0, 5], np.float32)
    b = np.array([3, 7, 8, 9, -16, 25, 10, 0, 1, -1], np.int8)
    got = unity.compile(model(text))(x, e, f, b)
    held = np.where((e >= 0) & (e < 64), x ** np.abs(e), np.where(abs(x) == 1, x, 0))  # numpy wraps
    np.testing.assert_array_equal(got[0], held)
    np.testing.assert_array_equal(got[1], [1, 2, 2, 3, -1, 3, 0, 0, 1, -32])
    np.testing.assert_array_equal(got[2], b**3)


def test_a_root_of_a_whole_power_is_not_rounded_below_it() -> None:
    module = imported("g (int64[n] x, double[n] e) => (int64[n] y) { y = Pow(x, e) }")
    roots = np.arange(1, 400)
    np.testing.assert_array_equal(run(module, roots**3, np.full(399, 1 / 3)), roots)
    np.testing.assert_array_equal(run(module, roots**2 - 1, np.full(399, 0.5)), roots - 1)


@pytest.mark.parametrize(
    ("kind", "code"), [("uint8", 2), ("int8", 3), ("int16", 5), ("float16", 10)]
)
def test_a_size_in_a_narrow_dtype_wraps_before_it_is_calculated_with(kind: str, code: int) -> None:
    proto = model(
        f"g (float[n] x) => (float[k] y) {{ s = Shape(x) c = Cast<to={code}>(s) "
        "d = Add(c, c) y = Cast<to=1>(d) }"
    )
    for n in (300, 40000):
        x = np.zeros(n, np.float32)
        with np.errstate(over="ignore"):
            (expected,) = ReferenceEvaluator(proto).run(None, {"x": x})
            np.testing.assert_array_equal(run(from_onnx(proto), x), expected)


@pytest.mark.parametrize("number", [1e30, 3e38, 2.0**40 + 2.0**20])
@np.errstate(over="ignore")
def test_a_float_that_no_size_can_be_is_data(number: float) -> None:
    module = imported(
        f"g (float[n] x) => (float[1] y) <float[1] k = {{{number}}}>"
        "{ s = Shape(x) f = Cast<to=1>(s) y = Mul(f, k) }"
    )
    got = run(module, np.zeros(3, np.float32))
    np.testing.assert_array_equal(got, np.array([3], np.float32) * np.float32(number))


def test_a_size_beyond_its_dtype_wraps() -> None:
    most = 2**63 - 1
    module = imported(
        f"g (float[4] x) => (int64[1] y) <int64[1] k = {{{most}}}> {{ s = Shape(x) y = Mul(s, k) }}"
    )
    assert run(module, np.zeros(4, np.float32)).tolist() == [-4]


def test_a_padding_of_integers_is_exact() -> None:
    odd = 2**53 + 1
    module = imported(
        f"g (int64[n] x) => (int64[k] y) <int64[2] p = {{1, 1}}, int64 v = {{{odd}}}>"
        "{ y = Pad(x, p, v) }"
    )
    assert run(module, np.array([7])).tolist() == [odd, 7, odd]


def test_a_branch_may_name_its_result_as_the_if_does() -> None:
    module = imported("""
    g (bool c, float[4] x) => (float[4] y) {
        y = If (c) <
            then_branch = t () => (float[4] y) { y = Relu(x) },
            else_branch = e () => (float[4] y) { x2 = Neg(x) y = Abs(x2) }
        >
    }""")
    x = np.array([-1, 2, -3, 4], np.float32)
    assert run(module, np.array(True), x).tolist() == [0, 2, 0, 4]
    assert run(module, np.array(False), x).tolist() == [1, 2, 3, 4]
