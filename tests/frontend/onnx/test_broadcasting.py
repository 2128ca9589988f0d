"""Dims of different names broadcast: they are equal at run time, or one of them is 1 there."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError

from .programs import imported, model, ops_of, result_shape, run

f4 = np.float32

MASKED = """
g (float[b, 2, s, 4] x, float[c, 1, t, 4] mask, float[4] scale) => (float[k, l, m, o] z) {
    u = Add(mask, x)
    v = Mul(u, x)
    z = Mul(v, scale)
}"""


def arrays(*shapes: tuple[int, ...]) -> list[npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def test_a_dim_of_1_broadcasts_and_equal_ones_are_as_they_were() -> None:
    assert result_shape(imported(MASKED)) == "b, 2, s, 4"
    exe = unity.compile(model(MASKED))
    assert exe.native()["main"] == "native"
    for batch, rows in ((3, 5), (1, 5), (3, 1), (1, 1)):
        x, mask, scale = arrays((3, 2, 5, 4), (batch, 1, rows, 4), (4,))
        np.testing.assert_allclose(np.asarray(exe(x, mask, scale), f4), (x + mask) * x * scale)
    assert np.asarray(exe(*arrays((0, 2, 5, 4), (1, 1, 5, 4), (4,)))).shape == (0, 2, 5, 4)
    for batch, rows in ((2, 5), (3, 4), (0, 5)):
        with pytest.raises(UnityError, match=r"u_broadcasts_another_extent_than_1_along_axis_[02]"):
            exe(*arrays((3, 2, 5, 4), (batch, 1, rows, 4), (4,)))


def test_the_dim_that_is_a_number_is_that_of_the_result() -> None:
    module = imported("g (float[n] x, float[8] y) => (float[8] z) { z = Add(x, y) }")
    assert result_shape(module) == "8"
    for n in (1, 8):
        x, y = arrays((n,), (8,))
        np.testing.assert_array_equal(run(module, x, y), x + y)
    with pytest.raises(UnityError, match="z_broadcasts_another_extent_than_1"):
        run(module, *arrays((4,), (8,)))


def test_dims_of_one_name_are_not_looked_at() -> None:
    module = imported("g (float[n, 8] x, float[n, 8] y) => (float[n, 8] z) { z = Add(x, y) }")
    assert ops_of(module) == ["add"]
