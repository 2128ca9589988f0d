"""Attributes of operators of several families that no other test varies, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, Known, Operand, check_interpreted, module_of
from tests.frontend.relay.numpy_layers import convolution
from tests.frontend.relay.operators.boxes import counted, located, suppressed
from unity.errors import UnityError

Tensor = npt.NDArray[Any]
_DRAW = np.random.default_rng(16)


def _f(*shape: int) -> Tensor:
    return _DRAW.uniform(-1, 1, shape).astype(np.float32)


def _int(value: int) -> Known:
    return Known(np.array(value, np.int32))


def _split(y: Tensor) -> Tensor:
    """Channels in pairs: NCHW2c."""
    n, c, h, width = y.shape
    return y.reshape(n, c // 2, 2, h, width).transpose(0, 1, 3, 4, 2)


def test_convolutions_on_blocks() -> None:
    x, w, alone = _f(1, 4, 7, 6), _f(8, 4, 3, 2), _f(4, 1, 3, 2)
    whole = [(v * 9).astype(np.int8) for v in (x, w)]
    layouts: dict[str, Any] = {"data_layout": "NCHW2c", "out_layout": "NCHW2c"}
    how: dict[str, Any] = {"strides": (2, 1), "padding": (1, 0, 2, 1), "dilation": (1, 2),
                           "kernel_size": (3, 2)}  # fmt: skip
    given = (2, 1), (1, 0, 2, 1), (1, 2)

    def packed(v: Tensor) -> Tensor:
        return v.reshape(4, 2, 2, 2, 3, 2).transpose(0, 2, 4, 5, 3, 1)

    apart = alone.reshape(2, 2, 1, 1, 3, 2).transpose(0, 2, 4, 5, 3, 1)
    check_interpreted(
        [
            Case("nn.contrib_conv2d_NCHWc", [_split(x), packed(w)],
                 _split(convolution(x, w, *given)).astype(np.float32), channels=8,
                 kernel_layout="OIHW2i2o", **how, **layouts),
            Case("nn.contrib_conv2d_NCHWc_int8", [_split(whole[0]), packed(whole[1])],
                 _split(convolution(whole[0], whole[1], *given)).astype(np.int32), channels=8,
                 kernel_layout="OIHW2i2o", out_dtype="int32", **how, **layouts),
            Case("nn.contrib_depthwise_conv2d_NCHWc", [_split(x), apart],
                 _split(convolution(x, alone, *given, 4)).astype(np.float16), 1e-3, groups=4,
                 channels=4, kernel_layout="OIHW1i2o", out_dtype="float16", **how, **layouts),
        ]
    )  # fmt: skip


def test_anchors() -> None:
    x = np.zeros((1, 2, 2, 3), np.float32)
    sizes, ratios, steps, offsets = (0.4, 0.9), (1.0, 2.0, 0.5), (0.3, 0.6), (0.25, 0.75)
    shapes = [(s * 2 / 3, s) for s in sizes]
    shapes += [(0.4 * 2 / 3 * r**0.5, 0.4 / r**0.5) for r in ratios[1:]]
    rows = [
        [(j + 0.75) * 0.6 - w / 2, (i + 0.25) * 0.3 - h / 2,
         (j + 0.75) * 0.6 + w / 2, (i + 0.25) * 0.3 + h / 2]
        for i, j in np.ndindex(2, 3) for w, h in shapes
    ]  # fmt: skip
    wanted = np.array([rows])
    assert wanted.min() < 0 < 1 < wanted.max()
    given: dict[str, Any] = {"sizes": sizes, "ratios": ratios, "steps": steps, "offsets": offsets}
    name = "vision.multibox_prior"
    check_interpreted(
        [
            Case(name, [x], wanted.astype(np.float32), **given),
            Case(name, [x], np.clip(wanted, 0, 1).astype(np.float32), clip=True, **given),
        ]
    )


def test_offsets_by_other_variances() -> None:
    probabilities, offsets = abs(_f(2, 3, 5)), _f(2, 20)
    low = abs(_f(1, 5, 2)) / 2
    anchors = np.concatenate([low, low + np.float32(0.3)], 2)
    # Variances of 0.1 and 0.2 on offsets that are so much larger.
    other = (0.4, 0.2, 0.1, 0.6)
    scaled = offsets.reshape(2, 5, 4) * (np.array(other) / [0.1, 0.1, 0.2, 0.2])
    wanted = located(probabilities, scaled.reshape(2, 20).astype(np.float32), anchors, 0.4, False)
    check_interpreted(
        [Case("vision.multibox_transform_loc", [probabilities, offsets, anchors], wanted, 1e-4,
              threshold=0.4, clip=False, variances=other)]
    )  # fmt: skip


def test_columns_of_boxes_in_another_order() -> None:
    """Corners first, then the class, then the score."""
    corners = _DRAW.uniform(0, 1, (2, 10, 4))
    labels = _DRAW.integers(0, 2, (2, 10, 1))
    scores = _DRAW.permuted(np.linspace(0.05, 1, 20)).reshape(2, 10, 1)
    usual = np.concatenate([labels, scores, corners], 2).astype(np.float32)
    order = [2, 3, 4, 5, 0, 1]
    counts, rows, origin = counted(usual, 0.2, 1, 0)
    wanted, _ = suppressed(rows, counts, 3, 0.3, False, 4, 0)
    operands: list[Operand] = [rows[..., order], counts, origin]
    given: dict[str, Any] = {"coord_start": 0, "id_index": 4, "score_index": 5, "top_k": 4,
                             "return_indices": False}  # fmt: skip
    name = "vision.non_max_suppression"
    check_interpreted(
        [
            Case(name, [*operands, _int(3), Known(np.array(0.3, np.float32))], wanted[..., order],
                 **given),
            Case(name, operands, wanted[..., order], max_output_size=3, iou_threshold=0.3, **given),
            Case("vision.get_valid_counts", [usual[..., order]],
                 [counts, rows[..., order], origin], score_threshold=0.2, id_index=4,
                 score_index=5),
        ]
    )  # fmt: skip


def test_layouts_and_dtypes() -> None:
    x, w = _f(1, 2, 6, 5), _f(2, 3, 2)
    top = np.full((1, 2, 4, 4), -9.0)
    for i, j in np.ndindex(3, 2):
        top = np.maximum(top, x[:, :, i : i + 4, j : j + 4] + w[:, i, j][:, None, None])
    boxes = np.array([[0, 0, 1, 1]], np.float32)
    which = np.zeros(1, np.int32)
    pooled = x[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max((3, 5))
    rois = np.array([[0, 0, 0, 3, 3]], np.float32)
    check_interpreted(
        [
            Case("image.dilation2d", [x, w], top.astype(np.float16), 1e-3, out_dtype="float16"),
            Case("image.crop_and_resize", [x, boxes, which], x.astype(np.float16), 1e-3,
                 crop_size=(6, 5), out_dtype="float16"),
            Case("vision.roi_pool", [x.transpose(0, 2, 3, 1), rois], pooled.transpose(0, 2, 3, 1),
                 pooled_size=(2, 2), spatial_scale=1.0, layout="NHWC"),
        ]
    )  # fmt: skip


def test_windows_that_are_not_deformed() -> None:
    """Offsets of 0 make a convolution of any strides, dilation and layout; a tap outside is 0."""
    x, w = _f(2, 4, 8, 7), _f(6, 4, 3, 2)
    given = (2, 1), (1, 0, 1, 1), (2, 1)
    wanted = convolution(x, w, *given).astype(np.float32)
    moved = np.zeros((2, 12, *wanted.shape[2:]), np.float32)
    how: dict[str, Any] = {"strides": (2, 1), "padding": (1, 0, 1, 1), "dilation": (2, 1)}
    last = (0, 2, 3, 1)
    turned = [x.transpose(last), moved.transpose(last), w.transpose(2, 3, 1, 0)]
    layouts: dict[str, Any] = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    name = "nn.deformable_conv2d"
    check_interpreted(
        [
            Case(name, [x, moved, w], wanted.astype(np.float16), 1e-2, out_dtype="float16", **how),
            Case(name, turned, wanted.transpose(last), 1e-4, **how, **layouts),
            Case(name, turned, wanted, 1e-4, out_layout="NCHW", **how, **layouts),
        ]
    )  # fmt: skip


def test_what_stands_in_operands_too() -> None:
    """Attributes that repeat an operand or an extent, or are a hint, change nothing."""
    x = _f(3, 4)
    at = np.array([[0, 2], [3, 1]], np.int64)
    diagonal = x.copy()
    diagonal[[0, 1, 2], [1, 2, 3]] = [5, 6, 7]
    known = [Known(np.array(v, np.int32)) for v in (2, 8, 3)]
    check_interpreted(
        [
            Case("gather_nd", [x, at], x[at[0], at[1]], index_rank=2),
            Case("matrix_set_diag", [x, np.array([5, 6, 7], np.float32)], diagonal, k1=1, k2=1,
                 super_diag_right_align=False, sub_diag_right_align=True),
            Case("arange", known, np.array([2, 5], np.int32), dtype="int32", start=2, stop=8,
                 step=3),
            Case("on_device", [x], x, virtual_device="cpu", constrain_body=False),
        ]
    )  # fmt: skip
    with pytest.raises(UnityError, match="keep_background"):
        module_of([Case("vision.multibox_transform_loc", [x, x, x], x, keep_background=True)])
