"""Pooling: the maximum or mean over sliding windows, or over a fixed number of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, always_ge
from unity.ir.dtype import INT32, Array, DType, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, Type
from unity.op.accumulate import mean_dtype, real, working_dtype
from unity.op.argument import number_tensor, ranked, tensor
from unity.op.attribute import FLAG, INTS, TEXT
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, TypeRule, attr
from unity.op.sampling import Sampler, sample
from unity.op.window import (
    Window,
    all_taps,
    check_steps,
    dims_of,
    pad_reference,
    pad_spatial,
    per_axis,
    position,
    spatial,
    tap_reference,
    taps,
)

from .window_sum import LANES

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
BLOCKED = "NCDHWc"
"""Channels in blocks that lie innermost, ``(n, c / b, d, h, w, b)``: what ConvertLayout gives."""


def pool_params(rank: int, *more: Param) -> tuple[Param, ...]:
    """The parameters of a pool over so many axes, with more before its layout."""
    return (
        Param("x"),
        attr("pool_size", INTS, (1,) * rank),
        attr("strides", INTS, 1),
        attr("padding", INTS, 0),
        attr("dilation", INTS, 1),
        attr("ceil_mode", FLAG, False),
        *more,
        attr("layout", TEXT, _LAYOUTS[rank]),
    )


def pool_windows(call_or_attrs: OpCall | Attrs, rank: int) -> tuple[Window, ...]:
    """One for each axis behind the second; `rank` of them go along an image."""
    if isinstance(call_or_attrs, OpCall):
        attrs, error = call_or_attrs.attrs, call_or_attrs.error
        kernel = per_axis("pool_size", attrs["pool_size"], rank, 1, error)
        windows = spatial(attrs, kernel, ceil=attrs["ceil_mode"] is True, error=error)
    else:
        attrs = call_or_attrs
        kernel = per_axis("pool_size", attrs["pool_size"], rank, 1)
        windows = spatial(attrs, kernel, ceil=attrs["ceil_mode"] is True)
    return (*windows, LANES) if attrs["layout"] == BLOCKED else windows


def _rank(ndim: int, attrs: Attrs) -> int:
    """Axes that windows go along, of an input of so many."""
    return ndim - (3 if attrs["layout"] == BLOCKED else 2)


def _require_layout(call: OpCall, rank: int) -> None:
    if call.attrs["layout"] != _LAYOUTS[rank] and (rank, call.attrs["layout"]) != (3, BLOCKED):
        raise call.error(
            f"layout must be {_LAYOUTS[rank]!r}, got {call.attrs['layout']!r}",
            hint="transpose with permute_dims",
        )


def _infer(rank: int, *, mean: bool) -> TypeRule:
    def rule(call: OpCall) -> Type:
        _require_layout(call, rank)
        kind = (number_tensor(call, 0) if mean else tensor(call, 0)).dtype
        if mean and kind is not None:
            kind = mean_dtype(kind)
        windows = pool_windows(call, rank)
        x = ranked(call, 0, len(windows) + 2)
        for window in windows:
            padding = max(window.before, window.after)
            if always_ge(padding, window.reach):
                raise call.error(
                    f"padding {padding} makes windows of padding alone",
                    hint=f"it must be less than the window, which reaches over {window.reach}",
                )
        if not isinstance(x.shape, tuple):
            return TensorType(len(windows) + 2, kind)
        check_steps(call, windows, x.shape[2:])
        steps = [w.steps(e) for w, e in zip(windows, x.shape[2:], strict=True)]
        return TensorType((*x.shape[:2], *steps), kind)

    return rule


def _shape(result: Type) -> tuple[Dim, ...]:
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    return result.shape


def _max_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    windows = pool_windows(attrs, _rank(x.ndim, attrs))
    padded = pad_spatial(x, windows, dims_of(x)[2:], te.min_value(x.dtype))
    k = taps(windows)

    def best(*i: PrimExpr) -> te.Reduce:
        at = [position(s, t.var, w) for s, t, w in zip(i[2:], k, windows, strict=True)]
        return te.max(padded[(*i[:2], *at)], axis=k)

    return te.compute(_shape(result), best, "max_pool")


def _avg_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    windows, extents = pool_windows(attrs, _rank(x.ndim, attrs)), dims_of(x)[2:]
    out = mean_dtype(x.dtype)
    wide = working_dtype(out)
    padded = pad_spatial(x, windows, extents, imm(0, x.dtype))
    k = taps(windows)

    def total(*i: PrimExpr) -> te.Reduce:
        at = [position(s, t.var, w) for s, t, w in zip(i[2:], k, windows, strict=True)]
        return te.sum(te.cast(padded[(*i[:2], *at)], wide), axis=k)

    summed = te.compute(_shape(result), total, "pool_sum")
    counted = attrs["count_include_pad"] is True

    def mean(*i: PrimExpr) -> PrimExpr:
        size, varying = divisor(i[2:], windows, extents, counted, wide)
        if varying is None:
            return te.cast(summed[i] * (1 / size), out)
        return te.cast(summed[i] / (varying if size == 1 else varying * size), out)

    return te.compute(_shape(result), mean, "avg_pool")


def divisor(
    steps: Sequence[PrimExpr],
    windows: Sequence[Window],
    extents: Sequence[Dim],
    counted: bool,
    wide: DType,
) -> tuple[int, PrimExpr | None]:
    """How many taps a mean is of: a number, times what changes from window to window, if it does.

    The counts of axes are multiplied as floats, which is exact: those of one axis are often the
    same for a whole tile, and few machines multiply registers of 64-bit integers.

    Args:
        steps: Which window, along each axis.
        windows: The geometry.
        extents: The input's.
        counted: Whether those of its padding count.
        wide: What sums are computed in.
    """
    size: int = 1
    varying: PrimExpr | None = None
    for step, w, e in zip(steps, windows, extents, strict=True):
        if w.ceil or (not counted and w.before + w.after > 0):
            count = te.cast(te.cast(_count(step, w, e, counted), INT32), wide)
            varying = count if varying is None else varying * count
        else:
            assert isinstance(w.kernel, int)
            size *= w.kernel
    return size, varying


def _count(step: PrimExpr, window: Window, extent: Dim, counted: bool) -> PrimExpr:
    """How many taps of a window lie in the input, or in the input and its padding if `counted`."""
    start = step * window.stride
    begin = 0 if counted else window.before
    end = to_prim_expr(extent + window.before + (window.after if counted else 0))
    last = te.min_((end - 1 - start) // window.dilation, to_prim_expr(window.kernel - 1))
    if begin == 0:
        return last + 1
    first = te.max_((begin - start + window.dilation - 1) // window.dilation, 0)
    return last - first + 1


def _max_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    windows = pool_windows(attrs, _rank(x.ndim, attrs))
    least = te.min_value(dtype(x.dtype)).value
    padded = pad_reference(x, windows, least)
    seen = [tap_reference(padded, windows, tap) for tap in all_taps(windows)]
    return np.asarray(np.stack(seen).max(axis=0))


def _avg_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    windows = pool_windows(attrs, _rank(x.ndim, attrs))
    counted = pad_reference(np.ones_like(real(x)), windows, 0)
    if attrs["count_include_pad"] is True:
        inner = [slice(e + w.before + w.after) for e, w in zip(x.shape[2:], windows, strict=True)]
        counted[(slice(None), slice(None), *inner)] = 1
    padded = pad_reference(real(x), windows, 0)
    taken = list(all_taps(windows))
    total = np.stack([tap_reference(padded, windows, tap) for tap in taken]).sum(axis=0)
    count = np.stack([tap_reference(counted, windows, tap) for tap in taken]).sum(axis=0)
    return np.asarray(total / count).astype(mean_dtype(dtype(x.dtype)).numpy)


def _samples(rank: int, kinds: Sequence[str]) -> Callable[[int], Sequence[Sample]]:
    params = pool_params(rank)

    def rule(seed: int) -> Sequence[Sample]:
        s = Sampler.seeded(seed)
        n, c = s.shape(2, 1, 3)
        size = s.shape(rank, 4, 6) if rank == 3 else s.shape(rank, 6, 9)

        def call(kind: str = "float32", **attrs: object) -> Sample:
            return sample(params, (s.array((n, c, *size), kind),), **attrs)

        found = [
            call(pool_size=2, strides=2),
            call(pool_size=3, strides=2, padding=1),
            call(pool_size=3, strides=2, padding=1, ceil_mode=True),
            call(pool_size=2, strides=3, ceil_mode=True),
            call(pool_size=2, dilation=2, padding=(0,) * rank + (1,) * rank),
            sample(params, (s.array((0, c, *size)),), pool_size=2),
        ]
        if rank == 3:
            blocks = s.array((n, c, *size, 4))
            attrs = {"pool_size": 3, "strides": 2, "padding": 1, "layout": BLOCKED}
            found.append(sample(params, (blocks,), **attrs))
        return found + [call(kind, pool_size=2) for kind in kinds]

    return rule


def _avg_samples(rank: int) -> Callable[[int], Sequence[Sample]]:
    plain = _samples(rank, ("float64", "float16", "int32", "uint8"))

    def rule(seed: int) -> Sequence[Sample]:
        found = plain(seed)
        return [
            Sample(s.args, s.attrs.with_(count_include_pad=included))
            for s in found
            for included in (False, True)
        ]

    return rule


def _max_row(rank: int) -> OpDef:
    return OpDef(
        f"nn.max_pool{rank}d",
        pool_params(rank),
        _infer(rank, mean=False),
        _max_reference,
        f"""The maximum over sliding windows of {rank} spatial axes ({_LAYOUTS[rank]}).

        With `ceil_mode` a last window may stick out at the end, but none starts behind the input
        (R.nn.max_pool{rank}d, ONNX MaxPool, torch). Padding never wins. The result has the dtype of
        `x`, integers included.
        """,
        compute=_max_compute,
        pattern="reduction",
        samples=_samples(rank, ("float64", "float16", "int8")),
    )


def _avg_row(rank: int) -> OpDef:
    return OpDef(
        f"nn.avg_pool{rank}d",
        pool_params(rank, attr("count_include_pad", FLAG, False)),
        _infer(rank, mean=True),
        _avg_reference,
        f"""The mean over sliding windows of {rank} spatial axes ({_LAYOUTS[rank]}).

        The divisor is the number of taps in the input, or with `count_include_pad` in the input and
        its padding; what `ceil_mode` sticks out is never counted (R.nn.avg_pool{rank}d, ONNX
        AveragePool, torch). Of integers it is a float64, as np.mean.
        """,
        compute=_avg_compute,
        pattern="reduction",
        samples=_avg_samples(rank),
    )


OPS: tuple[OpDef, ...] = (
    *(_max_row(rank) for rank in (1, 2, 3)),
    *(_avg_row(rank) for rank in (1, 2, 3)),
)
