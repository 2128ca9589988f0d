"""Indices as unit vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import SymDim, always_ge
from unity.ir.dtype import INT64, Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.argument import axis, common_dtype, int_tensor, tensor, type_text
from unity.op.attribute import INT, SIZE
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

_ONE_HOT = (
    Param("indices"),
    Param("on_value"),
    Param("off_value"),
    attr("depth", SIZE),
    attr("axis", INT, -1),
)


def _one_hot_infer(call: OpCall) -> Type:
    indices, on, off = int_tensor(call, 0), tensor(call, 1), tensor(call, 2)
    for value in (on, off):
        if value.ndim not in (0, None):
            raise call.error(f"on_value and off_value must be scalars, got {type_text(value)}")
    kind = common_dtype(call, (on, off))
    depth = call.attrs["depth"]
    if not isinstance(depth, int | SymDim) or not always_ge(depth, 0):
        raise call.error(f"depth must be a dim that isn't negative, got {depth!r}")
    if indices.ndim is None:
        return TensorType(None, kind)
    along = axis(call, call.attrs["axis"], indices.ndim + 1)
    if not isinstance(indices.shape, tuple):
        return TensorType(indices.ndim + 1, kind)
    return TensorType((*indices.shape[:along], depth, *indices.shape[along:]), kind)


def _one_hot_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    indices, on, off = args
    assert isinstance(indices, te.Tensor)
    assert isinstance(on, te.Tensor)
    assert isinstance(off, te.Tensor)
    dims, _ = known(result)
    along = int_attr(attrs, "axis") % len(dims)
    depth = to_prim_expr(dims[along])

    def element(*i: PrimExpr) -> PrimExpr:
        index = te.cast(indices[(*i[:along], *i[along + 1 :])], INT64)
        wrapped = te.select(index < 0, index + depth, index)
        return te.select(te.eq(wrapped, i[along]), on[()], off[()])

    return te.compute(dims, element, "one_hot")


def _one_hot_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    indices, on, off = [a for a in args if isinstance(a, np.ndarray)]
    depth, along = int_attr(attrs, "depth"), int_attr(attrs, "axis")
    wide = np.expand_dims(indices.astype(np.int64), along)
    shape = [1] * wide.ndim
    shape[along] = depth
    places = np.arange(depth).reshape(shape)
    return np.where(np.where(wide < 0, wide + depth, wide) == places, on, off)


def _one_hot_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    on, off = np.asarray(1.5, np.float32), np.asarray(-1, np.float32)
    return [
        sample(_ONE_HOT, (s.array((5,), "int64", -4, 6), on, off), depth=4),
        sample(_ONE_HOT, (s.array((2, 3), "int32", 0, 2), on, off), depth=3, axis=0),
        sample(
            _ONE_HOT,
            (s.array((2, 3), "uint8", 0, 2), np.asarray(7, np.int64), np.asarray(2, np.int64)),
            depth=3,
            axis=1,
        ),
        sample(_ONE_HOT, (s.array((0,), "int64"), on, off), depth=3),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "one_hot",
        _ONE_HOT,
        _one_hot_infer,
        _one_hot_reference,
        """`on_value` at the index's place along a new axis of `depth`, elsewhere `off_value`.

        A negative index counts from the end, one out of range is nowhere (R.one_hot, ONNX OneHot).
        """,
        compute=_one_hot_compute,
        pattern="injective",
        samples=_one_hot_samples,
    ),
)
