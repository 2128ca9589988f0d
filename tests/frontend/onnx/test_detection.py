"""Boxes that others cover, regions of maps and deformed windows, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.dtype import Array

from .programs import assert_close, check, imported, model

SUPPRESSION = """
    g (float[b, n, 4] boxes, float[b, c, n] scores, int64[1] most, float[1] overlap, float[1] least)
        => (int64[k, 3] kept)
    { kept = NonMaxSuppression<center_point_box=CENTER>(boxes, scores, most, overlap, least) }"""


def boxes_of(rng: np.random.Generator, batch: int, count: int) -> Array:
    """Boxes whose corners come in any order."""
    return rng.uniform(0, 1, (batch, count, 4)).astype(np.float32)


@pytest.mark.parametrize("center", [0, 1])
def test_suppression_of_unknown_sizes(center: int) -> None:
    of = model(SUPPRESSION.replace("CENTER", str(center)), 11)
    module = from_onnx(of)
    check(module)
    session = ort.InferenceSession(of.SerializeToString())
    rng = np.random.default_rng(center)
    for batch, classes, count, most, least in (
        (1, 1, 6, 3, 0.0),
        (2, 3, 9, 100, 0.4),
        (1, 2, 5, 0, 0.0),
    ):
        given = {
            "boxes": boxes_of(rng, batch, count),
            "scores": rng.uniform(0, 1, (batch, classes, count)).astype(np.float32),
            "most": np.array([most]),
            "overlap": np.array([0.1], np.float32),
            "least": np.array([least], np.float32),
        }
        (want,) = session.run(None, given)
        np.testing.assert_array_equal(interpret(module, "main", list(given.values())), want)


REGIONS = """
    g (float[b, 2, 6, 7] x, float[n, 5] rois) => (float[n, 2, 2, 3] y)
    { y = MaxRoiPool<pooled_shape=[2, 3], spatial_scale=0.5>(x, rois) }"""


def test_the_largest_pixels_of_regions() -> None:
    """Corners in the middle between pixels, left of the map and behind it."""
    rng = np.random.default_rng(0)
    rois = np.array(
        [[0, 1, 3, 9, 11], [1, -1, -3, 7, 5], [1, 5, 5, 5, 5], [0, 99, 99, 120, 120]], np.float32
    )
    given = {"x": rng.standard_normal((2, 2, 6, 7)).astype(np.float32), "rois": rois}
    of = model(REGIONS, 16)
    (want,) = ort.InferenceSession(of.SerializeToString()).run(None, given)
    np.testing.assert_array_equal(unity.compile(of)(**given), want)


@pytest.mark.rotated(1 / 4)
@pytest.mark.long("compiles a sort and a scan of unknown sizes")
def test_suppression_compiled() -> None:
    of = model(SUPPRESSION.replace("CENTER", "0"), 11)
    executable = unity.compile(of)
    session = ort.InferenceSession(of.SerializeToString())
    rng = np.random.default_rng(3)
    for count in (1, 40):
        given = {
            "boxes": boxes_of(rng, 2, count),
            "scores": rng.uniform(0, 1, (2, 2, count)).astype(np.float32),
            "most": np.array([7]),
            "overlap": np.array([0.2], np.float32),
            "least": np.array([0.3], np.float32),
        }
        (want,) = session.run(None, given)
        np.testing.assert_array_equal(np.asarray(executable(*given.values())), want)


def test_without_a_number_no_box_is_kept() -> None:
    module = imported(
        """g (float[1, 3, 4] boxes, float[1, 1, 3] scores) => (int64[k, 3] kept)
        { kept = NonMaxSuppression(boxes, scores) }"""
    )
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 1, (1, 1, 3)).astype(np.float32)
    found = interpret(module, "main", [boxes_of(rng, 1, 3), scores])
    assert isinstance(found, np.ndarray)
    assert found.shape == (0, 3)


def test_scores_that_are_no_classes_are_refused() -> None:
    with pytest.raises(UnityError, match="scores of rank 2; expected 3"):
        imported(
            """g (float[1, 3, 4] boxes, float[1, 3] scores) => (int64[k, 3] kept)
            { kept = NonMaxSuppression(boxes, scores) }"""
        )


@pytest.mark.parametrize("form", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("size", ["7, 9", "h, w"])
def test_regions(size: str, mode: str, form: str) -> None:
    of = model(
        f"""g (float[2, 3, {size}] x, float[r, 4] rois, int64[r] which) => (float[r, 3, 3, 2] y) {{
        y = RoiAlign<output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.5,
            mode="{mode}", coordinate_transformation_mode="{form}">(x, rois, which) }}""",
        16,
    )
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, 7, 9)).astype(np.float32)
    rois = np.sort(rng.uniform(-4, 24, (5, 2, 2)), axis=1).reshape(5, 4).astype(np.float32)
    given = {"x": x, "rois": rois, "which": rng.integers(0, 2, 5)}
    (want,) = ort.InferenceSession(of.SerializeToString()).run(None, given)
    module = from_onnx(of)
    check(module)
    found = interpret(module, "main", list(given.values()))
    assert isinstance(found, np.ndarray)
    assert_close(found, np.asarray(want))


@pytest.mark.parametrize("form", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions_that_end_before_they_begin(samples: int, form: str) -> None:
    """And, with sampling_ratio 0, as many samples as each region is large."""
    of = model(
        f"""g (float[2, 3, 7, 9] x, float[r, 4] rois, int64[r] which) => (float[r, 3, 3, 2] y) {{
        y = RoiAlign<output_height=3, output_width=2, sampling_ratio={samples},
            spatial_scale=0.5, coordinate_transformation_mode="{form}">(x, rois, which) }}""",
        16,
    )
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 3, 7, 9)).astype(np.float32)
    ends = [[2, 3, 15, 12], [15, 12, 2, 3], [2, 12, 15, 3], [0, 0, 18, 14], [4, 4, 4, 4],
            [-30, -2, 40, 3], [5, 5, 5.5, 5.5]]  # fmt: skip
    if samples == 0 and form == "half_pixel":
        del ends[2]  # onnxruntime fails on a number of samples below 0 along one axis alone
    rois = np.array(ends, np.float32)
    given = {"x": x, "rois": rois, "which": rng.integers(0, 2, len(ends))}
    (want,) = ort.InferenceSession(of.SerializeToString()).run(None, given)
    module = from_onnx(of)
    check(module)
    found = interpret(module, "main", list(given.values()))
    assert isinstance(found, np.ndarray)
    assert_close(found, np.asarray(want))


def test_maxima_of_as_many_samples_as_regions_are_large_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="mode max with as many samples"):
        imported(
            """g (float[1, 1, 4, 4] x, float[r, 4] rois, int64[r] which) => (float[r, 1, 2, 2] y)
            { y = RoiAlign<output_height=2, output_width=2, mode="max">(x, rois, which) }"""
        )


@pytest.mark.parametrize(("batch", "count"), [(1, 0), (0, 5)])
def test_none_of_no_boxes_are_kept(batch: int, count: int) -> None:
    module = imported(
        f"""g (float[{batch}, {count}, 4] boxes, float[{batch}, 2, {count}] scores) =>
            (int64[k, 3] kept) {{
            most = Constant<value_int=3>()
            kept = NonMaxSuppression(boxes, scores, most) }}"""
    )
    boxes, scores = np.zeros((batch, count, 4)), np.zeros((batch, 2, count))
    given = [v.astype(np.float32) for v in (boxes, scores)]
    assert np.asarray(interpret(module, "main", given)).shape == (0, 3)


@pytest.mark.parametrize("groups", [1, 2])
def test_deformed_windows(groups: int) -> None:
    of = model(
        f"""g (float[n, 4, 5, 6] x, float[6, {4 // groups}, 3, 2] w, float[n, 24, 3, 6] offset,
            float[6] b, float[n, 12, 3, 6] mask) => (float[n, 6, 3, 6] y) {{
        y = DeformConv<group={groups}, offset_group=2, strides=[2, 1], pads=[1, 0, 1, 1]>
            (x, w, offset, b, mask) }}""",
        19,
    )
    rng = np.random.default_rng(groups)
    shapes = {
        "x": (2, 4, 5, 6), "w": (6, 4 // groups, 3, 2), "offset": (2, 24, 3, 6), "b": (6,),
        "mask": (2, 12, 3, 6),
    }  # fmt: skip
    given = {k: rng.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    given["offset"] *= 2
    (want,) = ReferenceEvaluator(of).run(None, given)
    assert isinstance(want, np.ndarray)
    module = from_onnx(of)
    check(module)
    found = interpret(module, "main", list(given.values()))
    assert isinstance(found, np.ndarray)
    assert_close(found, want)
