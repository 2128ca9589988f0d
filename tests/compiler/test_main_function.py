"""Which function an executable calls when it is called itself."""

from __future__ import annotations

import numpy as np

import unity
from unity import script
from unity.script import R, Tensor, dim, f32

n = dim("n")


@script.function
def half(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return x * 0.5


@script.function
def forward(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.exp(half(x))


def test_a_decorated_function_is_called_and_not_one_that_it_calls() -> None:
    x = np.array([2.0, 4.0], np.float32)
    for model in (forward, script.module(forward), script.module(half, forward)):
        exe = unity.compile(model)
        np.testing.assert_allclose(exe(x), np.exp(x / 2), rtol=1e-6)
        np.testing.assert_allclose(exe.run({"x": x})["output0"], np.exp(x / 2), rtol=1e-6)
        np.testing.assert_array_equal(exe["half"](x), x / 2)


def test_it_stays_so_in_a_file(tmp_path: object) -> None:
    x = np.array([2.0], np.float32)
    path = f"{tmp_path}/forward.unity"
    unity.compile(forward).save(path)
    loaded = unity.load(path)
    assert isinstance(loaded, unity.Executable)
    np.testing.assert_allclose(loaded(x), np.exp(x / 2), rtol=1e-6)
