"""Attributes of Relay's other operators that other tests leave at their defaults, against numpy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.frontend.relay.calls import Case, Known, check_interpreted, module_of
from unity.errors import UnsupportedError

Tensor = npt.NDArray[Any]
_DRAW = np.random.default_rng(8)
X = _DRAW.uniform(-1, 1, (2, 3, 4)).astype(np.float32)
BITS = X > 0.2


def _ints(*values: int) -> Known:
    return Known(np.array(values, np.int64))


def _others(axis: int, exclude: bool) -> int | tuple[int, ...]:
    return tuple(a for a in range(3) if a != axis % 3) if exclude else axis


def test_reductions() -> None:
    cases: list[Case] = []
    for axis, keep, exclude in product((0, -1), (False, True), (False, True)):
        over = _others(axis, exclude)
        given: dict[str, Any] = {"axis": (axis,), "keepdims": keep, "exclude": exclude}
        wide = X.astype(np.float64)
        cases += [
            Case("all", [BITS], np.asarray(BITS.all(over, keepdims=keep)), **given),
            Case("any", [BITS], np.asarray(BITS.any(over, keepdims=keep)), **given),
            Case("sum", [X], X.sum(over, keepdims=keep), **given),
            Case("prod", [X], X.prod(over, keepdims=keep), **given),
            Case("max", [X], X.max(over, keepdims=keep), **given),
            Case("min", [X], X.min(over, keepdims=keep), **given),
            Case("mean", [X], X.mean(over, keepdims=keep), **given),
            Case("logsumexp", [X],
                 np.asarray(np.log(np.exp(wide).sum(over, keepdims=keep))).astype(np.float32),
                 **given),
        ]  # fmt: skip
        centre = X.mean(over, keepdims=True)
        for unbiased in (False, True):
            wanted = wide.var(over, ddof=int(unbiased), keepdims=keep).astype(np.float32)
            cases.append(Case("variance", [X, centre], wanted, unbiased=unbiased, **given))
    check_interpreted(cases)


def test_places_of_extremes() -> None:
    x = _DRAW.integers(0, 3, (3, 4, 5)).astype(np.int32)
    cases: list[Case] = []
    for axis, keep, last in product((0, 1, -1), (False, True), (False, True)):
        for name, find in (("argmax", np.argmax), ("argmin", np.argmin)):
            found = find(np.flip(x, axis) if last else x, axis=axis, keepdims=keep)
            wanted = x.shape[axis] - 1 - found if last else found
            cases.append(Case(name, [x], np.asarray(wanted).astype(np.int32), axis=(axis,),
                              keepdims=keep, select_last_index=last))  # fmt: skip
    line = x[0, 0]
    cases.append(Case("argmax", [line[None]], np.array([line.argmax()], np.int32), axis=(0,),
                      exclude=True))  # fmt: skip
    check_interpreted(cases)


def test_orders() -> None:
    down = -np.sort(-X, 1)
    cases = [
        Case("argsort", [X], np.argsort(-X, 1, kind="stable").astype(np.float32), axis=1,
             is_ascend=False, dtype="float32"),
        Case("sort", [X], down, axis=1, is_ascend=False, dtype="float32"),
        Case("topk", [X], [down[:, :2], np.argsort(-X, 1, kind="stable")[:, :2].astype(np.int64)],
             k=2, axis=1, dtype="int64"),
        Case("topk", [X], np.sort(X, 0)[:1], k=1, axis=0, is_ascend=True, ret_type="values"),
        Case("dyn.topk", [X, Known(np.array(2, np.int32))], np.argsort(X, 1)[:, :2], axis=1,
             is_ascend=True, ret_type="indices", dtype="int64"),
        Case("cumsum", [X.astype(np.int8)], X.astype(np.int8).cumsum(1).astype(np.int32), axis=1,
             dtype="int32"),
        Case("cumsum", [X], X.cumsum().astype(np.float32), dtype="float32"),
    ]  # fmt: skip
    check_interpreted(cases)


def test_shapes() -> None:
    flat = X.reshape(24)
    check_interpreted(
        [
            Case("reshape", [X], X.reshape(6, 4), newshape=(-3, 0)),
            Case("reshape", [np.zeros((0, 4), np.float32)], np.zeros((3, 0), np.float32),
                 newshape=(3, 0), allowzero=True),
            Case("reshape_like", [X, np.zeros((5, 4, 3), np.float32)], X.reshape(2, 4, 3),
                 lhs_begin=1, rhs_begin=1),
            Case("reshape_like", [flat.reshape(6, 4), np.zeros((2, 3, 9), np.float32)], X,
                 lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2),
            Case("contrib_reverse_reshape", [X], X.reshape(3, 8), newshape=(0, -1)),
            Case("broadcast_to", [X], np.broadcast_to(X, (5, 2, 3, 4)), shape=(5, 2, 3, 4),
                 dtype="int64"),  # of the shape
            Case("collapse_sum_to", [X, _ints(1, 4)], X.sum((0, 1), keepdims=True)[0]),
            Case("expand_dims", [X], X[:, None, None], axis=1, num_newaxis=2),
            Case("expand_dims", [X], X[..., None, None], axis=-1, num_newaxis=2),
        ]
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="reverse=True"):
        module_of([Case("reshape", [X], X, newshape=(2, 12), reverse=True)])


def test_shapes_that_are_operands() -> None:
    image = X.reshape(1, 2, 3, 4)
    nhwc = image.transpose(0, 2, 3, 1)
    on, off = Known(np.array(2.0, np.float32)), Known(np.array(-1.0, np.float32))
    indices = np.array([2, 0], np.int32)
    hot = np.where(np.arange(3)[:, None] == indices, np.float32(2), np.float32(-1))
    sparse = np.zeros((2, 3), np.float32)
    sparse[0, 1], sparse[1, 2] = 5, 7
    wide = image.repeat(2, 2).repeat(2, 3)
    check_interpreted(
        [
            Case("dyn.reshape", [X, _ints(0, -1)], X.reshape(2, 12)),
            Case("dyn.reshape", [np.zeros((0, 4), np.float32), _ints(3, 0)],
                 np.zeros((3, 0), np.float32), allowzero=True),
            Case("dyn.tile", [X, _ints(1, 2, 1)], np.tile(X, (1, 2, 1))),
            Case("dyn.broadcast_to", [X, _ints(5, 2, 3, 4)], np.broadcast_to(X, (5, 2, 3, 4))),
            Case("dyn.zeros", [_ints(2, 3)], np.zeros((2, 3), np.int8), dtype="int8"),
            Case("dyn.ones", [_ints(2, 3)], np.ones((2, 3), np.float32), dtype="float32"),
            Case("dyn.full", [np.array(4, np.float32), _ints(2)], np.full(2, 4, np.int32),
                 dtype="int32"),
            Case("dyn.one_hot", [indices, on, off, Known(np.array(3, np.int32))], hot, axis=0,
                 dtype="float32"),
            Case("dyn.expand_dims", [X, Known(np.array(1, np.int32))], X[:, None, None],
                 num_newaxis=2),
            Case("dyn.squeeze", [X[:, :1], _ints(1)], X[:, 0]),
            Case("dyn.strided_slice", [X, _ints(0, 1, -1), _ints(2, 3, -9), _ints(1, 1, -2)],
                 X[0:2, 1:3, ::-2]),
            Case("dyn.strided_slice", [X, _ints(0, 1, 1), _ints(1, 2, -1), _ints(1, 1, 1)],
                 X[:1, 1:3, 1:], slice_mode="size"),
            Case("dyn.nn.pad", [X, Known(np.array([[0, 0], [1, 0], [0, 2]], np.int64)),
                 Known(np.array(3, np.float32))],
                 np.pad(X, ((0, 0), (1, 0), (0, 2)), constant_values=3)),
            Case("dyn.nn.pad", [X, Known(np.array([[0, 0], [1, 0], [0, 2]], np.int64)),
                 Known(np.array(0, np.float32))],
                 np.pad(X, ((0, 0), (1, 0), (0, 2)), mode="edge"), pad_mode="edge"),
            Case("dyn.sparse_to_dense", [np.array([[0, 1], [1, 2]], np.int32),
                 np.array([5, 7], np.float32), np.array(0, np.float32), _ints(2, 3)], sparse),
            Case("dyn.image.resize2d", [image, _ints(6, 8), Known(np.zeros(4, np.float32))], wide,
                 method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
                 rounding_method="floor"),
            Case("dyn.nn.upsampling", [nhwc, on, on], wide.transpose(0, 2, 3, 1), layout="NHWC"),
            Case("dyn.nn.upsampling3d", [image[:, :, None], Known(np.array(1, np.float32)), on, on],
                 wide[:, :, None], coordinate_transformation_mode="asymmetric"),
            Case("vm.shape_of", [X], np.array([2, 3, 4], np.int64), dtype="int64"),
        ]
    )  # fmt: skip


def test_ends_of_sequences() -> None:
    lengths = np.array([1, 3], np.int32)
    masked = X.transpose(1, 0, 2).copy()  # (time, batch, ...)
    for b, n in enumerate(lengths):
        masked[n:, b] = -7
    turned = X.copy()
    for b, n in enumerate(lengths):
        turned[b, :, :n] = X[b, :, :n][:, ::-1]
    front = X.copy()
    for i, n in enumerate((2, 1, 2)):  # batches are axis 1, sequences axis 0
        front[:n, i] = X[:n, i][::-1]
    check_interpreted(
        [
            Case("sequence_mask", [X.transpose(1, 0, 2), lengths], masked, mask_value=-7.0),
            Case("sequence_mask", [X, lengths], masked.transpose(1, 0, 2), mask_value=-7.0, axis=1),
            Case("reverse_sequence", [X, lengths], turned, seq_axis=2),
            Case("reverse_sequence", [X, np.array([2, 1, 2], np.int32)], front, seq_axis=0,
                 batch_axis=1),
        ]
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["update", "add", "mul", "min", "max"])
def test_scattered(reduction: str) -> None:
    indices = np.array([[1, 3, 0]], np.int64)
    updates = _DRAW.uniform(-1, 1, (1, 3)).astype(np.float32)
    x = X[0]
    wanted = x.copy()
    for j, i in enumerate(indices[0]):
        old, new = wanted[0, i], updates[0, j]
        wanted[0, i] = {"update": new, "add": old + new, "mul": old * new, "min": min(old, new),
                        "max": max(old, new)}[reduction]  # fmt: skip
    check_interpreted(
        [
            Case("scatter_elements", [x, indices, updates], wanted, axis=1, reduction=reduction),
            Case("scatter_nd", [x, np.stack([np.zeros(3, np.int64), indices[0]]), updates[0]],
                 wanted, mode=reduction),
        ]
    )  # fmt: skip


def test_space_and_channels() -> None:
    x = _DRAW.uniform(-1, 1, (1, 8, 2, 3)).astype(np.float32)
    crd = x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)
    dcr = x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)
    batches = np.pad(X[..., None], ((0, 0), (0, 1), (0, 0), (0, 0)), constant_values=5)
    batches = batches.reshape(2, 2, 2, 4, 1).transpose(2, 0, 1, 3, 4).reshape(4, 2, 4, 1)
    check_interpreted(
        [
            Case("nn.depth_to_space", [x], crd, block_size=2, mode="CRD"),
            Case("nn.depth_to_space", [x.transpose(0, 2, 3, 1)], dcr.transpose(0, 2, 3, 1),
                 block_size=2, layout="NHWC"),
            Case("nn.space_to_depth", [dcr.transpose(0, 2, 3, 1)], x.transpose(0, 2, 3, 1),
                 block_size=2, layout="NHWC", mode="CRD"),
            Case("nn.space_to_batch_nd", [X[..., None]], batches, block_shape=(2,),
                 paddings=((0, 1),), pad_value=5.0),
        ]
    )  # fmt: skip


def test_marks_compute_nothing() -> None:
    marks: list[tuple[str, dict[str, Any]]] = [
        ("annotation.cast_hint", {"dtype": "float16"}),
        ("annotation.checkpoint", {}),
        ("annotation.compiler_begin", {"compiler": "dnnl"}),
        ("annotation.compiler_end", {"compiler": "dnnl"}),
        ("annotation.on_device", {"virtual_device": "cpu"}),
        ("annotation.stop_fusion", {}),
        ("annotation.with_funcid", {}),
        ("device_copy", {"src_virtual_device": "cpu", "dst_virtual_device": "gpu"}),
        ("on_device", {"virtual_device": "gpu", "constrain_result": True}),
    ]
    check_interpreted([Case(name, [X], X, **given) for name, given in marks])
