"""Relay's operators that move, pick, join or make elements, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.relay.calls import Case, Known, check_interpreted
from unity.errors import UnityError
from unity.frontend.relay.operators.shaping import decoded

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(6, dtype=np.float32)
I32, I64 = np.int32, np.int64


def test_the_codes_of_a_shape() -> None:
    assert decoded((2, 3, 4), (0, -1)) == (2, -1)
    assert decoded((2, 3, 4), (-2,)) == (2, 3, 4)
    assert decoded((2, 3, 4), (2, -2)) == (2, 3, 4)
    assert decoded((2, 3, 4), (-3, 0)) == (6, 4)
    assert decoded((2, 3, 4), (0, 0, -4, 2, -1)) == (2, 3, 2, 2)
    assert decoded((2, 3, 4), (-4, -1, 2, -2)) == (1, 2, 3, 4)
    assert decoded((2, 3, 4, 5), (-3, -3)) == (6, 20)
    assert decoded((0, 3), (3, 0), allows_zero=True) == (3, 0)
    for codes in ((0, 0, 0, 0), (-4, 3, 2), (-1, -1), (-5,), (-4, 2)):
        with pytest.raises(UnityError):
            decoded((2, 3, 4), codes)


def test_shapes() -> None:
    check_interpreted(
        [
            Case("reshape", [X], X.reshape(6, 4), newshape=(-3, 0)),
            Case("reshape", [X], X.reshape(2, 12), newshape=(0, -1)),
            Case("reshape", [X], X.reshape(24), newshape=(-1,)),
            Case("reshape", [X], X.reshape(2, 3, 2, 2), newshape=(0, 0, -4, 2, -1)),
            Case("contrib_reverse_reshape", [X], X.reshape(6, 4), newshape=(-1, 0)),
            Case("reshape_like", [X, X.reshape(4, 6)], X.reshape(4, 6)),
            Case("reshape_like", [X, ROW.reshape(2, 3)], X.reshape(2, 3, 4), lhs_begin=0,
                 lhs_end=2, rhs_begin=0, rhs_end=2),
            Case("nn.batch_flatten", [X], X.reshape(2, 12)),
            Case("transpose", [X], X.T),
            Case("transpose", [X], X.transpose(1, 2, 0), axes=(1, -1, 0)),
            Case("expand_dims", [X], X[:, None, None], axis=1, num_newaxis=2),
            Case("expand_dims", [X], X[..., None], axis=-1),
            Case("squeeze", [X[:1, :, :1]], X[0, :, 0]),
            Case("squeeze", [X[:1, :, :1]], X[:1, :, 0], axis=(-1,)),
            Case("reverse", [X], X[:, ::-1], axis=1),
            Case("repeat", [X], np.repeat(X, 2, 1), repeats=2, axis=1),
            Case("repeat", [X], np.repeat(X, 2), repeats=2),
            Case("tile", [X], np.tile(X, (2, 1)), reps=(2, 1)),
            Case("tile", [ROW], np.tile(ROW, (2, 1, 2)), reps=(2, 1, 2)),
            Case("broadcast_to", [ROW], np.broadcast_to(ROW, (2, 6)), shape=(2, 6)),
            Case("broadcast_to_like", [ROW, np.zeros((2, 6), np.float32)],
                 np.broadcast_to(ROW, (2, 6))),
            Case("collapse_sum_like", [X, X[0, :, :1]], X.sum((0, 2))[:, None]),
            Case("layout_transform", [X[None]], X[None].transpose(0, 2, 3, 1),
                 src_layout="NCHW", dst_layout="NHWC"),
            Case("layout_transform", [X[None].repeat(2, 1)],
                 X[None].repeat(2, 1).reshape(1, 2, 2, 3, 4).transpose(0, 1, 3, 4, 2),
                 src_layout="NCHW", dst_layout="NCHW2c"),
        ]
    )  # fmt: skip


def test_joining_and_parting() -> None:
    check_interpreted(
        [
            Case("concatenate", [[X, X + 1]], np.concatenate([X, X + 1], 1), axis=1),
            Case("concatenate", [[X]], X, axis=-1),
            Case("stack", [[X, X + 1]], np.stack([X, X + 1], -1), axis=-1),
            Case("split", [X], np.split(X, 2, 2), indices_or_sections=2, axis=-1),
            Case("split", [ROW], np.split(ROW, [1, 4]), indices_or_sections=(1, 4), axis=0),
            Case("meshgrid", [[ROW[:2], ROW[:3]]],
                 list(np.meshgrid(ROW[:2], ROW[:3], indexing="ij"))),
            Case("meshgrid", [[ROW[:2], ROW[:3]]], list(np.meshgrid(ROW[:2], ROW[:3])),
                 indexing="xy"),
        ]
    )  # fmt: skip


def test_slices() -> None:
    check_interpreted(
        [
            Case("strided_slice", [X], X[:, 1:3], begin=(0, 1), end=(2, 3)),
            Case("strided_slice", [X], X[:, :, ::2], begin=(0,), end=(4,), strides=(2,),
                 axes=(2,)),
            Case("strided_slice", [X], X[:, ::-1], begin=(-1,), end=(-9,), strides=(-1,),
                 axes=(1,)),
            Case("strided_slice", [X], X[:, -2:, 1:4], begin=(0, -2, 1), end=(-1, 2, 3),
                 slice_mode="size"),
            Case("strided_slice", [X], X[1:, :2], begin=(1, 0), end=(99, -1)),
            Case("slice_like", [X, X[:1, :2]], X[:1, :2]),
            Case("slice_like", [X, X[:1, :2]], X[:, :2], axes=(1,)),
        ]
    )  # fmt: skip


def test_picking() -> None:
    at = np.array([[0, 2], [1, 5], [-3, 0]], I32)
    nd = np.array([[0, 1, 1], [2, 0, 1]], I64)
    check_interpreted(
        [
            Case("take", [X, at], X[:, np.clip(at, 0, 2)], axis=1),
            Case("take", [X, at], X[:, at % 3], axis=1, mode="wrap"),
            Case("take", [X, np.array(5, I32)], np.asarray(X.reshape(-1)[5])),
            Case("take", [X, abs(at) % 3], X[:, abs(at) % 3], axis=1, mode="fast"),
            Case("take", [X, at[:2] % 3], np.stack([X[i, at[i] % 3] for i in range(2)]), axis=1,
                 batch_dims=1),
            Case("gather", [X, (at % 3)[None].repeat(2, 0)[..., :1]],
                 np.take_along_axis(X[..., :1], (at % 3)[None].repeat(2, 0)[..., :1], 1), axis=1),
            Case("gather_nd", [X, nd], X[nd[0], nd[1]]),
            Case("gather_nd", [X, np.array([[2, 0]], I64)], np.stack([X[0, 2], X[1, 0]]),
                 batch_dims=1),
            Case("adv_index", [[X, nd[0], nd[1][:, None]]], X[nd[0], nd[1][:, None]]),
        ]
    )  # fmt: skip


def test_placing() -> None:
    base = np.zeros((3, 4), np.float32)
    added = base.copy()
    np.add.at(added, ([0, 2, 0],), X[0])
    elements = base.copy()
    np.put_along_axis(elements, np.array([[1], [0], [1]]), X[0, :, :1], 1)
    check_interpreted(
        [
            Case("scatter_nd", [base, np.array([[0, 2, 0]], I64), X[0]], added, mode="add"),
            Case("scatter_elements", [base, np.array([[1], [0], [1]], I64), X[0, :, :1]], elements,
                 axis=1),
            Case("sparse_to_dense", [np.array([[0, 1], [2, 0]], I32), ROW[1:3],
                 np.array(9, np.float32)], np.array([[9, 1], [9, 9], [2, 9]], np.float32),
                 output_shape=(3, 2)),
            Case("sparse_to_dense", [np.array([0, 2], I32), ROW[1:3], np.array(0, np.float32)],
                 np.array([1, 0, 2], np.float32), output_shape=(3,)),
            Case("one_hot", [np.array([0, 2, -1, 5], I32), Known(np.array(7, np.float32)),
                 Known(np.array(1, np.float32))],
                 np.array([[7, 1, 1], [1, 1, 7], [1, 1, 1], [1, 1, 1]], np.float32), depth=3,
                 axis=-1, dtype="float32"),
            Case("one_hot", [np.array([0, 2], I32), Known(np.array(1, I32)),
                 Known(np.array(0, I32))], np.array([[1, 0], [0, 0], [0, 1]], I32), depth=3, axis=0,
                 dtype="int32"),
        ]
    )  # fmt: skip


def test_sequences_and_triangles() -> None:
    lengths = np.array([2, 3], I32)
    turned = X.copy()
    turned[0, :2], turned[1, :3] = X[0, 1::-1], X[1, ::-1]
    masked = X.copy()
    masked[0, 2:], masked[1, 3:] = -1, -1
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    below = square.copy()
    below[1, 0], below[2, 1] = 50, 60
    check_interpreted(
        [
            Case("reverse_sequence", [X, lengths], turned, seq_axis=1, batch_axis=0),
            Case("sequence_mask", [X, lengths], masked, mask_value=-1.0, axis=1),
            Case("sequence_mask", [X.transpose(1, 0, 2), lengths], masked.transpose(1, 0, 2),
                 mask_value=-1.0, axis=0),
            Case("trilu", [square, Known(np.array(1, I32))], np.triu(square, 1), upper=True),
            Case("trilu", [square, Known(np.array(-1, I32))], np.tril(square, -1), upper=False),
            Case("matrix_set_diag", [square, np.array([50, 60], np.float32)], below, k1=-1, k2=-1),
            Case("matrix_set_diag", [square, ROW[:3] + 90], square + np.diag(ROW[:3] + 90)
                 - np.diag(np.diag(square))),
        ]
    )  # fmt: skip


def test_making() -> None:
    def scalar(value: float, kind: type = np.float32) -> Known:
        return Known(np.array(value, kind))

    check_interpreted(
        [
            Case("zeros", [], np.zeros((2, 1), np.float32), shape=(2, 1), dtype="float32"),
            Case("ones", [], np.ones((2,), I32), shape=(2,), dtype="int32"),
            Case("full", [np.array(3, I32)], np.full((2, 2), 3, I64), shape=(2, 2), dtype="int64"),
            Case("full_like", [X, np.array(3, np.float32)], np.full_like(X, 3)),
            Case("arange", [scalar(1, I32), scalar(8, I32), scalar(3, I32)],
                 np.array([1, 4, 7], I32), dtype="int32"),
            Case("arange", [scalar(1), scalar(0), scalar(-0.25)],
                 np.arange(1, 0, -0.25, dtype=np.float32), dtype="float32"),
            Case("shape_of", [X], np.array([2, 3, 4], I32), dtype="int32"),
            Case("ndarray_size", [X], np.asarray(24, I64), dtype="int64"),
        ]
    )  # fmt: skip


def test_order_and_search() -> None:
    x = np.array([[3, 1, 2], [0, 5, 4]], np.float32)
    rows = np.array([1, 3, 3, 7], np.float32)
    values = np.array([[0, 3], [4, 8]], np.float32)
    where = np.array([[1, 0], [0, 1]], bool)
    signal = X[0]
    spectrum = np.fft.fft(signal + 1j * X[1])
    check_interpreted(
        [
            Case("sort", [x], np.sort(x), axis=1),
            Case("sort", [x], np.sort(x)[:, ::-1], axis=1, is_ascend=False),
            Case("argsort", [x], np.argsort(x, 0).astype(I32), axis=0, dtype="int32"),
            Case("topk", [x], [np.sort(x)[:, :0:-1], np.array([[0, 2], [1, 2]], I64)], k=2,
                 dtype="int64"),
            Case("topk", [x], np.sort(x)[:, :1], k=1, ret_type="values", is_ascend=True),
            Case("topk", [x], np.array([[0, 2, 1], [1, 2, 0]], I32), k=0, ret_type="indices",
                 dtype="int32"),
            Case("searchsorted", [rows, values], np.searchsorted(rows, values).astype(I32)),
            Case("searchsorted", [rows, values], np.searchsorted(rows, values, "right").astype(I32),
                 right=True),
            Case("searchsorted", [np.sort(x), values],
                 np.stack([np.searchsorted(r, v) for r, v in zip(np.sort(x), values, strict=True)]
                          ).astype(I64), dtype="int64"),
            Case("cumsum", [x], x.cumsum(1), axis=1),
            Case("cumsum", [x], x.cumsum()),
            Case("cumsum", [x], x.cumsum(1) - x, axis=1, exclusive=True),
            Case("argwhere", [where], np.argwhere(where).astype(I32)),
            Case("invert_permutation", [np.array([2, 0, 1], I32)], np.array([1, 2, 0], I32)),
            Case("unravel_index", [np.array([5, 23], I32), Known(np.array([2, 3, 4], I32))],
                 np.array([[0, 1], [1, 2], [1, 3]], I32)),
            Case("dft", [signal, X[1]], [spectrum.real.astype(np.float32),
                 spectrum.imag.astype(np.float32)], tolerance=1e-4),
            Case("dft", [spectrum.real.astype(np.float32), spectrum.imag.astype(np.float32)],
                 [signal, X[1]], tolerance=1e-4, inverse=True),
        ]
    )  # fmt: skip


def test_known_operands_in_place_of_attributes() -> None:
    def ints(*values: int) -> Known:
        return Known(np.array(values, I64))

    one = Known(np.array(2, I64))
    check_interpreted(
        [
            Case("dyn.reshape", [X, ints(-1, 4)], X.reshape(6, 4)),
            Case("dyn.tile", [ROW, ints(2)], np.tile(ROW, 2)),
            Case("dyn.broadcast_to", [ROW, ints(2, 6)], np.broadcast_to(ROW, (2, 6))),
            Case("dyn.zeros", [ints(2, 2)], np.zeros((2, 2), I32), dtype="int32"),
            Case("dyn.ones", [ints(2)], np.ones(2, np.float32), dtype="float32"),
            Case("dyn.full", [np.array(3, I32), ints(2)], np.full(2, 3, I32), dtype="int32"),
            Case("dyn.one_hot", [np.array([1], I32), Known(np.array(1, I32)),
                 Known(np.array(0, I32)), one], np.array([[0, 1]], I32), axis=-1, dtype="int32"),
            Case("dyn.strided_slice", [X, ints(0, 1), ints(2, 3), ints(1, 1)], X[:, 1:3]),
            Case("dyn.expand_dims", [X, Known(np.array(1, I64))], X[:, None], num_newaxis=1),
            Case("dyn.squeeze", [X[:1], ints(0)], X[0]),
            Case("dyn.topk", [ROW, one], np.array([5, 4], np.float32), ret_type="values"),
            Case("dyn.nn.pad", [ROW, ints(1, 2), Known(np.array(7, np.float32))],
                 np.pad(ROW, (1, 2), constant_values=7)),
        ]
    )  # fmt: skip
