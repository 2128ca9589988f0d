"""Adaptive pooling: the mean over a given number of parts along each spatial axis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.convert import to_prim_expr
from unity.ir.dims import Dim, ceildiv, equal, floordiv, floormod
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import real, rounded, working_dtype
from unity.op.argument import float_tensor, ranked
from unity.op.attribute import INTS, TEXT
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, TypeRule, attr
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of, per_axis

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _infer(rank: int) -> TypeRule:
    def rule(call: OpCall) -> Type:
        if call.attrs["layout"] != _LAYOUTS[rank]:
            raise call.error(
                f"layout must be {_LAYOUTS[rank]!r}, got {call.attrs['layout']!r}",
                hint="transpose with permute_dims",
            )
        float_tensor(call, 0)
        x = ranked(call, 0, rank + 2)
        parts = per_axis("output_size", call.attrs["output_size"], rank, 1, call.error)
        if not isinstance(x.shape, tuple):
            return TensorType(rank + 2, x.dtype)
        return TensorType((*x.shape[:2], *parts), x.dtype)

    return rule


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    rank = x.ndim - 2
    parts = per_axis("output_size", attrs["output_size"], rank, 1)
    extents = dims_of(x)[2:]
    if all(equal(floormod(e, p), 0) for e, p in zip(extents, parts, strict=True)):
        return _even(x, parts, extents)
    return _uneven(x, parts, extents)


def _even(x: te.Tensor, parts: Sequence[int], extents: Sequence[Dim]) -> te.Tensor:
    """All parts are of one size: a plain reduction."""
    sizes = [floordiv(e, p) for e, p in zip(extents, parts, strict=True)]
    wide = working_dtype(x.dtype)
    k = [te.reduce_axis(size, f"k{d}") for d, size in enumerate(sizes)]
    shape = (*x.shape[:2], *parts)

    def total(*i: PrimExpr) -> te.Reduce:
        at = [
            t.var if parts[d] == 1 else i[2 + d] * to_prim_expr(sizes[d]) + t.var
            for d, t in enumerate(k)
        ]
        return te.sum(te.cast(x[(*i[:2], *at)], wide), axis=k)

    summed = te.compute(shape, total, "pool_sum")
    count: Dim = 1
    for size in sizes:
        count = count * size
    divisor = te.cast(to_prim_expr(count), wide)
    return te.compute(shape, lambda *i: te.cast(summed[i] / divisor, x.dtype), "adaptive_pool")


def _uneven(x: te.Tensor, parts: Sequence[int], extents: Sequence[Dim]) -> te.Tensor:
    """Part i is ``floor(i * n / parts) ... ceil((i + 1) * n / parts)``: windows of varying size."""
    wide = working_dtype(x.dtype)
    k = [
        te.reduce_axis(ceildiv(e, p) + 1, f"k{d}")
        for d, (e, p) in enumerate(zip(extents, parts, strict=True))
    ]
    shape = (*x.shape[:2], *parts)

    def ends(part: PrimExpr, d: int) -> tuple[PrimExpr, PrimExpr]:
        extent = to_prim_expr(extents[d])
        return part * extent // parts[d], ((part + 1) * extent + (parts[d] - 1)) // parts[d]

    def total(*i: PrimExpr) -> te.Reduce:
        at: list[PrimExpr] = []
        inside: list[PrimExpr] = []
        for d, t in enumerate(k):
            begin, end = ends(i[2 + d], d)
            at.append(begin + t.var)
            inside.append(begin + t.var < end)
        value = te.select(te.all_true(*inside), te.cast(x[(*i[:2], *at)], wide), 0.0)
        return te.sum(value, axis=k)

    summed = te.compute(shape, total, "pool_sum")

    def mean(*i: PrimExpr) -> PrimExpr:
        value: PrimExpr = summed[i]
        for d in range(len(parts)):
            begin, end = ends(i[2 + d], d)
            value = value / te.cast(end - begin, wide)
        return te.cast(value, x.dtype)

    return te.compute(shape, mean, "adaptive_pool")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    extents = x.shape[2:]
    parts = per_axis("output_size", attrs["output_size"], len(extents), 1)
    result = np.zeros((*x.shape[:2], *parts), np.float64)
    for at in itertools.product(*(range(p) for p in parts)):
        part = [
            slice(i * n // p, -(-(i + 1) * n // p))
            for i, n, p in zip(at, extents, parts, strict=True)
        ]
        seen = real(x)[(slice(None), slice(None), *part)]
        here = (slice(None), slice(None), *(slice(i, i + 1) for i in at))
        result[here] = seen.mean(axis=tuple(range(2, x.ndim)), keepdims=True)
    return rounded(result, x)


def _row(rank: int) -> OpDef:
    params = (
        Param("x"),
        attr("output_size", INTS, (1,) * rank),
        attr("layout", TEXT, _LAYOUTS[rank]),
    )

    def samples(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c = s.shape(2, 1, 3)
        size = s.shape(rank, 4, 7)
        return [
            sample(params, (s.array((n, c, *size)),)),
            sample(params, (s.array((n, c, *size), "float16"),), output_size=3),
            sample(params, (s.array((n, c, *(6,) * rank), "float64"),), output_size=2),
            sample(params, (s.array((n, c, *(2,) * rank)),), output_size=5),
            sample(params, (s.array((0, c, *size)),)),
        ]

    return OpDef(
        f"nn.adaptive_avg_pool{rank}d",
        params,
        _infer(rank),
        _reference,
        f"""The mean over `output_size` parts of each of {rank} spatial axes ({_LAYOUTS[rank]}).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (R.nn.adaptive_avg_pool{rank}d, torch; with 1 it is ONNX GlobalAveragePool).
        """,
        compute=_compute,
        pattern="reduction",
        samples=samples,
    )


OPS: tuple[OpDef, ...] = (_row(1), _row(2), _row(3))
