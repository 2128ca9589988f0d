"""Blocks and maxima brought back to an image, and written into caches, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import assert_close, check, imported, model


def agree(of: onnx.ModelProto, given: dict[str, Array], *, compiled: bool = False) -> None:
    """Results are onnxruntime's."""
    want = ort.InferenceSession(of.SerializeToString()).run(None, given)
    module = from_onnx(of)
    check(module)
    run = unity.compile(of) if compiled else lambda *a: interpret(module, "main", list(a))
    found = run(*given.values())
    every = found if isinstance(found, tuple) else (found,)
    for mine, theirs in zip(every, want, strict=True):
        assert_close(np.asarray(mine), np.asarray(theirs))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("options", ["", "<strides=[2, 3], pads=[1, 0, 2, 1], dilations=[1, 2]>"])
def test_blocks_in_an_image(options: str, known: bool) -> None:
    values = {"image": np.array([7, 8]), "block": np.array([2, 3])}
    inputs = "" if known else ", int64[2] image, int64[2] block"
    of = model(
        f"g (float[n, 12, l] x{inputs}) => (float[n, c, h, w] y) "
        f"{{ y = Col2Im{options}(x, image, block) }}",
        weights=values if known else None,
    )
    count = 36 if not options else 10
    x = np.random.default_rng(0).standard_normal((3, 12, count)).astype(np.float32)
    agree(of, {"x": x} if known else {"x": x, **values})


def test_blocks_that_do_not_fit_are_refused() -> None:
    values = {"image": np.array([7, 8]), "block": np.array([2, 3])}
    with pytest.raises(UnityError, match=r"an image \(7, 8\) has 36 blocks, got 35"):
        imported(
            "g (float[n, 12, 35] x) => (float[n, c, h, w] y) { y = Col2Im(x, image, block) }",
            weights=values,
        )


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        "kernel_shape=[2, 3]",
        "kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], storage_order=1",
        "kernel_shape=[3, 2], strides=[2, 1], dilations=[2, 3], ceil_mode=1",
    ],
)
@pytest.mark.parametrize("extents", ["7, 8", "p, q"])
def test_places_of_maxima(options: str, compiled: bool, extents: str) -> None:
    of = model(
        f"g (float[n, 3, {extents}] x) => (float[n, 3, h, w] y, int64[n, 3, h, w] places) "
        f"{{ y, places = MaxPool<{options}>(x) }}"
    )
    x = np.random.default_rng(0).integers(-3, 3, (2, 3, 7, 8)).astype(np.float32)
    agree(of, {"x": x}, compiled=compiled)


def test_values_back_at_their_places() -> None:
    of = model("""
        g (float[n, 2, 6, 8] x) => (float[n, 2, 6, 8] y) {
            pooled, places = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x)
            y = MaxUnpool<kernel_shape=[2, 2], strides=[2, 2]>(pooled, places)
        }""")
    agree(of, {"x": np.random.default_rng(0).standard_normal((2, 2, 6, 8)).astype(np.float32)})


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [1, -2])
def test_updates_of_a_cache(axis: int, mode: str) -> None:
    of = model(
        f"""g (float[b, 6, t, 2] past, float[b, {"3, t" if axis == 1 else "6, k"}, 2] update,
            int64[b] at) => (float[b, 6, t, 2] y)
        {{ y = TensorScatter<axis={axis}, mode="{mode}">(past, update, at) }}""",
        24,
    )
    rng = np.random.default_rng(0)
    past = rng.standard_normal((2, 6, 5, 2)).astype(np.float32)
    update = rng.standard_normal((2, 3, 5, 2) if axis == 1 else (2, 6, 2, 2)).astype(np.float32)
    given = {"past": past, "update": update, "at": np.array([3, 1 if mode == "linear" else 4])}
    (want,) = ReferenceEvaluator(of).run(None, given)
    module = from_onnx(of)
    check(module)
    found = interpret(module, "main", list(given.values()))
    np.testing.assert_array_equal(found, want)


def test_pixels_to_channels_of_each_channel() -> None:
    of = model(
        """g (float[n, 3, 4, 6] x) => (float[n, 12, 2, 3] y, float[n, 3, 4, 6] again) {
        y = SpaceToDepth<blocksize=2, mode="CRD">(x)
        again = DepthToSpace<blocksize=2, mode="CRD">(y)
    }""",
        28,
    )
    x = np.arange(2 * 3 * 4 * 6, dtype=np.float32).reshape(2, 3, 4, 6)
    found = interpret(from_onnx(of), "main", [x])
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[1], x)
    blocks = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4)
    np.testing.assert_array_equal(found[0], blocks.reshape(2, 12, 2, 3))


@pytest.mark.parametrize("aligned", [0, 1])
def test_grids_of_a_size_known_at_run_time(aligned: int) -> None:
    of = model(
        f"""g (float[n, 3, 4] theta, int64[5] size) => (float[n, d, h, w, 3] y)
        {{ y = AffineGrid<align_corners={aligned}>(theta, size) }}""",
        20,
    )
    theta = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    given = {"theta": theta, "size": np.array([2, 1, 3, 4, 5])}
    (want,) = ReferenceEvaluator(of).run(None, given)
    found = interpret(from_onnx(of), "main", list(given.values()))
    assert isinstance(found, np.ndarray)
    assert isinstance(want, np.ndarray)
    assert_close(found, want)
