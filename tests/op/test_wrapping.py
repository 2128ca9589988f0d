"""Sums of products of integers that leave their dtype: they wrap, exactly."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.script import parse

TEXT = """
@script.function
def main(x: i32[Tensor, 1, 2, 4, 4], w: i32[Tensor, 2, 1, 3, 3]):
    y = {call}
    return y
"""


@pytest.mark.parametrize(
    "call",
    [
        "R.nn.conv2d(x, w, groups=2, padding=1)",
        "R.nn.conv2d_transpose(x, w, groups=2, strides=2)",
        "R.nn.conv2d(R.nn.conv2d(x, w, groups=2, padding=1), w, groups=2)",
    ],
)
def test_convolutions_wrap_as_machines_do(call: str) -> None:
    rng = np.random.default_rng(0)
    x, w = (
        rng.integers(-(2**31), 2**31, shape).astype(np.int32)
        for shape in ((1, 2, 4, 4), (2, 1, 3, 3))
    )
    module = parse(TEXT.format(call=call))
    expected = unity.compile(module, cache=None)(x, w)
    np.testing.assert_array_equal(interpret(module, "main", [x, w]), expected)
