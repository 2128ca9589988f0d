"""ConvertFrames: which convolutions of a signal become products, and that numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.well_formed.verify import verify
from unity.script import parse, print_module
from unity.transform import Context
from unity.transform.graph import ConvertFrames

RNG = np.random.default_rng(2)
FILTERS: dict[str, Array] = {
    "long": RNG.standard_normal((20, 1, 64)).astype(np.float32),
    "short": RNG.standard_normal((20, 1, 9)).astype(np.float32),
    "channels": RNG.standard_normal((20, 3, 64)).astype(np.float32),
    "one": RNG.standard_normal((1, 1, 64)).astype(np.float32),
}
TEXT = """
n = dim("n")
m = dim("m")

@script.function
def main(x: f32[Tensor, n, {channels}, {length}]):
    return R.nn.conv1d(x, R.const("{filters}"), {attributes})
"""


@pytest.mark.parametrize(
    ("filters", "attributes", "length"),
    [
        ("long", "strides=32", "200"),
        ("long", "strides=32, padding=(5, 7)", "m"),
        ("long", "strides=1", "m"),
        ("long", "strides=8, dilation=2", "150"),
        ("short", "strides=4", "200"),
        ("channels", "strides=32", "200"),
        ("one", "strides=32", "200"),
    ],
)
def test_which_are_products(filters: str, attributes: str, length: str) -> None:
    channels = FILTERS[filters].shape[1]
    given = {"filters": filters, "attributes": attributes, "length": length}
    before = parse(TEXT.format(channels=channels, **given), {filters: FILTERS[filters]})
    after = ConvertFrames()(before, Context())
    verify(after)
    assert ("R.frames" in print_module(after)) is (filters == "long")
    assert (after is before) is (filters != "long")
    size = 173 if length == "m" else int(length)
    x = RNG.standard_normal((2, channels, size)).astype(np.float32)
    want = np.asarray(interpret(before, "main", [x]))
    np.testing.assert_allclose(np.asarray(interpret(after, "main", [x])), want, rtol=0, atol=1e-4)
    if "padding" in attributes:  # the others become the same kernels
        np.testing.assert_allclose(np.asarray(unity.compile(before)(x)), want, rtol=0, atol=1e-4)
