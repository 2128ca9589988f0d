"""Operators between tensors and shape values. None is a kernel: the machine runs them itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dims import product
from unity.ir.dtype import INT64, Array
from unity.ir.graph import Expr
from unity.ir.types import ShapeType, TensorType, Type

from .argument import ranked, shape, tensor
from .registry import OpCall, OpDef, Param, RefArg, Sample
from .sampling import Sampler, sample

if TYPE_CHECKING:
    from .emitter import Emitter

_X = (Param("x"),)
_SHAPE = (Param("shape", "shape"),)


def _infer_shape_of(call: OpCall) -> Type:
    return ShapeType(tensor(call, 0).shape)


def _infer_size(call: OpCall) -> Type:
    tensor(call, 0)
    return TensorType((), INT64)


def _refer_shape_of(args: Sequence[RefArg], attrs: Attrs) -> tuple[int, ...]:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return tuple(x.shape)


def _infer_tensor_to_shape(call: OpCall) -> Type:
    x = ranked(call, 0, 1)
    if x.dtype not in (None, INT64):
        raise call.error(f"'x' must be int64, got {x.dtype}", "convert with astype")
    length = x.shape[0] if isinstance(x.shape, tuple) else None
    return ShapeType(length if isinstance(length, int) else None)


def _refer_tensor_to_shape(args: Sequence[RefArg], attrs: Attrs) -> tuple[int, ...]:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return tuple(int(n) for n in x.astype(np.int64))


def _infer_shape_to_tensor(call: OpCall) -> Type:
    count = shape(call, 0).ndim
    return TensorType(1 if count is None else (count,), INT64)


def _refer_shape_to_tensor(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (dims,) = args
    assert isinstance(dims, tuple)
    return np.asarray(dims, dtype=np.int64)


def _shape_of_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [sample(_X, (s.array(dims),)) for dims in ((2, 3), (), (0, 4))]


def _expand_size(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (x,) = args
    found = e.type_of(x).shape
    if isinstance(found, tuple):
        return e.op("dims", product(found), dtype=INT64)
    return e.op("prod", e.op("shape_to_tensor", e.op("shape_of", x)))


def _refer_size(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return np.asarray(x.size, np.int64)


OPS: tuple[OpDef, ...] = (
    OpDef(
        "size",
        _X,
        _infer_size,
        _refer_size,
        "How many elements a tensor has, an int64 scalar (R.size, ONNX Size).",
        expand=_expand_size,
        samples=_shape_of_samples,
    ),
    OpDef(
        "shape_of",
        _X,
        _infer_shape_of,
        _refer_shape_of,
        "The shape of a tensor as a shape value (R.shape_of).",
        samples=_shape_of_samples,
    ),
    OpDef(
        "tensor_to_shape",
        _X,
        _infer_tensor_to_shape,
        _refer_tensor_to_shape,
        "An int64 vector as a shape value; a match_cast names its dims (R.tensor_to_shape).",
        samples=lambda seed: [sample(_X, (np.asarray([2, 3, 4]),))],
    ),
    OpDef(
        "shape_to_tensor",
        _SHAPE,
        _infer_shape_to_tensor,
        _refer_shape_to_tensor,
        "A shape value as an int64 vector (R.shape_to_tensor).",
        samples=lambda seed: [sample(_SHAPE, ((2, 3, 4),)), sample(_SHAPE, ((),))],
    ),
)
