"""Conversion of dtypes: of numbers, and of bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import BOOL, FLOAT32, FLOAT64, Array, DType
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type
from unity.op.argument import tensor
from unity.op.attribute import DTYPE
from unity.op.reduction.reduce import known, tensor_of
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, dtype_attr
from unity.op.sampling import Sampler, sample

_PARAMS = (Param("x"), attr("dtype", DTYPE))
_PAIRS = (
    ("float32", "float16"), ("float16", "float32"), ("float32", "int32"), ("int64", "float32"),
    ("float32", "bool"), ("bool", "float32"), ("int32", "int8"), ("int64", "int32"),
    ("float32", "bfloat16"), ("bfloat16", "float32"), ("uint8", "float32"), ("float64", "float32"),
    ("int32", "bool"), ("float32", "float32"),
)  # fmt: skip


def _infer(call: OpCall) -> Type:
    return TensorType(tensor(call, 0).shape, call.dtype())


def _refer(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    with np.errstate(all="ignore"):
        return x.astype(dtype_attr(attrs).numpy)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    shape, out = known(result)
    x = tensor_of(args)

    def element(*i: PrimExpr) -> PrimExpr:
        if out == BOOL and x.dtype != BOOL:
            return te.ne(x[i], 0)
        return te.cast(x[i], out)

    return te.compute(shape, element, "cast")


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    shapes = [(2, 3), (0, 4), (), (5,)]
    return [
        sample(_PARAMS, (s.array(shapes[i % 4], a),), dtype=DType(b))
        for i, (a, b) in enumerate(_PAIRS)
    ]


_BITCASTS = (
    ("float32", "int32"), ("int32", "float32"), ("float64", "int64"), ("int64", "float64"),
    ("int8", "uint8"), ("uint32", "float32"), ("float32", "uint32"), ("uint64", "int64"),
)  # fmt: skip


def _infer_bits(call: OpCall) -> Type:
    x, to = tensor(call, 0), call.dtype()
    kind = x.dtype
    if kind is not None and not _have_bits(kind, to):
        raise call.error(
            f"'x' of {kind} has no bits that are a {to}",
            "both must be integers or floats of as many bits; floats of 32 or 64",
        )
    return TensorType(x.shape, to)


def _have_bits(a: DType, b: DType) -> bool:
    plain = all(t.is_int or t.element in (FLOAT32, FLOAT64) for t in (a, b))
    return plain and a.bits == b.bits and a.bits >= 8


def _refer_bits(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return np.ascontiguousarray(x).view(dtype_attr(attrs).numpy).reshape(x.shape)


def _compute_bits(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    shape, out = known(result)
    x = tensor_of(args)
    signed = DType(f"int{out.bits}")

    def element(*i: PrimExpr) -> PrimExpr:
        value = x[i]
        if x.dtype.is_float and out.is_float:
            return value
        if x.dtype.is_float:
            return te.cast(te.bits(value), out)
        return te.of_bits(te.cast(value, signed)) if out.is_float else te.cast(value, out)

    return te.compute(shape, element, "bitcast")


def _bit_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    shapes = [(2, 3), (0, 4), (), (5,)]
    return [
        sample(_PARAMS, (s.array(shapes[i % 4], a),), dtype=DType(b))
        for i, (a, b) in enumerate(_BITCASTS)
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "bitcast",
        _PARAMS,
        _infer_bits,
        _refer_bits,
        "The bits of `x` as another dtype of as many.",
        compute=_compute_bits,
        pattern="elementwise",
        samples=_bit_samples,
    ),
    OpDef(
        "astype",
        _PARAMS,
        _infer,
        _refer,
        "`x` as another dtype, as numpy does: floats truncate to integers, what is not 0 is True.",
        compute=_compute,
        pattern="elementwise",
        samples=_samples,
    ),
)
