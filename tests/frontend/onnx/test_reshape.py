"""Reshapes whose counts of elements are only known at run time: right, or refused there."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import imported, model, ops_of, result_shape, run

Shape = tuple[int, ...]

DIVIDED = """
g (float[n, c] x, float[n, d, h, w] y, float[m, 4] z)
=> (float[a1, a2, 8] a, float[b1, 6] b, float[c1, c2, c3, c4, c5] c, float[d1, 6] d)
<int64[3] a_shape = {0, -1, 8}, int64[2] b_shape = {-1, 6}, int64[1] free = {-1},
 int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] last = {3}> {
    a = Reshape(x, a_shape)
    b = Reshape(x, b_shape)
    s = Shape(y)
    batch = Gather(s, zero)
    channels = Gather(s, one)
    half = Div(channels, two)
    width = Gather(s, last)
    c_shape = Concat<axis=0>(batch, two, half, free, width)
    c = Reshape(y, c_shape)
    d = Reshape(z, b_shape)
}"""


def arrays(*shapes: Shape) -> list[Array]:
    return [np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes]


def test_what_must_divide_a_symbol_is_checked_at_run_time() -> None:
    module = imported(DIVIDED)
    assert result_shape(module, 0) == "n, FloorDiv(c, 8), 8"
    assert result_shape(module, 2) == "n, 2, FloorDiv(d, 2), h, w"
    exe = unity.compile(module)
    assert exe.native()["main"] == "native"
    for right in ([(3, 16), (3, 4, 3, 5), (3, 4)], [(6, 8), (6, 6, 1, 2), (0, 4)]):
        x, y, z = arrays(*right)
        expected = ReferenceEvaluator(model(DIVIDED)).run(None, {"x": x, "y": y, "z": z})
        for got, wanted in zip(exe(x, y, z), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
    for k, wrong in enumerate([(3, 12), (3, 5, 3, 5), (2, 4)]):
        shapes = [(3, 16), (3, 4, 3, 5), (3, 4)]
        shapes[k] = wrong
        with pytest.raises(UnityError, match=r"_checked of [acd] \(Reshape\)' axis"):
            exe(*arrays(*shapes))


LIKE = """
g (float[n, s] x, float[a, b] z) => (float[c, d] y, float[e, f, g] w) <int64[1] free = {-1}> {
    t = Shape(z)
    y = Reshape(x, t)
    u = Concat<axis=0>(t, free)
    w = Reshape(x, u)
}"""


def test_a_count_of_elements_is_checked_at_run_time() -> None:
    module = imported(LIKE)
    for z in ((3, 4), (12, 1), (2, 6)):
        x, like = arrays((2, 6), z)
        got = interpret(module, "main", [x, like])
        assert isinstance(got, tuple)
        np.testing.assert_array_equal(np.asarray(got[0]), x.reshape(z))
        np.testing.assert_array_equal(np.asarray(got[1]), x.reshape((*z, 1)))
    for z in ((4, 4), (5, 1), (0, 5), (3, 0)):
        with pytest.raises(UnityError):
            interpret(module, "main", arrays((2, 6), z))


def test_each_size_that_is_0_copies_the_dim_at_its_place() -> None:
    module = imported(LIKE)
    for z in ((0, 6), (2, 0), (0, 0)):
        x, like = arrays((2, 6), z)
        got = interpret(module, "main", [x, like])
        assert isinstance(got, tuple)
        np.testing.assert_array_equal(np.asarray(got[0]), x)
        np.testing.assert_array_equal(np.asarray(got[1]), x.reshape(2, 6, 1))


def test_a_size_that_is_0_copies_the_dim_at_its_place() -> None:
    module = imported("""
    g (float[n, 4] x, float[m] z) => (float[a, 4] y) <int64[1] four = {4}> {
        s = Shape(z) t = Concat<axis=0>(s, four) y = Reshape(x, t)
    }""")
    for rows, size in ((5, 5), (5, 0), (0, 0)):
        x, z = arrays((rows, 4), (size,))
        np.testing.assert_array_equal(run(module, x, z), x)
    with pytest.raises(
        UnityError, match=r"y \(Reshape\): element 0 of its shape, m, must be n or 0; got .*m = 3"
    ):
        run(module, *arrays((5, 4), (3,)))


def test_a_size_of_0_is_one_where_the_model_says_so() -> None:
    module = imported("""
    g (float[n, 4] x, float[m] z) => (float[a, 4] y) <int64[1] four = {4}> {
        s = Shape(z) t = Concat<axis=0>(s, four) y = Reshape<allowzero=1>(x, t)
    }""")
    assert run(module, *arrays((0, 4), (0,))).shape == (0, 4)
    with pytest.raises(UnityError, match="y_checked"):
        run(module, *arrays((5, 4), (0,)))


def test_what_is_known_to_fit_is_not_checked() -> None:
    module = imported("""
    g (float[B, S, 768] x) => (float[a, 768] y, float[b, c, 12, 64] z)
    <int64[2] rows = {-1, 768}, int64[4] heads = {0, 0, 12, 64}> {
        y = Reshape(x, rows) z = Reshape(x, heads)
    }""")
    assert ops_of(module) == ["reshape", "reshape"]
