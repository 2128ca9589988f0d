"""DepthToSpace and SpaceToDepth of unknown sizes: whether blocks fit shows when the model runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError

from .programs import model

WAYS: dict[str, Sequence[tuple[int, ...]]] = {
    "SpaceToDepth<blocksize=2>": [(1, 3, 4, 6), (2, 3, 2, 10)],
    "DepthToSpace<blocksize=2>": [(1, 4, 3, 5), (2, 12, 1, 2)],
    'DepthToSpace<blocksize=3, mode="CRD">': [(1, 9, 3, 5)],
}
"""Nodes, and shapes of what they are given."""


@pytest.mark.parametrize("node", WAYS)
def test_blocks_of_unknown_sizes(node: str) -> None:
    proto = model(f"g (float[n, c, h, w] x) => (float[a, b, d, e] y) {{ y = {node}(x) }}", 13)
    session = ort.InferenceSession(proto.SerializeToString())
    compiled = unity.compile(proto, cache=None)
    for shape in WAYS[node]:
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        (want,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(want))


@pytest.mark.parametrize(
    ("node", "shape", "message"),
    [
        ("SpaceToDepth", (1, 3, 4, 7), r"its input's axis 3 must be a multiple of 2; got w = 7"),
        ("DepthToSpace", (1, 6, 4, 7), r"its input's axis 1 must be a multiple of 4; got c = 6"),
    ],
)
def test_blocks_that_do_not_fit(node: str, shape: tuple[int, ...], message: str) -> None:
    text = f"g (float[n, c, h, w] x) => (float[a, b, d, e] y) {{ y = {node}<blocksize=2>(x) }}"
    compiled = unity.compile(model(text, 13), cache=None)
    with pytest.raises(UnityError, match=message):
        compiled(np.zeros(shape, np.float32))
