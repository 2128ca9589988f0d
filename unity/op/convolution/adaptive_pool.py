"""Adaptive pooling: mean or maximum over a given number of parts along each spatial axis."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, ceildiv, equal, floordiv, floormod
from unity.ir.dtype import Array, DType, dtype
from unity.ir.prim_expr import PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import exact, mean_dtype, working_dtype
from unity.op.argument import number_tensor, ranked
from unity.op.attribute import INTS, TEXT
from unity.op.registry import (
    ComputeArg,
    OpCall,
    OpDef,
    Param,
    RefArg,
    Sample,
    TypeRule,
    array_arg,
    attr,
)
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of, per_axis

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _infer(rank: int, *, mean: bool) -> TypeRule:
    def rule(call: OpCall) -> Type:
        if call.attrs["layout"] != _LAYOUTS[rank]:
            raise call.error(
                f"layout must be {_LAYOUTS[rank]!r}, got {call.attrs['layout']!r}",
                hint="transpose with permute_dims",
            )
        kind = number_tensor(call, 0).dtype
        if mean and kind is not None:
            kind = mean_dtype(kind)
        x = ranked(call, 0, rank + 2)
        parts = per_axis("output_size", call.attrs["output_size"], rank, 1, call.error)
        if not isinstance(x.shape, tuple):
            return TensorType(rank + 2, kind)
        return TensorType((*x.shape[:2], *parts), kind)

    return rule


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    parts, extents = _parts(x, attrs)
    return _even(x, parts, extents) if _divide(parts, extents) else _uneven(x, parts, extents)


def _parts(x: te.Tensor, attrs: Attrs) -> tuple[tuple[int, ...], tuple[Dim, ...]]:
    """How many parts each spatial axis has, and its extent."""
    return per_axis("output_size", attrs["output_size"], x.ndim - 2, 1), dims_of(x)[2:]


def _divide(parts: Sequence[int], extents: Sequence[Dim]) -> bool:
    """Whether all parts are of one size."""
    return all(equal(floormod(e, p), 0) for e, p in zip(extents, parts, strict=True))


def _ends(part: PrimExpr, parts: int, extent: Dim) -> tuple[PrimExpr, PrimExpr]:
    """Where a part begins, and the place behind it: their sizes may vary, and they overlap."""
    whole = to_prim_expr(extent)
    return part * whole // parts, ((part + 1) * whole + (parts - 1)) // parts


def _max_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    parts, extents = _parts(x, attrs)
    even = _divide(parts, extents)
    k = [
        te.reduce_axis(floordiv(e, p) if even else ceildiv(e, p) + 1, f"k{d}")
        for d, (e, p) in enumerate(zip(extents, parts, strict=True))
    ]

    def largest(*i: PrimExpr) -> te.Reduce:
        at: list[PrimExpr] = []
        inside: list[PrimExpr] = []
        for d, t in enumerate(k):
            begin, end = _ends(i[2 + d], parts[d], extents[d])
            at.append(i[2 + d] * t.domain.extent + t.var if even else begin + t.var)
            inside.append(begin + t.var < end)
        value: PrimExpr = x[(*i[:2], *at)]
        if not even:
            value = te.select(te.all_true(*inside), value, te.min_value(x.dtype))
        return te.max(value, axis=k)

    return te.compute((*x.shape[:2], *parts), largest, "adaptive_max_pool")


def _even(x: te.Tensor, parts: Sequence[int], extents: Sequence[Dim]) -> te.Tensor:
    """All parts are of one size: a plain reduction."""
    sizes = [floordiv(e, p) for e, p in zip(extents, parts, strict=True)]
    out = mean_dtype(x.dtype)
    wide = working_dtype(out)
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
    return te.compute(shape, lambda *i: te.cast(summed[i] / divisor, out), "adaptive_pool")


def _uneven(x: te.Tensor, parts: Sequence[int], extents: Sequence[Dim]) -> te.Tensor:
    """Part i is ``floor(i * n / parts) ... ceil((i + 1) * n / parts)``: windows of varying size."""
    out = mean_dtype(x.dtype)
    wide = working_dtype(out)
    k = [
        te.reduce_axis(ceildiv(e, p) + 1, f"k{d}")
        for d, (e, p) in enumerate(zip(extents, parts, strict=True))
    ]
    shape = (*x.shape[:2], *parts)

    def total(*i: PrimExpr) -> te.Reduce:
        at: list[PrimExpr] = []
        inside: list[PrimExpr] = []
        for d, t in enumerate(k):
            begin, end = _ends(i[2 + d], parts[d], extents[d])
            at.append(begin + t.var)
            inside.append(begin + t.var < end)
        value = te.select(te.all_true(*inside), te.cast(x[(*i[:2], *at)], wide), 0.0)
        return te.sum(value, axis=k)

    summed = te.compute(shape, total, "pool_sum")

    def mean(*i: PrimExpr) -> PrimExpr:
        value: PrimExpr = summed[i]
        for d in range(len(parts)):
            begin, end = _ends(i[2 + d], parts[d], extents[d])
            value = value / te.cast(end - begin, wide)
        return te.cast(value, out)

    return te.compute(shape, mean, "adaptive_pool")


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    return _by_part(array_arg(args), attrs, np.mean, mean_dtype)


def _max_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    return _by_part(array_arg(args), attrs, np.max, lambda kind: kind)


def _by_part(
    x: Array, attrs: Attrs, of: Callable[..., Array], kind: Callable[[DType], DType]
) -> Array:
    extents = x.shape[2:]
    parts = per_axis("output_size", attrs["output_size"], len(extents), 1)
    result = np.zeros((*x.shape[:2], *parts), kind(dtype(x.dtype)).numpy)
    for at in itertools.product(*(range(p) for p in parts)):
        part = [
            slice(i * n // p, -(-(i + 1) * n // p))
            for i, n, p in zip(at, extents, parts, strict=True)
        ]
        seen = exact(x)[(slice(None), slice(None), *part)]
        here = (slice(None), slice(None), *(slice(i, i + 1) for i in at))
        result[here] = of(seen, axis=tuple(range(2, x.ndim)), keepdims=True)
    return result


def _row(rank: int, *, mean: bool) -> OpDef:
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
            sample(params, (s.array((n, c, *size), "int32"),), output_size=2),
        ]

    kind = "avg" if mean else "max"
    doc = f"""{"The mean" if mean else "The maximum"} over `output_size` parts of each of {rank}
        spatial axes of ({_LAYOUTS[rank]}).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``"""
    if mean:
        doc += f"""
        (R.nn.adaptive_avg_pool{rank}d, torch; with 1 it is ONNX GlobalAveragePool). Of integers it
        is a float64, as np.mean.
        """
    else:
        doc += f"""
        (torch's adaptive_max_pool{rank}d; with 1 it is ONNX GlobalMaxPool). NaN if there is one.
        The result has the dtype of `x`, integers included.
        """
    return OpDef(
        f"nn.adaptive_{kind}_pool{rank}d",
        params,
        _infer(rank, mean=mean),
        _reference if mean else _max_reference,
        doc,
        compute=_compute if mean else _max_compute,
        pattern="reduction",
        samples=samples,
    )


OPS: tuple[OpDef, ...] = tuple(
    _row(rank, mean=mean) for mean in (True, False) for rank in (1, 2, 3)
)
