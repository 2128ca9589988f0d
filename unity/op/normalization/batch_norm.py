"""Normalization with given statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import Type
from unity.op.accumulate import real, rounded, working_dtype
from unity.op.argument import axis, common_dtype, float_tensor
from unity.op.attribute import INT, NUMBER
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .moments import (
    arrays,
    epsilon,
    require_channels,
)

_BATCH = (
    Param("x"),
    Param("gamma"),
    Param("beta"),
    Param("mean"),
    Param("variance"),
    attr("axis", INT, 1),
    attr("epsilon", NUMBER, 1e-5),
)


def _batch_infer(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    common_dtype(call, (x, float_tensor(call, 1), float_tensor(call, 2)))
    if x.ndim is not None:
        along = axis(call, call.attrs["axis"], x.ndim)
        require_channels(call, x, along, range(1, 5))
    return x


def _batch_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, gamma, beta, mean, variance = args
    assert isinstance(x, te.Tensor)
    assert isinstance(gamma, te.Tensor)
    assert isinstance(beta, te.Tensor)
    assert isinstance(mean, te.Tensor)
    assert isinstance(variance, te.Tensor)
    along, eps = int_attr(attrs, "axis") % x.ndim, epsilon(attrs)
    wide = working_dtype(x.dtype)

    def element(*i: PrimExpr) -> PrimExpr:
        c = i[along]
        scale = te.cast(gamma[c], wide) * te.rsqrt(te.cast(variance[c], wide) + eps)
        shift = te.cast(beta[c], wide) - te.cast(mean[c], wide) * scale
        return te.cast(te.cast(x[i], wide) * scale + shift, x.dtype)

    return te.compute(x.shape, element, "batch_norm")


def _batch_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, *vectors = arrays(args)
    shape = [1] * x.ndim
    shape[int_attr(attrs, "axis")] = -1
    gamma, beta, mean, variance = (real(v).reshape(shape) for v in vectors)
    return rounded((real(x) - mean) / np.sqrt(variance + epsilon(attrs)) * gamma + beta, x)


def _batch_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)

    def call(shape: tuple[int, ...], along: int = 1, kind: str = "float32") -> Sample:
        c = (shape[along],)
        vectors = [s.array(c, kind) for _ in range(3)] + [s.array(c, kind, 0.1, 4)]
        return sample(_BATCH, (s.array(shape, kind), *vectors), axis=along)

    n, c, h, w = s.shape(4)
    return [
        call((n, c, h, w)),
        call((n, c), kind="float64"),
        call((n, h, c), along=-1, kind="float16"),
        call((0, c, h)),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.batch_norm",
        _BATCH,
        _batch_infer,
        _batch_reference,
        """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with given statistics.

        The vectors have shape ``(x.shape[axis],)``. This is inference: nothing is updated, and the
        result is one tensor (R.nn.batch_norm's first; ONNX BatchNormalization).
        """,
        compute=_batch_compute,
        pattern="broadcast",
        samples=_batch_samples,
    ),
)
