"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import Type
from unity.op.accumulate import real, rounded, widened
from unity.op.argument import axis, float_tensor
from unity.op.attribute import INT
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

_PARAMS = (Param("x"), attr("axis", INT, -1))


def _infer(call: OpCall) -> Type:
    x = float_tensor(call, 0)
    if x.ndim is not None:
        axis(call, call.attrs["axis"], x.ndim)
    return x


def _rows(
    args: Sequence[ComputeArg], attrs: Attrs
) -> tuple[te.Tensor, int, te.Tensor, tuple[PrimExpr, ...]]:
    """The tensor, its axis, the maxima along it and their shape.

    NaN is passed over there: it makes the sum NaN, and so all of the row.
    """
    (x,) = args
    assert isinstance(x, te.Tensor)
    along = int_attr(attrs, "axis") % len(x.shape)
    outer = (*x.shape[:along], *x.shape[along + 1 :])
    k = te.reduce_axis(x.shape[along], "k")
    peak = te.compute(
        outer,
        lambda *i: te.reduce("fmax", (widened(x[(*i[:along], k.var, *i[along:])]),), [k]),
        "peak",
    )
    return x, along, peak, outer


def exp_below(x: PrimExpr, peak: PrimExpr) -> PrimExpr:
    """``exp(x - peak)``; that x is no greater is said, for `exp` takes less work then."""
    return te.exp(te.min_(x - peak, 0))


def _softmax(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, along, peak, outer = _rows(args, attrs)
    shifted = te.compute(
        x.shape,
        lambda *i: exp_below(widened(x[i]), peak[(*i[:along], *i[along + 1 :])]),
        "exponential",
    )
    k = te.reduce_axis(x.shape[along], "k")
    total = te.compute(
        outer, lambda *i: te.sum(shifted[(*i[:along], k.var, *i[along:])], axis=[k]), "total"
    )
    # No total is less than the one of the peak itself, so its inverse is exact enough; a product is
    # several times faster than a quotient.
    inverse = te.compute(outer, lambda *i: 1 / total[i], "inverse")
    return te.compute(
        x.shape,
        lambda *i: te.cast(shifted[i] * inverse[(*i[:along], *i[along + 1 :])], x.dtype),
        "softmax",
    )


def _log_softmax(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, along, peak, outer = _rows(args, attrs)
    k = te.reduce_axis(x.shape[along], "k")
    total = te.compute(
        outer,
        lambda *i: te.sum(
            exp_below(widened(x[(*i[:along], k.var, *i[along:])]), peak[i]), axis=[k]
        ),
        "total",
    )

    def element(*i: PrimExpr) -> PrimExpr:
        row = (*i[:along], *i[along + 1 :])
        return te.cast(widened(x[i]) - peak[row] - te.log(total[row]), x.dtype)

    return te.compute(x.shape, element, "log_softmax")


def _softmax_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    if x.size == 0:
        return x.copy()
    along = int_attr(attrs, "axis")
    e = np.exp(real(x) - real(x).max(axis=along, keepdims=True))
    return rounded(e / e.sum(axis=along, keepdims=True), x)


def _log_softmax_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    if x.size == 0:
        return x.copy()
    along = int_attr(attrs, "axis")
    shifted = real(x) - real(x).max(axis=along, keepdims=True)
    return rounded(shifted - np.log(np.exp(shifted).sum(axis=along, keepdims=True)), x)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3)
    return [
        sample(_PARAMS, (s.array((a, b)),)),
        sample(_PARAMS, (s.array((a, b, c)),), axis=1),
        sample(_PARAMS, (s.array((a, b), "float64"),), axis=0),
        sample(_PARAMS, (s.array((a, 17), "float16"),)),
        sample(_PARAMS, (s.array((a, b), low=-300, high=300),)),
        sample(_PARAMS, (s.array((c,)),), axis=0),
        sample(_PARAMS, (s.array((0, 4)),)),
        sample(_PARAMS, (s.array((4, 0)),)),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "nn.softmax",
        _PARAMS,
        _infer,
        _softmax_reference,
        """``exp(x - max) / sum(exp(x - max))`` along `axis`; shape of x (R.nn.softmax, ONNX 13).

        Half-width floats are computed in float32.
        """,
        compute=_softmax,
        pattern="reduction",
        samples=_samples,
        precision="never",
    ),
    OpDef(
        "nn.log_softmax",
        _PARAMS,
        _infer,
        _log_softmax_reference,
        "The logarithm of softmax along `axis` (R.nn.log_softmax, ONNX LogSoftmax 13).",
        compute=_log_softmax,
        pattern="reduction",
        samples=_samples,
        precision="never",
    ),
)
