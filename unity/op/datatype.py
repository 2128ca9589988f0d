"""Conversion of dtypes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import BOOL, Array, DType
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type

from .argument import tensor
from .attribute import DTYPE
from .reduce import known, tensor_of
from .registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, dtype_attr
from .sampling import Sampler, sample

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


OPS: tuple[OpDef, ...] = (
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
