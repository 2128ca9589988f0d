"""GridSample over maps whose size is known at run time, as onnxruntime reads them."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

import unity

from .programs import model

GRAPH = """g (float[n, 2, h, w] x, float[n, a, b, 2] grid) => (float[n, 2, a, b] y)
 {{ y = GridSample<mode="{mode}", padding_mode="{padding}", align_corners={aligned}>(x, grid) }}"""
VOLUME = """g (float[n, 2, d, h, w] x, float[n, a, b, e, 3] grid) => (float[n, 2, a, b, e] y)
 { y = GridSample<mode="linear", padding_mode="zeros">(x, grid) }"""
WAYS = [*product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (0, 1))]


@pytest.mark.rotated(1 / 2)
@pytest.mark.parametrize(("mode", "padding", "aligned"), WAYS)
def test_maps_of_unknown_size(mode: str, padding: str, aligned: int) -> None:
    proto = model(GRAPH.format(mode=mode, padding=padding, aligned=aligned), 16)
    session = ort.InferenceSession(proto.SerializeToString())
    compiled = unity.compile(proto, cache=None)
    rng = np.random.default_rng(1)
    for n, h, w, a, b in ((1, 8, 9, 5, 6), (2, 3, 17, 4, 4), (1, 2, 5, 3, 2)):
        feeds = {
            "x": rng.standard_normal((n, 2, h, w), np.float32),
            "grid": rng.uniform(-2, 2, (n, a, b, 2)).astype(np.float32),
        }
        (want,) = session.run(None, feeds)
        got = compiled.run(feeds)["y"]
        np.testing.assert_allclose(
            np.asarray(got), np.asarray(want, np.float32), rtol=1e-4, atol=1e-5
        )


def test_what_is_outside_is_zero_whatever_the_border_holds() -> None:
    """Not zero times the border's infinity; of an image of no rows, all is outside."""
    proto = model(GRAPH.format(mode="bilinear", padding="zeros", aligned=0), 16)
    compiled = unity.compile(proto, cache=None)
    x = np.full((1, 2, 3, 4), np.inf, np.float32)
    outside = np.full((1, 9, 9, 2), 1.9, np.float32)
    assert not np.asarray(compiled.run({"x": x, "grid": outside})["y"]).any()
    none = np.asarray(compiled.run({"x": x[:, :, :0], "grid": outside * 0})["y"])
    assert none.shape == (1, 2, 9, 9)
    assert not none.any()


def test_volumes_of_unknown_size() -> None:
    proto, rng = model(VOLUME, 20), np.random.default_rng(2)
    feeds = {
        "x": rng.standard_normal((1, 2, 3, 4, 5), np.float32),
        "grid": rng.uniform(-1.2, 1.2, (1, 2, 3, 4, 3)).astype(np.float32),
    }
    (want,) = ReferenceEvaluator(proto).run(None, dict(feeds))
    got = unity.compile(proto, cache=None).run(feeds)["y"]
    np.testing.assert_allclose(np.asarray(got), np.asarray(want, np.float32), rtol=1e-4, atol=1e-5)
