"""Sizes computed from sizes: what exporters write, and what would divide by 0."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import interpret

from .programs import imported, model, ops_of, result_shape, run

f4 = np.float32


def test_a_range_between_sizes_as_floats_has_a_size_that_is_known() -> None:
    """What torch writes for ``arange(start, stop, dtype=float32)``, as rotary embeddings have."""
    module = imported(
        """
        g (float[1, P] past, float[1, S] x) => (float[k] y)
        <float one = {1}, int64 at = {1}> {
            a = Shape(past)
            p = Gather(a, at)
            b = Shape(x)
            s = Gather(b, at)
            stop = Add(p, s)
            f = Cast<to=1>(p)
            t = Cast<to=1>(stop)
            y = Range(f, t, one)
        }"""
    )
    assert ops_of(module) == ["arange"]
    assert result_shape(module) == "S"
    got = run(module, np.zeros((1, 3), f4), np.zeros((1, 2), f4))
    np.testing.assert_array_equal(got, np.asarray([3, 4], f4), strict=True)


@pytest.mark.parametrize("size", [0, 1, 3, 7, 8, 9, 20])
@pytest.mark.parametrize("less", [1, 5, 17])
def test_a_quotient_of_what_may_be_negative_rounds_towards_zero(size: int, less: int) -> None:
    module = imported(
        f"""
        g (float[n] x) => (int64[1] y) <int64[1] less = {{{less}}}, int64[1] by = {{8}}> {{
            s = Shape(x)
            d = Sub(s, less)
            y = Div(d, by)
        }}"""
    )
    assert ops_of(module) == ["dims"]
    assert run(module, np.zeros(size, f4)).tolist() == [int((size - less) / 8)]


DIVIDED = """
g (float[n, m, 24] x) => (float[a, b, 4] y, int64[1] rest)
<int64[1] by = {4}, int64[1] from = {0}, int64[1] to = {1}> {
    shape = Shape(x)
    n = Slice(shape, from, to)
    size = Size(x)
    four = Mul(n, by)
    c = Div(size, four)
    target = Concat<axis=0>(n, c, by)
    y = Reshape(x, target)
    m = Shape<start=1, end=2>(x)
    rest = Mod(n, m)
}"""


def test_a_quotient_by_a_size_needs_no_data_and_0_is_refused_when_it_runs() -> None:
    module = imported(DIVIDED)
    assert result_shape(module) == "n, 6*m, 4"
    exe = unity.compile(model(DIVIDED))
    assert exe.native() == {"main": "native"}
    x = np.arange(2 * 3 * 24, dtype=f4).reshape(2, 3, 24)
    found = exe.run({"x": x})
    np.testing.assert_array_equal(found["y"], x.reshape(2, 18, 4))
    assert found["rest"].tolist() == [2]
    for shape in ((0, 3, 24), (2, 0, 24)):
        empty = np.zeros(shape, f4)
        with pytest.raises(UnityError, match="it divides by 0; got "):
            exe.run({"x": empty})
        with pytest.raises(UnityError, match="it divides by 0; got "):
            interpret(module, "main", [empty])


def test_channels_that_are_not_known_are_checked_when_it_runs() -> None:
    graph = """
    g (float[1, a, 5] x, float[1, b, 5] z) => (float[p, q, r] y) {
        c = Concat<axis=1>(x, z)
        h = Conv(c, w)
        y = ConvTranspose(h, v)
    }"""
    rng = np.random.default_rng(0)
    weights = {"w": rng.random((4, 3, 2), f4), "v": rng.random((4, 2, 2), f4)}
    exe = unity.compile(model(graph, weights=weights))
    x, z = np.ones((1, 1, 5), f4), np.ones((1, 2, 5), f4)
    h = np.full((4, 4), weights["w"].sum((1, 2))[:, None])
    full = np.einsum("ct,cok->okt", h, weights["v"])
    expected = np.pad(full[:, 0], ((0, 0), (0, 1))) + np.pad(full[:, 1], ((0, 0), (1, 0)))
    np.testing.assert_allclose(exe.run({"x": x, "z": z})["y"], expected[None], rtol=1e-5)
    with pytest.raises(UnityError, match=r"expected|got"):
        exe.run({"x": z, "z": z})


PADDED = """
g (float[b, h, w] x) => (float[p, q, r] y)
<int64[3] zeros = {0, 0, 0}, int64[1] by = {7}, int64[1] at_w = {2}, int64[1] at_h = {1},
 int64[2] pairs = {-1, 2}, int64[1] last = {-1}, int64[1] before = {-9}, int64[1] axis = {0},
 int64[1] back = {-1}, int64[1] nothing = {0}> {
    shape = Shape(x)
    w = Gather(shape, at_w)
    h = Gather(shape, at_h)
    w_over = Mod(w, by)
    h_over = Mod(h, by)
    w_less = Sub(by, w_over)
    h_less = Sub(by, h_over)
    w_pad = Mod(w_less, by)
    h_pad = Mod(h_less, by)
    torchs = Concat<axis=0>(nothing, w_pad, nothing, h_pad, nothing, nothing)
    table = Reshape(torchs, pairs)
    turned = Slice(table, last, before, axis, back)
    sides = Transpose<perm=[1, 0]>(turned)
    pads = Reshape(sides, last)
    y = Pad(x, pads)
}"""


def test_the_pads_that_torch_writes_are_known_sizes() -> None:
    """``F.pad`` by sizes: a vector of them is turned around and transposed on its way."""
    module = imported(PADDED)
    assert set(ops_of(module)) == {"nn.pad"}
    x = np.arange(30, dtype=f4).reshape(1, 5, 6)
    got = run(module, x)
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, np.pad(x, ((0, 0), (0, 2), (0, 1))), strict=True)
